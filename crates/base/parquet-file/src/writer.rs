//! One Parquet file: a table of optional columns, uncompressed and in plain encoding (Apache
//! Parquet format, version 1: "File Format", "Data Pages", "Encodings").
//!
//! ```text
//!  "PAR1"  group 1: page of column 1, page of column 2 ...  group 2 ...
//!  metadata  length of it (u32)  "PAR1"
//! ```

use crate::thrift::{self, Struct, ThriftType};
use std::io::{self, Write};

/// At either end of a file.
const MAGIC: &[u8; 4] = b"PAR1";

/// Plain values, and run lengths for the levels.
const PLAIN: i32 = 0;
const RLE: i32 = 3;

/// What a column has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// UTF-8.
    Text,
    /// Integers of 64 bits.
    Whole,
    /// Floating-point numbers of 64 bits.
    Real,
    /// True or false.
    Flag,
}

impl ColumnType {
    /// The number of the physical type: BOOLEAN, INT64, DOUBLE or BYTE_ARRAY.
    const fn physical(self) -> i32 {
        match self {
            ColumnType::Flag => 0,
            ColumnType::Whole => 2,
            ColumnType::Real => 5,
            ColumnType::Text => 6,
        }
    }
}

/// A column of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: ColumnType,
}

/// The values of a column in a group; each may be missing.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Of [`ColumnType::Text`].
    Text(Vec<Option<String>>),
    /// Of [`ColumnType::Whole`].
    Whole(Vec<Option<i64>>),
    /// Of [`ColumnType::Real`].
    Real(Vec<Option<f64>>),
    /// Of [`ColumnType::Flag`].
    Flag(Vec<Option<bool>>),
}

impl Values {
    /// No values of a type.
    #[must_use]
    pub fn empty(kind: ColumnType) -> Self {
        match kind {
            ColumnType::Text => Values::Text(Vec::new()),
            ColumnType::Whole => Values::Whole(Vec::new()),
            ColumnType::Real => Values::Real(Vec::new()),
            ColumnType::Flag => Values::Flag(Vec::new()),
        }
    }

    /// Their type.
    #[must_use]
    pub const fn kind(&self) -> ColumnType {
        match self {
            Values::Text(_) => ColumnType::Text,
            Values::Whole(_) => ColumnType::Whole,
            Values::Real(_) => ColumnType::Real,
            Values::Flag(_) => ColumnType::Flag,
        }
    }

    fn len(&self) -> usize {
        match self {
            Values::Text(values) => values.len(),
            Values::Whole(values) => values.len(),
            Values::Real(values) => values.len(),
            Values::Flag(values) => values.len(),
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
            Values::Flag(values) => {
                levels(&mut page, values);
                let values: Vec<bool> = values.iter().flatten().copied().collect();
                page.extend(values.chunks(8).map(bits));
            }
        }
        page
    }
}

/// Up to eight bits, the lowest first.
fn bits(values: &[bool]) -> u8 {
    values.iter().enumerate().map(|(at, value)| u8::from(*value) << at).sum()
}

/// A group has far fewer rows and bytes than these numbers can count.
fn count(length: usize) -> i32 {
    i32::try_from(length).unwrap_or(i32::MAX)
}

/// Definition levels of one bit: packed in groups of eight, after their length in bytes.
fn levels<T>(page: &mut Vec<u8>, values: &[Option<T>]) {
    let groups = values.chunks(8);
    let mut packed = Vec::new();
    thrift::unsigned(&mut packed, (groups.len() as u64) << 1 | 1);
    for group in groups {
        let there: Vec<bool> = group.iter().map(Option::is_some).collect();
        packed.push(bits(&there));
    }
    page.extend_from_slice(&count(packed.len()).to_le_bytes());
    page.extend_from_slice(&packed);
}

/// A column's page in the file.
#[derive(Debug)]
struct Chunk {
    offset: i64,
    /// Header included.
    bytes: i64,
}

/// Rows that were written.
#[derive(Debug)]
struct Group {
    rows: i64,
    chunks: Vec<Chunk>,
}

/// Writes a table, group by group.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    offset: i64,
    columns: Vec<Column>,
    groups: Vec<Group>,
}

impl<W: Write> Writer<W> {
    /// Begins a file with these columns.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn new(mut out: W, columns: Vec<Column>) -> io::Result<Self> {
        out.write_all(MAGIC)?;
        Ok(Writer { out, offset: MAGIC.len() as i64, columns, groups: Vec::new() })
    }

    /// Writes rows: the values of each column, all of them as many and of the columns' types.
    /// No rows are no group.
    ///
    /// # Errors
    /// `out` cannot be written, or the values do not fit the columns.
    pub fn group(&mut self, values: &[Values]) -> io::Result<()> {
        let rows = values.first().map_or(0, Values::len);
        let fits = values.len() == self.columns.len()
            && values
                .iter()
                .zip(&self.columns)
                .all(|(values, column)| values.kind() == column.kind && values.len() == rows);
        if !fits {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "rows of other columns"));
        }
        if rows == 0 {
            return Ok(());
        }
        let mut chunks = Vec::new();
        for values in values {
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
            self.out.write_all(&whole)?;
            let bytes = whole.len() as i64;
            chunks.push(Chunk { offset: self.offset, bytes });
            self.offset += bytes;
        }
        self.groups.push(Group { rows: rows as i64, chunks });
        Ok(())
    }

    /// Completes the file.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        let mut metadata = Vec::new();
        thrift::write(&mut metadata, |file| self.metadata(file));
        self.out.write_all(&metadata)?;
        self.out.write_all(&count(metadata.len()).to_le_bytes())?;
        self.out.write_all(MAGIC)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn metadata(&self, file: &mut Struct<'_>) {
        file.i32(1, 1);
        // The root, then the columns.
        let elements: Vec<Option<&Column>> =
            std::iter::once(None).chain(self.columns.iter().map(Some)).collect();
        file.list(2, ThriftType::Struct, elements.into_iter(), |out, element| {
            thrift::write(out, |element_out| match element {
                None => {
                    element_out.text(4, "rows");
                    element_out.i32(5, count(self.columns.len()));
                }
                Some(column) => {
                    element_out.i32(1, column.kind.physical());
                    element_out.i32(3, 1); // Optional.
                    element_out.text(4, &column.name);
                    if column.kind == ColumnType::Text {
                        element_out.i32(6, 0); // UTF-8.
                    }
                }
            });
        });
        file.i64(3, self.groups.iter().map(|group| group.rows).sum());
        file.list(4, ThriftType::Struct, self.groups.iter(), |out, group| {
            thrift::write(out, |written| {
                let pairs: Vec<_> = self.columns.iter().zip(&group.chunks).collect();
                written.list(1, ThriftType::Struct, pairs.into_iter(), |out, (column, chunk)| {
                    thrift::write(out, |written| column_chunk(written, column, chunk, group.rows));
                });
                written.i64(2, group.chunks.iter().map(|chunk| chunk.bytes).sum());
                written.i64(3, group.rows);
            });
        });
        file.text(6, concat!("longhaul ", env!("CARGO_PKG_VERSION")));
    }
}

fn column_chunk(out: &mut Struct<'_>, column: &Column, chunk: &Chunk, rows: i64) {
    out.i64(2, chunk.offset);
    out.structure(3, |written| {
        written.i32(1, column.kind.physical());
        written.list(2, ThriftType::I32, [PLAIN, RLE].into_iter(), |out, encoding| {
            thrift::integer(out, encoding.into());
        });
        let path = [&column.name];
        written
            .list(3, ThriftType::Binary, path.into_iter(), |out, name| thrift::binary(out, name));
        written.i32(4, 0); // Uncompressed.
        written.i64(5, rows);
        written.i64(6, chunk.bytes);
        written.i64(7, chunk.bytes);
        written.i64(9, chunk.offset);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, kind: ColumnType) -> Column {
        Column { name: name.to_owned(), kind }
    }

    #[test]
    fn a_file_has_its_pages_between_its_magic_numbers() {
        let values = Values::Whole(vec![Some(7), None, Some(-1)]);
        let mut writer = Writer::new(Vec::new(), vec![column("n", ColumnType::Whole)]).unwrap();
        writer.group(std::slice::from_ref(&values)).unwrap();
        let out = writer.finish().unwrap();
        assert!(out.starts_with(MAGIC) && out.ends_with(MAGIC));
        // One group of eight levels: the first and the third value are there.
        let page = values.page();
        assert_eq!(page[..6], [2, 0, 0, 0, 0x03, 0b101]);
        assert_eq!(page[6..], [7i64.to_le_bytes(), (-1i64).to_le_bytes()].concat());
        assert!(out.windows(page.len()).any(|part| part == page));
        let length = u32::from_le_bytes(out[out.len() - 8..out.len() - 4].try_into().unwrap());
        assert!((length as usize) < out.len() - 12);
    }

    #[test]
    fn flags_are_packed_and_other_rows_are_refused() {
        let flags = Values::Flag(vec![Some(true), None, Some(false), Some(true)]);
        assert_eq!(flags.page()[6..], [0b101]);
        let columns = vec![column("a", ColumnType::Flag), column("b", ColumnType::Text)];
        let mut writer = Writer::new(Vec::new(), columns).unwrap();
        assert!(writer.group(std::slice::from_ref(&flags)).is_err());
        assert!(writer.group(&[flags.clone(), Values::Text(vec![None])]).is_err());
        assert!(writer.group(&[flags.clone(), flags]).is_err());
        assert!(writer.group(&[Values::Flag(Vec::new()), Values::Text(Vec::new())]).is_ok());
        assert!(writer.finish().unwrap().len() > 20);
    }
}
