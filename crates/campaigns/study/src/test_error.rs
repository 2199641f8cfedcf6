//! Settings that contradict each other.

use crate::traffic::udt_controls;
use topology::PathError;
use units::ByteCount;

/// A test that cannot run as its settings have it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum TestError {
    #[error("the paths' seeds derive from that of [repeats]; remove seed")]
    Seed,
    #[error("the path: {0}")]
    Path(#[from] PathError),
    #[error("udp has no window; remove it, or use tcp")]
    UdpWindow,
    #[error("a window in bdp needs a path with a rate")]
    WindowNeedsRate,
    #[error("a window in bdp needs a path with an rtt")]
    WindowNeedsRtt,
    #[error("a window of {0}; it must be 3000 bytes to 1 GB")]
    Window(ByteCount),
    #[error("{total} is shared by all streams and {each} is that of each; leave one of them")]
    TotalAndEach { total: &'static str, each: &'static str },
    #[error("{total} is shared by the streams of one flow; this test has {flows} flows")]
    TotalOfFlows { total: &'static str, flows: usize },
    #[error(
        "total_streams = {total} cannot be shared equally among clients, of which hosts has \
         {clients}; it must be a multiple of {clients}, {clients} to {most}"
    )]
    TotalStreams { total: String, clients: u8, most: u32 },
    #[error(
        "total_window = {total} is {each} for each of {streams} streams; it must be {least} to \
         {most}"
    )]
    TotalWindow { total: String, each: ByteCount, streams: u32, least: ByteCount, most: ByteCount },
    #[error(
        "total_bitrate = {total} is less than 1 bit/s for each of {streams} streams; it must be \
         {streams} bit/s or more"
    )]
    TotalBitrate { total: String, streams: u32 },
    #[error(
        "the program '{program}' has no {{port}}, which distinguishes its connections from those \
         of other flows"
    )]
    NoPort { program: String },
    #[error(
        "programs with congestion = {} and {}: they use their host's, so it must be the same \
         for all programs of a test",
        congestion[0], congestion[1]
    )]
    ProgramsCongestion { congestion: [String; 2] },
    #[error("the program '{program}' has no {placeholder} for {setting}")]
    NoPlaceholder { program: String, placeholder: &'static str, setting: &'static str },
    #[error("{setting} does not apply to programs: the command lines of '{program}' decide it")]
    NotForPrograms { setting: &'static str, program: String },
    #[error("udp needs a bitrate, the offered rate")]
    UdpBitrate,
    #[error("pacing is for tcp; udp and udt are paced by bitrate")]
    Pacing,
    #[error("udt has no congestion control '{name}'; {}", udt_controls())]
    UdtCongestion { name: String },
    #[error("omit must be whole seconds, such as 2s")]
    Omit,
    #[error("udp sends generated data; source = file is for tcp and udt")]
    FileOverUdp,
    #[error("source = file is sent by the client; direction must be forward")]
    FileDirection,
    #[error("source = file needs disk, the rate of its disk")]
    FileDisk,
    #[error(
        "object is what a program fetches: it needs a program, and range and cache_state need it"
    )]
    Object,
    #[error("chunk must be 1 B to 64 MiB")]
    Chunk,
}
