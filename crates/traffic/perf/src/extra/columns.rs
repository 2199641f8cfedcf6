//! Samples as columns: an object with one list per field, so that each name is
//! written once. Serialized and parsed value by value, without JSON trees.

use iperf3_proto::lenient::Scalar;
use record::{ReceiverSample, Sample, TimedDatagram};
use serde::{
    Deserializer, Serialize, Serializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use std::{fmt, marker::PhantomData};

/// Maximum samples read from a peer for one stream, or datagrams of a train.
const MAX_ROWS: usize = 6_000;

/// Maximum memory of rows in halves of their text's length: a valid row takes at
/// most twice its text.
const HALVES_PER_BYTE: usize = 5;

/// One column of a table of `T`.
pub(super) struct Column<T> {
    name: &'static str,
    /// Whether a row without it is invalid.
    required: bool,
    get: fn(&T) -> Scalar,
    /// Whether the value fits.
    set: fn(&mut T, Scalar) -> bool,
}

/// A sample whose fields are columns.
pub(super) trait Columns: Sized + Default + 'static {
    const COLUMNS: &'static [Column<Self>];
}

macro_rules! columns {
    ($row:ty { $($name:ident: $kind:ty),* $(,)? }) => {
        impl Columns for $row {
            const COLUMNS: &'static [Column<Self>] = &[$(Column {
                name: stringify!($name),
                required: <$kind as Cell>::REQUIRED,
                get: |row| row.$name.scalar(),
                set: |row, scalar| <$kind as Cell>::of(scalar).map(|value| row.$name = value).is_some(),
            }),*];
        }
    };
}

columns!(Sample {
    t_s: f64,
    written_bytes: u64,
    acked_bytes: u64,
    delivered_bytes: u64,
    mss_bytes: u32,
    cwnd_bytes: u64,
    ssthresh_bytes: Option<u64>,
    in_flight_bytes: u64,
    unsent_bytes: u64,
    peer_window_bytes: Option<u64>,
    rtt_us: u32,
    rttvar_us: u32,
    min_rtt_us: Option<u32>,
    delivery_rate_bps: u64,
    delivery_app_limited: bool,
    pacing_rate_bps: Option<u64>,
    max_pacing_rate_bps: Option<u64>,
    retransmits: u64,
    busy_us: u64,
    rwnd_limited_us: u64,
    sndbuf_limited_us: u64,
    ce_delivered: Option<u32>,
    dsack_duplicates: Option<u32>,
    reorderings: Option<u32>,
    acks: Option<u32>,
    peer_window_scale: Option<u8>,
    naks: Option<u64>,
    capacity_bps: Option<u64>,
    light_acks: Option<u32>,
    source_bytes: Option<u64>,
    cpu_us: Option<u64>,
});

columns!(ReceiverSample {
    t_s: f64,
    received_bytes: u64,
    window_bytes: Option<u64>,
    buffer_bytes: Option<u64>,
    min_rtt_us: Option<u32>,
    rtt_us: Option<u32>,
    unread_bytes: Option<u64>,
    segments: Option<u32>,
    out_of_order: Option<u32>,
    window_scale: Option<u8>,
    cpu_us: Option<u64>,
});

columns!(TimedDatagram { number: u64, sent_us: u64, arrived_us: u64 });

/// A value of a column.
trait Cell: Sized {
    const REQUIRED: bool = true;
    fn scalar(&self) -> Scalar;
    fn of(scalar: Scalar) -> Option<Self>;
}

impl Cell for f64 {
    fn scalar(&self) -> Scalar {
        Scalar::Real(*self)
    }

    fn of(scalar: Scalar) -> Option<Self> {
        scalar.real()
    }
}

impl Cell for bool {
    fn scalar(&self) -> Scalar {
        Scalar::Bool(*self)
    }

    fn of(scalar: Scalar) -> Option<Self> {
        if let Scalar::Bool(flag) = scalar { Some(flag) } else { None }
    }
}

impl Cell for u64 {
    fn scalar(&self) -> Scalar {
        Scalar::Unsigned(*self)
    }

    fn of(scalar: Scalar) -> Option<Self> {
        if let Scalar::Unsigned(number) = scalar { Some(number) } else { None }
    }
}

impl Cell for u32 {
    fn scalar(&self) -> Scalar {
        Scalar::Unsigned(u64::from(*self))
    }

    fn of(scalar: Scalar) -> Option<Self> {
        u64::of(scalar)?.try_into().ok()
    }
}

impl Cell for u8 {
    fn scalar(&self) -> Scalar {
        Scalar::Unsigned(u64::from(*self))
    }

    fn of(scalar: Scalar) -> Option<Self> {
        u64::of(scalar)?.try_into().ok()
    }
}

impl<T: Cell> Cell for Option<T> {
    const REQUIRED: bool = false;

    fn scalar(&self) -> Scalar {
        self.as_ref().map_or(Scalar::Other, Cell::scalar)
    }

    fn of(scalar: Scalar) -> Option<Self> {
        if scalar == Scalar::Other { Some(None) } else { T::of(scalar).map(Some) }
    }
}

/// Writes samples as columns.
pub(super) struct Table<'a, T>(pub(super) &'a [T]);

impl<T: Columns> Serialize for Table<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let columns = if self.0.is_empty() { &[] } else { T::COLUMNS };
        let lists =
            columns.iter().map(|column| (column.name, List { rows: self.0, get: column.get }));
        serializer.collect_map(lists)
    }
}

struct List<'a, T> {
    rows: &'a [T],
    get: fn(&T) -> Scalar,
}

impl<T> Serialize for List<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.rows.iter().map(|row| Written((self.get)(row))))
    }
}

struct Written(Scalar);

impl Serialize for Written {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Scalar::Other => serializer.serialize_unit(),
            Scalar::Bool(flag) => serializer.serialize_bool(flag),
            Scalar::Unsigned(number) => serializer.serialize_u64(number),
            Scalar::Negative(number) => serializer.serialize_i64(number),
            Scalar::Real(number) => serializer.serialize_f64(number),
        }
    }
}

/// Parses samples from a peer's columns. Rows with an invalid value are skipped,
/// and all of them if a required column is missing.
pub(super) fn rows<T: Columns>(text: &str) -> Vec<T> {
    let most = (HALVES_PER_BYTE * text.len() / 2 / size_of::<T>()).min(MAX_ROWS);
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.deserialize_map(Rows { most, row: PhantomData }).unwrap_or_default()
}

struct Rows<T> {
    most: usize,
    row: PhantomData<T>,
}

impl<'de, T: Columns> Visitor<'de> for Rows<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("columns of samples")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<T>, A::Error> {
        let mut rows: Vec<T> = Vec::new();
        let mut fits: Vec<bool> = Vec::new();
        let mut shortest = self.most;
        let mut seen = 0u32;
        while let Some(Name(found)) = map.next_key_seed(Name(PhantomData::<T>))? {
            let Some(index) = found else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            seen |= 1 << index;
            let column = &T::COLUMNS[index];
            let fill = Fill { column, rows: &mut rows, fits: &mut fits, most: self.most };
            shortest = shortest.min(map.next_value_seed(fill)?);
        }
        let required =
            |(index, column): (usize, &Column<T>)| !column.required || seen >> index & 1 == 1;
        if !T::COLUMNS.iter().enumerate().all(required) {
            return Ok(Vec::new());
        }
        rows.truncate(shortest);
        let mut fits = fits.into_iter();
        rows.retain(|_| fits.next().unwrap_or(false));
        Ok(rows)
    }
}

/// Reads a key as the index of the column of that name.
struct Name<T>(T);

impl<'de, T: Columns> DeserializeSeed<'de> for Name<PhantomData<T>> {
    type Value = Name<Option<usize>>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_str(self)
    }
}

impl<T: Columns> Visitor<'_> for Name<PhantomData<T>> {
    type Value = Name<Option<usize>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Name(T::COLUMNS.iter().position(|column| column.name == name)))
    }
}

/// Reads one column into the rows; how many values it has.
struct Fill<'a, T: 'static> {
    column: &'static Column<T>,
    rows: &'a mut Vec<T>,
    fits: &'a mut Vec<bool>,
    most: usize,
}

impl<'de, T: Columns> DeserializeSeed<'de> for Fill<'_, T> {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<usize, D::Error> {
        reader.deserialize_seq(self)
    }
}

impl<'de, T: Columns> Visitor<'de> for Fill<'_, T> {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<usize, A::Error> {
        let mut count = 0;
        while count < self.most {
            let Some(scalar) = seq.next_element::<Scalar>()? else { return Ok(count) };
            if count == self.rows.len() {
                if count == self.rows.capacity() {
                    // Bounds the number of rows.
                    let more = count.max(64).min(self.most - count);
                    self.rows.reserve_exact(more);
                    self.fits.reserve_exact(more);
                }
                self.rows.push(T::default());
                self.fits.push(true);
            }
            if !(self.column.set)(&mut self.rows[count], scalar) {
                self.fits[count] = false;
            }
            count += 1;
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_field_of_a_sample_is_a_column() {
        fn names<T: Columns + Serialize>() {
            let sample = serde_json::to_value(T::default()).unwrap();
            let mut fields: Vec<&str> =
                sample.as_object().unwrap().keys().map(String::as_str).collect();
            let mut columns: Vec<&str> = T::COLUMNS.iter().map(|column| column.name).collect();
            fields.sort_unstable();
            columns.sort_unstable();
            assert_eq!(fields, columns);
        }
        names::<Sample>();
        names::<ReceiverSample>();
        names::<TimedDatagram>();
    }

    #[test]
    fn samples_that_do_not_fit_are_skipped() {
        let read = |value: serde_json::Value| rows::<ReceiverSample>(&value.to_string());
        let times = |rows: &[ReceiverSample]| rows.iter().map(|row| row.t_s).collect::<Vec<_>>();
        let padding = "x".repeat(400);
        let value = json!({"padding": padding, "t_s": [0, 1.5, 2, 3], "received_bytes": [1, -1, 3],
            "window_bytes": [null, 7, 9, 9, 9], "min_rtt_us": [1, 2, 1e3]});
        assert_eq!(
            times(&read(value)),
            [0.0],
            "one does not fit, one is no count, one has no bytes"
        );
        let value = json!({"padding": padding, "t_s": [0, 1], "received_bytes": [5, 6]});
        assert_eq!(times(&read(value)), [0.0, 1.0], "what may be missing is missing");
        for value in [json!({"t_s": [0, 1]}), json!([1]), json!(null), json!({"t_s": 5})] {
            assert!(read(value.clone()).is_empty(), "{value}");
        }
    }

    #[test]
    fn samples_take_at_most_the_size_of_their_text() {
        let zeros = vec![0; 20_000];
        let text = json!({"t_s": zeros, "received_bytes": zeros}).to_string();
        let read: Vec<ReceiverSample> = rows(&text);
        assert!(read.len() * size_of::<ReceiverSample>() * 2 <= HALVES_PER_BYTE * text.len());
        assert!(read.capacity() <= MAX_ROWS && !read.is_empty());
    }
}
