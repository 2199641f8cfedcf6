//! Thrift's compact protocol, as far as Parquet's metadata needs it (Apache Thrift, "Thrift
//! compact protocol": little-endian varints, zigzag integers, field numbers as differences).

/// What a field or an element of a list is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThriftType {
    I32 = 5,
    I64 = 6,
    Binary = 8,
    List = 9,
    Struct = 12,
}

/// A struct that is being written; its fields come in the order of their numbers.
#[derive(Debug)]
pub(crate) struct Struct<'a> {
    out: &'a mut Vec<u8>,
    last: u8,
}

/// Writes a struct.
pub(crate) fn write(out: &mut Vec<u8>, fields: impl FnOnce(&mut Struct<'_>)) {
    let mut written = Struct { out, last: 0 };
    fields(&mut written);
    written.out.push(0);
}

impl Struct<'_> {
    /// Numbers of fields differ by less than 16 here.
    fn field(&mut self, number: u8, kind: ThriftType) {
        self.out.push((number - self.last) << 4 | kind as u8);
        self.last = number;
    }

    pub(crate) fn i32(&mut self, number: u8, value: i32) {
        self.field(number, ThriftType::I32);
        integer(self.out, value.into());
    }

    pub(crate) fn i64(&mut self, number: u8, value: i64) {
        self.field(number, ThriftType::I64);
        integer(self.out, value);
    }

    pub(crate) fn text(&mut self, number: u8, value: &str) {
        self.field(number, ThriftType::Binary);
        binary(self.out, value);
    }

    pub(crate) fn structure(&mut self, number: u8, fields: impl FnOnce(&mut Struct<'_>)) {
        self.field(number, ThriftType::Struct);
        write(self.out, fields);
    }

    /// A list whose elements `write` writes.
    pub(crate) fn list<T>(
        &mut self,
        number: u8,
        kind: ThriftType,
        elements: impl ExactSizeIterator<Item = T>,
        mut write: impl FnMut(&mut Vec<u8>, T),
    ) {
        self.field(number, ThriftType::List);
        match u8::try_from(elements.len()) {
            Ok(few) if few < 15 => self.out.push(few << 4 | kind as u8),
            _ => {
                self.out.push(0xf0 | kind as u8);
                unsigned(self.out, elements.len() as u64);
            }
        }
        elements.for_each(|element| write(self.out, element));
    }
}

/// A number without sign, seven bits a byte, the lowest first.
pub(crate) fn unsigned(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A number whose sign is its lowest bit.
pub(crate) fn integer(out: &mut Vec<u8>, value: i64) {
    unsigned(out, (value << 1 ^ value >> 63).cast_unsigned());
}

pub(crate) fn binary(out: &mut Vec<u8>, value: &str) {
    unsigned(out, value.len() as u64);
    out.extend_from_slice(value.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structs_are_as_the_protocol_has_them() {
        let mut out = Vec::new();
        write(&mut out, |fields| {
            fields.i32(1, -1);
            fields.text(4, "ab");
            fields.list(5, ThriftType::I32, [1, 150].iter(), |out, value| integer(out, *value));
            fields.structure(20, |inner| inner.i64(3, 64));
        });
        let expected = [
            0x15, 0x01, // field 1, -1
            0x38, 0x02, b'a', b'b', // field 4
            0x19, 0x25, 0x02, 0xac, 0x02, // field 5: two numbers, 1 and 150
            0xfc, 0x36, 0x80, 0x01, 0x00, // field 20: a struct with field 3, 64
            0x00,
        ];
        assert_eq!(out, expected);
        let mut long = Vec::new();
        write(&mut long, |fields| {
            fields.list(1, ThriftType::Binary, [""; 15].iter(), |out, value| binary(out, value));
        });
        assert_eq!(long[..3], [0x19, 0xf8, 15]);
    }
}
