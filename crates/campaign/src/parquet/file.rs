//! One Parquet file: a table of optional columns, uncompressed and in plain encoding (Apache
//! Parquet format, version 1: "File Format", "Data Pages", "Encodings").
//!
//! ```text
//!  "PAR1"  page of column 1  page of column 2 ...  metadata  length of it (u32)  "PAR1"
//! ```

use super::thrift::{self, Kind, Struct};
use std::io::{self, Write};

/// At either end of a file.
const MAGIC: &[u8; 4] = b"PAR1";

/// Plain values, and run lengths for the levels.
const PLAIN: i32 = 0;
const RLE: i32 = 3;

/// The values of a column; each may be missing.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Values {
    Text(Vec<Option<String>>),
    Whole(Vec<Option<i64>>),
    Real(Vec<Option<f64>>),
}

impl Values {
    /// The number of the physical type: INT64, DOUBLE or BYTE_ARRAY.
    fn physical_type(&self) -> i32 {
        match self {
            Values::Whole(_) => 2,
            Values::Real(_) => 5,
            Values::Text(_) => 6,
        }
    }

    fn len(&self) -> usize {
        match self {
            Values::Text(values) => values.len(),
            Values::Whole(values) => values.len(),
            Values::Real(values) => values.len(),
        }
    }

    /// What a data page has: which values are there, then those.
    fn page(&self) -> Vec<u8> {
        let mut page = Vec::new();
        match self {
            Values::Text(values) => {
                levels(&mut page, values);
                for text in values.iter().flatten() {
                    page.extend_from_slice(&count(text.len()).to_le_bytes());
                    page.extend_from_slice(text.as_bytes());
                }
            }
            Values::Whole(values) => {
                levels(&mut page, values);
                let values = values.iter().flatten();
                values.for_each(|value| page.extend_from_slice(&value.to_le_bytes()));
            }
            Values::Real(values) => {
                levels(&mut page, values);
                let values = values.iter().flatten();
                values.for_each(|value| page.extend_from_slice(&value.to_le_bytes()));
            }
        }
        page
    }
}

/// A table has far fewer rows and bytes than these numbers can count.
fn count(length: usize) -> i32 {
    i32::try_from(length).unwrap_or(i32::MAX)
}

/// Definition levels of one bit: packed in groups of eight, after their length in bytes.
fn levels<T>(page: &mut Vec<u8>, values: &[Option<T>]) {
    let groups = values.chunks(8);
    let mut packed = Vec::new();
    thrift::unsigned(&mut packed, (groups.len() as u64) << 1 | 1);
    for group in groups {
        let bits = group.iter().enumerate().map(|(at, value)| u8::from(value.is_some()) << at);
        packed.push(bits.sum());
    }
    page.extend_from_slice(&count(packed.len()).to_le_bytes());
    page.extend_from_slice(&packed);
}

/// A column's page in the file.
struct Chunk {
    offset: i64,
    /// Header included.
    bytes: i64,
}

/// Writes a table; all columns have as many values.
pub(super) fn write(mut out: impl Write, columns: &[(String, Values)]) -> io::Result<()> {
    out.write_all(MAGIC)?;
    let mut offset = MAGIC.len() as i64;
    let mut chunks = Vec::new();
    for (_, values) in columns {
        let page = values.page();
        let mut whole = Vec::new();
        thrift::write(&mut whole, |header| {
            header.i32(1, 0); // A data page.
            header.i32(2, count(page.len()));
            header.i32(3, count(page.len()));
            header.structure(5, |data| {
                data.i32(1, count(values.len()));
                data.i32(2, PLAIN);
                data.i32(3, RLE);
                data.i32(4, RLE);
            });
        });
        whole.extend_from_slice(&page);
        out.write_all(&whole)?;
        let bytes = whole.len() as i64;
        chunks.push(Chunk { offset, bytes });
        offset += bytes;
    }
    let mut metadata = Vec::new();
    thrift::write(&mut metadata, |file| self::metadata(file, columns, &chunks));
    out.write_all(&metadata)?;
    out.write_all(&count(metadata.len()).to_le_bytes())?;
    out.write_all(MAGIC)
}

fn metadata(file: &mut Struct<'_>, columns: &[(String, Values)], chunks: &[Chunk]) {
    let rows = columns.first().map_or(0, |(_, values)| values.len()) as i64;
    file.i32(1, 1);
    // The root, then the columns.
    let elements: Vec<Option<&(String, Values)>> =
        std::iter::once(None).chain(columns.iter().map(Some)).collect();
    file.list(2, Kind::Struct, elements.into_iter(), |out, element| {
        thrift::write(out, |element_out| match element {
            None => {
                element_out.text(4, "runs");
                element_out.i32(5, count(columns.len()));
            }
            Some((name, values)) => {
                element_out.i32(1, values.physical_type());
                element_out.i32(3, 1); // Optional.
                element_out.text(4, name);
                if let Values::Text(_) = values {
                    element_out.i32(6, 0); // UTF-8.
                }
            }
        });
    });
    file.i64(3, rows);
    file.list(4, Kind::Struct, [()].into_iter(), |out, ()| {
        thrift::write(out, |group| {
            let pairs: Vec<_> = columns.iter().zip(chunks).collect();
            group.list(1, Kind::Struct, pairs.into_iter(), |out, (column, chunk)| {
                thrift::write(out, |written| column_chunk(written, column, chunk));
            });
            group.i64(2, chunks.iter().map(|chunk| chunk.bytes).sum());
            group.i64(3, rows);
        });
    });
    file.text(6, concat!("longhaul ", env!("CARGO_PKG_VERSION")));
}

fn column_chunk(out: &mut Struct<'_>, (name, values): &(String, Values), chunk: &Chunk) {
    out.i64(2, chunk.offset);
    out.structure(3, |column| {
        column.i32(1, values.physical_type());
        column.list(2, Kind::I32, [PLAIN, RLE].into_iter(), |out, encoding| {
            thrift::integer(out, encoding.into());
        });
        column.list(3, Kind::Binary, [name].into_iter(), |out, name| thrift::binary(out, name));
        column.i32(4, 0); // Uncompressed.
        column.i64(5, values.len() as i64);
        column.i64(6, chunk.bytes);
        column.i64(7, chunk.bytes);
        column.i64(9, chunk.offset);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_its_pages_between_its_magic_numbers() {
        let column = ("n".to_owned(), Values::Whole(vec![Some(7), None, Some(-1)]));
        let mut out = Vec::new();
        write(&mut out, std::slice::from_ref(&column)).unwrap();
        assert!(out.starts_with(MAGIC) && out.ends_with(MAGIC));
        // One group of eight levels: the first and the third value are there.
        let page = column.1.page();
        assert_eq!(page[..6], [2, 0, 0, 0, 0x03, 0b101]);
        assert_eq!(page[6..], [7i64.to_le_bytes(), (-1i64).to_le_bytes()].concat());
        assert!(out.windows(page.len()).any(|part| part == page));
        let length = u32::from_le_bytes(out[out.len() - 8..out.len() - 4].try_into().unwrap());
        assert!((length as usize) < out.len() - 12);
    }
}
