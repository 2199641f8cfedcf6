//! The texts of the pages; those of the calculators' fields are in `calculators`.

pub(super) const SKIP: &str = "Skip to the content";
pub(super) const NAVIGATION: &str = "Pages";
pub(super) const FOOTER: &str = "Longhaul measures, explains, tunes and verifies. Everything on \
     this page was computed by this server; nothing was loaded from elsewhere.";

/// The pages of the navigation: path below the root, and name.
pub(super) const PAGES: [(&str, &str); 5] = [
    ("", "Speed test"),
    ("calc", "Calculators"),
    ("check", "Check a host"),
    ("explain", "Explain a result"),
    ("glossary", "Glossary"),
];

pub(super) const CALCULATORS: &str = "Calculators";
pub(super) const CALCULATORS_LEAD: &str = "Each calculator answers one question with its equation, the source of the equation, and the \
     range for which it is valid.";
pub(super) const COMPUTE: &str = "Compute";
pub(super) const EXAMPLE: &str = "The figures below are those of the example in the form.";
pub(super) const OPTIONAL: &str = "optional";
pub(super) const ALL_CALCULATORS: &str = "All calculators";
pub(super) const WRONG_INPUT: &str = "Check the input";
pub(super) const REQUIRED: &str = "a value is missing";

pub(super) const GLOSSARY: &str = "Glossary";
pub(super) const GLOSSARY_LEAD: &str =
    "Terms of throughput measurement and of long paths, as this site and its sources use them.";
pub(super) const LETTERS: &str = "Letters";

pub(super) const CHECK: &str = "Check a host";
pub(super) const CHECK_LEAD: &str = "Paste what one of these commands prints. Counters and connections are explained; the settings \
     of sysctl are checked against a rate at an RTT.";
pub(super) const CHECK_TEXT: &str = "Output of the command";
pub(super) const CHECK_RUN: &str = "Check";
/// Commands whose output [`CHECK`] reads, and their systems.
pub(super) const CHECK_COMMANDS: [(&str, &str); 4] = [
    ("netstat -st", "counters of TCP: Linux; netstat -s on macOS"),
    ("nstat -asz", "the same counters by the kernel's names: Linux"),
    ("ss -tin", "open connections: RTT, cwnd, retransmissions and limits: Linux"),
    ("sysctl -a", "settings: Linux; give the rate and the RTT that the host has to sustain"),
];

pub(super) const EXPLAIN: &str = "Explain a result";
pub(super) const EXPLAIN_LEAD: &str = "Paste the result of a test. The finding says what limited the transfer, with its equation, the \
     evidence, and what would help.";
pub(super) const EXPLAIN_TEXT: &str = "Result of the test";
pub(super) const EXPLAIN_RUN: &str = "Explain";
/// Commands whose output [`EXPLAIN`] reads.
pub(super) const EXPLAIN_COMMANDS: [(&str, &str); 6] = [
    ("iperf3 -c HOST -J", "JSON, also of --json-stream; or the text without -J"),
    ("iperf -c HOST -e -i 1", "iperf 2; or CSV with -y C"),
    ("ndt7-client -format=json", "the client's lines; or the server's archival JSON"),
    ("ss -tin", "once, or in a loop: a series of samples"),
    ("flent rrul -H HOST", "the data file, unpacked"),
    ("longhaul test HOST --json", "a measurement of Longhaul"),
];
pub(super) const NOT_KEPT: &str =
    "The text is read on this server and not kept. At most 1 MiB is accepted.";
pub(super) const TOO_LARGE: &str = "the text is too large: paste at most 1 MiB";
pub(super) const TOO_SLOW: &str = "the request did not arrive in time";
pub(super) const BUSY: &str =
    "too many texts of this address, or of all, are being read; try again";
pub(super) const ENCODED: &str = "compressed requests are not accepted";
pub(super) const NOT_A_FORM: &str = "only application/x-www-form-urlencoded is accepted";
