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

pub(super) const RESULT: &str = "Result of";
pub(super) const RESULT_LEAD: &str =
    "A speed test between a visitor's browser and this server. Whoever has the link can see it.";
pub(super) const RESULT_INVALID: &str = "This result is invalid";
pub(super) const RESULT_FIGURES: &str = "Figures";
pub(super) const RESULT_HEADS: [&str; 3] = ["Figure", "Measured", "95 % interval"];
pub(super) const RESULT_EXPERIMENTS: &str = "What the experiments showed";
pub(super) const RESULT_REMEDIES: &str = "What would help";
pub(super) const RESULT_AT_SERVER: &str = "On the server";
pub(super) const RESULT_AT_VISITOR: &str = "On the visitor's system";
pub(super) const RESULT_UPLOAD_REMEDIES: &str = "What would help uploads";
pub(super) const RESULT_GAIN: &str = "Predicted gain";
pub(super) const RESULT_GAIN_MEASURED: &str = "Gain in this run";
/// Sentences of a result: the heading, and for each its name and its place.
pub(super) const RESULT_SENTENCES: [(&str, &[(&str, &str)]); 2] = [
    (
        "Where the queue is",
        &[
            ("Download", "/result/queue/download/sentence"),
            ("Upload", "/result/queue/upload/sentence"),
        ],
    ),
    ("IPv4 beside IPv6", &[("", "/result/families/sentence")]),
];
pub(super) const RESULT_STEPS: &str = "What was measured";
pub(super) const RESULT_STEP_HEADS: [&str; 4] = ["Measurement", "Rate", "RTT", "Finding"];
pub(super) const RESULT_DIFFERS: &str = "What other tests would have shown";
pub(super) const RESULT_DIFFERS_HEADS: [&str; 3] = ["Method", "Would show", "Rule"];
pub(super) const RESULT_FILES: &str = "Files";
pub(super) const RESULT_FILES_NOTE: &str =
    "The result, its samples, and the measurement of each step, which longhaul explain FILE reads.";
/// Figures that are words, and their places in a result.
pub(super) const RESULT_GRADES: [(&str, &str); 2] =
    [("Bufferbloat grade", "/result/bufferbloat/grade"), ("Limit", "/result/finding/limit")];

pub(super) const DOWNLOAD_ONE: &str = "Download, 1 connection";
pub(super) const DOWNLOAD: &str = "Download, several connections";
pub(super) const UPLOAD_ONE: &str = "Upload, 1 connection";
pub(super) const UPLOAD: &str = "Upload, several connections";
pub(super) const RTT_IDLE: &str = "Idle RTT";
pub(super) const RTT_DOWNLOAD: &str = "RTT during download";
pub(super) const RTT_UPLOAD: &str = "RTT during upload";
pub(super) const JITTER: &str = "Jitter";
pub(super) const LOSS: &str = "Loss";
pub(super) const RPM: &str = "Responsiveness";

pub(super) const COMPARE: &str = "Compare two results";
pub(super) const COMPARE_LEAD: &str =
    "Two kept results side by side, and whether they differ by more than they vary.";
pub(super) const COMPARE_FIGURE: &str = "Figure";
pub(super) const COMPARE_DIFFERENCE: &str = "Second against first";
pub(super) const COMPARE_HIGHER: &str = "higher";
pub(super) const COMPARE_LOWER: &str = "lower";
pub(super) const COMPARE_CANNOT_TELL: &str = "cannot tell: the intervals overlap";
pub(super) const COMPARE_NO_INTERVAL: &str = "cannot tell: no interval";
pub(super) const COMPARE_NOTE: &str = "In parentheses the 95 % interval, of the means of ten parts of the measurement: how much the \
     figure varied within it; of loss, from the datagrams counted. It says nothing of other times of the day.";
pub(super) const COMPARE_MISSING: &str =
    "One of the results is not here: it was deleted, or has given way to newer ones.";
pub(super) const COMPARE_FIRST: &str = "First result";
pub(super) const COMPARE_SECOND: &str = "Second result";
pub(super) const COMPARE_HINT: &str = "Its link, or its ID";
pub(super) const COMPARE_RUN: &str = "Compare";
