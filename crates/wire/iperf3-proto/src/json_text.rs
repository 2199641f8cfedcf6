//! JSON that is passed through: kept as its text, never as a tree.
//!
//! A tree of `serde_json::Value` takes up to ninety times the memory of its
//! text (`{"":0},` repeated), and what a server printed is only printed again.

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor},
    ser::{Error as _, SerializeMap, SerializeSeq},
};
use serde_json::value::RawValue;
use std::{cell::Cell, fmt};

/// A JSON document as text, known to be valid and nested at most 127 deep.
#[derive(Debug, Clone)]
pub struct JsonText(Box<RawValue>);

impl JsonText {
    /// A value's JSON; `None` where it has none.
    #[must_use]
    pub fn of(value: &impl Serialize) -> Option<Self> {
        serde_json::value::to_raw_value(value).ok().and_then(JsonText::checked)
    }

    /// A peer's text; `None` where it is nested too deep or holds numbers or
    /// strings that cannot be written again.
    fn checked(raw: Box<RawValue>) -> Option<Self> {
        let text = JsonText(raw);
        serde_json::to_writer(std::io::sink(), &text).is_ok().then_some(text)
    }

    /// The text.
    #[must_use]
    pub fn get(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for JsonText {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

/// Reads a document that may be missing; one that cannot be written again
/// counts as missing.
pub(crate) fn maybe<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<JsonText>, D::Error> {
    Ok(Option::<Box<RawValue>>::deserialize(deserializer)?.and_then(JsonText::checked))
}

impl Serialize for JsonText {
    /// Value by value, so that the writer's own layout holds.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut reader = serde_json::Deserializer::from_str(self.get());
        Transcoded::new(&mut reader).serialize(serializer)
    }
}

/// What a deserializer reads, written by a serializer as it comes.
struct Transcoded<D>(Cell<Option<D>>);

impl<D> Transcoded<D> {
    fn new(reader: D) -> Self {
        Transcoded(Cell::new(Some(reader)))
    }
}

impl<'de, D: Deserializer<'de>> Serialize for Transcoded<D> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let reader = self.0.take().ok_or_else(|| S::Error::custom("written twice"))?;
        reader.deserialize_any(Writer(serializer)).map_err(S::Error::custom)
    }
}

struct Writer<S>(S);

impl<'de, S: Serializer> Visitor<'de> for Writer<S> {
    type Value = S::Ok;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_bool<E: serde::de::Error>(self, flag: bool) -> Result<S::Ok, E> {
        self.0.serialize_bool(flag).map_err(E::custom)
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<S::Ok, E> {
        self.0.serialize_i64(number).map_err(E::custom)
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<S::Ok, E> {
        self.0.serialize_u64(number).map_err(E::custom)
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<S::Ok, E> {
        self.0.serialize_f64(number).map_err(E::custom)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<S::Ok, E> {
        self.0.serialize_str(text).map_err(E::custom)
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<S::Ok, E> {
        self.0.serialize_unit().map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<S::Ok, A::Error> {
        let mut list = self.0.serialize_seq(None).map_err(A::Error::custom)?;
        while seq.next_element_seed(Element(&mut list))?.is_some() {}
        list.end().map_err(A::Error::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<S::Ok, A::Error> {
        let mut object = self.0.serialize_map(None).map_err(A::Error::custom)?;
        while map.next_key_seed(Key(&mut object))?.is_some() {
            map.next_value_seed(Member(&mut object))?;
        }
        object.end().map_err(A::Error::custom)
    }
}

struct Element<'a, S>(&'a mut S);
struct Key<'a, S>(&'a mut S);
struct Member<'a, S>(&'a mut S);

impl<'de, S: SerializeSeq> DeserializeSeed<'de> for Element<'_, S> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        self.0.serialize_element(&Transcoded::new(reader)).map_err(D::Error::custom)
    }
}

impl<'de, S: SerializeMap> DeserializeSeed<'de> for Key<'_, S> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        self.0.serialize_key(&Transcoded::new(reader)).map_err(D::Error::custom)
    }
}

impl<'de, S: SerializeMap> DeserializeSeed<'de> for Member<'_, S> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        self.0.serialize_value(&Transcoded::new(reader)).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(text: &str) -> Option<JsonText> {
        JsonText::checked(serde_json::from_str(text).unwrap())
    }

    #[test]
    fn what_is_written_is_what_was_read() {
        for text in [r#"{"a":[1,-2,3.5,null,true,"x\n"],"b":{"c":{}}}"#, "[]", "7", "\"\\u00e9\""] {
            let kept = read(text).unwrap();
            let value: Value = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_value(&kept).unwrap(), value);
            assert_eq!(serde_json::to_string(&kept).unwrap(), value.to_string());
        }
        let spaced = read("{ \"a\" : [ 1 ] }").unwrap();
        assert_eq!(serde_json::to_string(&spaced).unwrap(), r#"{"a":[1]}"#);
        assert_eq!(JsonText::of(&json!({"a": 1})), read(r#"{"a":1}"#));
    }

    #[test]
    fn what_cannot_be_written_is_not_kept() {
        let nested = |depth: usize| read(&format!("{}{}", "[".repeat(depth), "]".repeat(depth)));
        assert!(nested(100).is_some() && nested(200).is_none() && nested(100_000).is_none());
        assert!(read("1e999").is_none() && read(r#""\ud800""#).is_none());
    }
}
