//! The fields of packets by the names of Wireshark, and display filters over them.
//!
//! Pure: no I/O, no clock. A [`PacketView`] is a packet with its layers and what
//! [`Tracker`] knows of it from the packets before; fields are read out of it when they are
//! asked for. A [`Filter`] is compiled once; testing a packet allocates only for texts that are
//! composed, such as `frame.protocols`.
//!
//! | module | contents |
//! |---|---|
//! | [`field`] | the table of fields, and the names of protocols |
//! | [`application`] | protocols of payloads, by port and type |
//! | [`expert`] | Wireshark's expert information |
//! | [`iperf3_control`] | iperf3's control connections |
//! | [`follow`] | the payload of a stream in order |
//! | [`value`] | values and how they are shown |
//! | [`view`] | a packet, and what is known of its TCP stream |
//! | `values` | the values of each field in a header |
//! | [`filter`] | from the text of a filter to its verdict |
//! | [`summary`] | the columns of a packet list |
//! | [`detail`] | one packet with all its fields |

pub mod application;
mod date;
pub mod detail;
pub mod expert;
pub mod field;
pub mod filter;
pub mod follow;
pub mod iperf3_control;
mod lookup;
mod names;
pub mod summary;
pub mod value;
mod values;
pub mod view;

pub use field::Field;
pub use filter::Filter;
pub use summary::Summary;
pub use value::{FieldKind, Value};
pub use view::{PacketView, Tracker};
