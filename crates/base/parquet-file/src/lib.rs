//! Tables as Parquet files. Pure: no I/O beyond the `Write` that it is given, no clock.
//!
//! Columns are optional values of text, whole numbers, real numbers or flags, uncompressed and
//! in plain encoding, which every reader of Parquet knows. Rows are written in groups, of which
//! a reader needs one at a time.

mod thrift;
mod writer;

pub use writer::{Column, ColumnType, Values, Writer};
