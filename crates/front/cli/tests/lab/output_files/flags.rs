//! Every flag that names an output file, each with a command that writes it. A test of the
//! program compares this table with the program's own.

/// A flag, and a command that is to write to a path.
pub(crate) struct Case {
    /// The subcommands and the flag.
    pub(crate) flag: &'static str,
    /// The arguments: `{}` is the path; others are the names of what the test prepares.
    pub(crate) command: &'static str,
    pub(crate) target: Target,
}

/// What a path names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    File,
    /// A directory that the command makes.
    NewDirectory,
    /// A directory that is there.
    Directory,
}

use Target::{Directory, File, NewDirectory};

const fn case(flag: &'static str, target: Target, command: &'static str) -> Case {
    Case { flag, command, target }
}

pub(crate) const CASES: [Case; 54] = [
    case("baseline --output", File, "baseline 127.0.0.1 -p {port} -o {}"),
    case("bdp --html", File, "bdp 100mbit 173ms --html {}"),
    case("boost run --report", File, "boost run --solo --report {} -- true"),
    case("capture --write", File, "capture lo -t 1 -w {}"),
    case("capture --write", File, "capture lo -t 1 -w {} --ring 2:100kB"),
    case("demo --html", File, "demo --html {}"),
    case("explain --html", File, "explain {measurement} --html {}"),
    case("iperf3 --file", File, "iperf3 -c 127.0.0.1 -p {port} -R -t 1 -F {}"),
    case("iperf3 --logfile", File, "iperf3 -s -1 --idle-timeout 1 -p {free} --logfile {}"),
    case("iperf3 --pidfile", File, "iperf3 -s -1 --idle-timeout 1 -p {free} --pidfile {}"),
    case("lab capture --write", File, "lab capture client --lab {lab} -w {}"),
    case("lab run --packet-log", File, "lab run --link {link} --packet-log {} -- true"),
    case("lab run --pcap", File, "lab run --link {link} --pcap client={} -- true"),
    case("lab run --queue-log", File, "lab run --link {link} --queue-log {} -- true"),
    case("lab run --report", File, "lab run --link {link} --report {} -- true"),
    case("lab shell --packet-log", File, "lab shell --link {link} --packet-log {}"),
    case("lab shell --pcap", File, "lab shell --link {link} --pcap client={}"),
    case("lab shell --queue-log", File, "lab shell --link {link} --queue-log {}"),
    case("lab shell --report", File, "lab shell --link {link} --report {}"),
    case(
        "lab up --packet-log",
        File,
        "lab up --shape star --hosts 2 --path {link} --packet-log {}",
    ),
    case("lab up --pcap", File, "lab up --shape star --hosts 2 --path {link} --pcap host1={}"),
    case("lab up --queue-log", File, "lab up --shape star --hosts 2 --path {link} --queue-log {}"),
    case("lab up --report", File, "lab up --shape star --hosts 2 --path {link} --report {}"),
    case("man --dir", Directory, "man --dir {}"),
    case("pcap --html", File, "pcap {client} --html {}"),
    case("pcap --parquet", File, "pcap {client} --parquet {}"),
    case("pcap conversations --parquet", File, "pcap conversations {client} --parquet {}"),
    case("pcap endpoints --parquet", File, "pcap endpoints {client} --parquet {}"),
    case("pcap follow --write", File, "pcap follow {client} 0 -w {}"),
    case("pcap handshake --parquet", File, "pcap handshake {client} --parquet {}"),
    case("pcap hierarchy --parquet", File, "pcap hierarchy {client} --parquet {}"),
    case("pcap merge --parquet", File, "pcap merge {client} {server} --parquet {}"),
    case("pcap packets --parquet", File, "pcap packets {client} --parquet {}"),
    case("pcap packets --write", File, "pcap packets {client} -w {}"),
    case("pcap streams --parquet", File, "pcap streams {client} --parquet {}"),
    case("pcap summary --html", File, "pcap summary {client} --html {}"),
    case("pcap summary --parquet", File, "pcap summary {client} --parquet {}"),
    case("server --root", Directory, "server -p {free} --copy-port 0 --tokens {tokens} --root {}"),
    case("sim advise --html", File, "sim advise --rate 1mbit --rtt 9ms -t 1 --runs 1 --html {}"),
    case("sim run --html", File, "sim run --link rate=10mbit,rtt=10ms -t 1 --html {}"),
    case("sim run --save", File, "sim run --link rate=10mbit,rtt=10ms -t 1 --save {}"),
    case("study compare --html", File, "study compare {study} {study} --html {}"),
    case("study export --parquet", NewDirectory, "study export {study} --parquet {}"),
    case("study export --svg", NewDirectory, "study export {study} --svg {}"),
    case("study merge --into", NewDirectory, "study merge {study} {study} --into {}"),
    case("study report --html", File, "study report {study} --html {}"),
    case("study run --out", NewDirectory, "study run {plan} --out {}"),
    case("test --html", File, "test 127.0.0.1 -p {port} -t 1 --html {}"),
    case("test --pcap", File, "test 127.0.0.1 -p {port} -t 1 --pcap {}"),
    case("test --save", File, "test 127.0.0.1 -p {port} -t 1 --save {}"),
    case("trace --geojson", File, "trace 127.0.0.1 -c 1 --geojson {}"),
    case("trace --html", File, "trace 127.0.0.1 -c 1 --html {}"),
    case("trace --kml", File, "trace 127.0.0.1 -c 1 --kml {}"),
    case("watch --record", File, "watch --record {} --count 1 -q"),
];

/// The file of a server is written when a client has come.
pub(crate) const SERVER_FILE: Case =
    case("server --file", File, "server -B 127.0.0.1 -p {free} --one-off -F {}");
