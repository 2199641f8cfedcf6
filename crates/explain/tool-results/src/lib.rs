//! Results of other tools as measurements: iperf3, iperf 2, `ss`, ndt7 and flent.
//!
//! [`read`] recognises the format by its content and returns a [`record::Measurement`] for each
//! transfer in it. `Measurement::tool` names the tool, what it does not report, and the test
//! that would reveal more. Pure: no I/O, no clock. Memory is bounded: at most [`MAX_SIZE`]
//! of text, of which a bounded number of samples is kept.
//!
//! | format | module |
//! |---|---|
//! | which one it is | `format`; none, `not_a_result` |
//! | text of a file: packed, UTF-16 | `decode` |
//! | JSON among other lines | `json_document` |
//! | iperf3 `-J`, `--json-stream` | `iperf3` |
//! | iperf 2 | `iperf2`; `-y C`, `iperf2_csv` |
//! | text of iperf3 and iperf 2 as it is pasted | `pasted_text`, a line of it `text_row` |
//! | iperf 2's text, `-e` | `iperf2_text` |
//! | iperf3's text | `iperf3/text` |
//! | `ss -tin`, once or as a series | `ss`, its details [`ss_details`] |
//! | ndt7: the client's lines, the server's archival JSON | `ndt7`, Linux's figures `ndt7_tcp_info` |
//! | an ndt7 server's messages during a test | [`ndt7_server`] |
//! | flent's data files | `flent` |
//! | interval reports as samples | `intervals` |
//! | the sample at a connection's start | `start` |
//! | a measurement of what was read | `transfer` |

mod decode;
mod flent;
mod format;
mod intervals;
mod iperf2;
mod iperf2_csv;
mod iperf2_text;
mod iperf3;
mod json_document;
mod ndt7;
pub mod ndt7_server;
mod ndt7_tcp_info;
mod not_a_result;
mod number;
mod pasted_text;
mod ss;
pub mod ss_details;
mod start;
mod text_row;
mod transfer;
mod unix_seconds;

pub use format::read;
pub use not_a_result::{MAX_SIZE, NotAResult};
