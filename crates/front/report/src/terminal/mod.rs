//! Terminal output that never exceeds the terminal's width.
//!
//! Functions that return one line ([`IntervalTable::row`], [`progress()`]) end without a
//! newline, so that the caller can overwrite the line; blocks end with one. No line
//! has trailing spaces, and without colour there are no escape sequences.

mod baseline;
mod bdp_report;
mod boost_plan;
mod boost_status;
mod boost_verify;
mod calc_result;
mod canvas;
mod capture_changes;
mod capture_delays;
mod capture_expert;
mod capture_handshake;
mod capture_io;
mod capture_merge;
mod capture_packets;
mod capture_streams;
mod capture_summary;
mod capture_tables;
mod column_units;
mod doctor;
mod find_rate;
mod finding;
#[cfg(test)]
mod fit;
mod fold;
mod follow;
mod graph;
mod interfaces;
mod intervals;
mod iperf3_test;
mod line;
mod one_screen;
mod pasted;
mod ping;
mod plan;
mod plot;
mod progress;
mod recording;
mod repeats;
mod route;
mod segments;
mod settings;
mod shares;
mod sim;
mod sim_advice;
mod sim_comparison;
mod sim_table;
mod sparkline;
mod study;
mod study_comparison;
mod study_plan;
mod style;
mod summary;
mod tune;
mod tune_route;
mod under_load;
mod verify;
mod watch;
mod watch_help;

pub use baseline::{BaselineProgress, baseline, baseline_progress, baseline_start, baseline_test};
pub use bdp_report::bdp_report;
pub use boost_plan::boost_plan;
pub use boost_status::boost_status;
pub use boost_verify::{boost_run, boost_verification};
pub use calc_result::calc_result;
pub use capture_expert::{ExpertRow, capture_expert};
pub use capture_handshake::{HandshakeRow, HandshakeStream, capture_handshakes};
pub use capture_io::{IoBin, IoCurve, IoUnit, capture_io};
pub use capture_merge::{MergedCapture, capture_merge};
pub use capture_packets::{PacketRow, PacketTable, field_list, packet_detail};
pub use capture_streams::{
    StreamRow, capture_streams, congestion, stream_sentences, time_by_cause,
};
pub use capture_summary::{CaptureSummary, capture_summary};
pub(crate) use capture_tables::address;
pub use capture_tables::{
    ConversationRow, capture_conversations, capture_endpoints, capture_hierarchy,
};
pub use doctor::{doctor, doctor_commands};
pub use find_rate::{find_rate, trial_header, trial_row};
pub use finding::{finding, next_command, notes};
pub use fold::fold;
pub use follow::follow;
pub use interfaces::interfaces;
pub use intervals::{IntervalTable, Rows, totals};
pub use iperf3_test::iperf3_test;
pub use one_screen::{Fix, one_screen};
pub use pasted::pasted;
pub use ping::{PingReply, ReplyKind, ping_reply, ping_summary};
pub use plan::plan;
pub use plot::{Trace, plot};
pub use progress::progress;
pub use recording::{ConnectionSummary, recorded_connections};
pub use repeats::{comparison, decision, repeats};
pub use route::route;
pub use sim::sim;
pub use sim_advice::sim_advice;
pub use sim_comparison::sim_comparison;
pub use study::{studies, study};
pub use study_comparison::study_comparison;
pub use study_plan::{study_plan, study_programs};
pub use summary::{path, summary};
pub use tune::{tune_applied, tune_plan, tune_rolled_back, tune_status};
pub use tune_route::{tune_route_applied, tune_route_plan};
pub use under_load::under_load;
pub use verify::{verify_plan, verify_report, verify_step};
pub use watch::{Viewport, watch};
pub use watch_help::watch_help;

/// Most columns of running text and tables; longer lines are hard to read.
const MAX_TEXT_WIDTH: usize = 100;

/// Capabilities of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether to write SGR escape sequences.
    pub colour: bool,
    /// Columns; no line is longer.
    pub width: usize,
    /// Whether to use characters beyond ASCII.
    pub unicode: bool,
}

impl Style {
    /// Columns that text and tables use.
    fn text_width(&self) -> usize {
        self.width.clamp(1, MAX_TEXT_WIDTH)
    }
}
