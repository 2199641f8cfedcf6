//! What iperf 2 prints of a test, for programs that parse it.

pub mod csv;
pub mod text;
