//! Prints a test's events as iperf3 does.

use super::args::Iperf3Args;
use super::output::Output;
use crate::failure::with_flags;
use host::sysctl;
use perf::{Interval, ServerOutput, Started};
use report::iperf3::facts::{Asked, End, Head, Protocol, Row, Side, Stream, socket};
use report::iperf3::json::{self, Document};
use report::iperf3::number::Format;
use report::iperf3::totals::Totals;
use report::iperf3::{summary, text};
use std::net::SocketAddr;

/// Output options of a test.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutputOptions {
    form: Form,
    format: Format,
    verbose: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Text,
    Document,
    Stream { whole: bool },
}

impl OutputOptions {
    pub(crate) fn of(args: &Iperf3Args) -> Self {
        let common = &args.common;
        let form = match (common.json, common.json_stream) {
            (_, true) => Form::Stream { whole: common.json_stream_full_output },
            (true, false) => Form::Document,
            (false, false) => Form::Text,
        };
        OutputOptions { form, format: common.format.unwrap_or_default(), verbose: common.verbose }
    }

    pub(crate) fn is_text(&self) -> bool {
        self.form == Form::Text
    }

    pub(crate) fn is_verbose(&self) -> bool {
        self.verbose && self.is_text()
    }
}

/// The system, as `uname -a` prints it.
pub(crate) fn system() -> String {
    let keys = ["kernel.ostype", "kernel.hostname", "kernel.osrelease", "kernel.version"];
    let mut words: Vec<String> = keys.iter().filter_map(|key| sysctl::read(key).ok()).collect();
    words.push(std::env::consts::ARCH.to_owned());
    words.join(" ")
}

/// The output of one test.
#[derive(Debug)]
pub(crate) struct Show {
    options: OutputOptions,
    head: Option<Head>,
    document: Document,
    totals: Totals,
    /// Rows of the interval that is not complete yet.
    waiting: Vec<Row>,
    first: bool,
    /// True if the client requested the server's output.
    output_requested: bool,
    /// Congestion control of this end, as far as known before the end of the test.
    congestion: Option<String>,
    /// Text so far, for that client.
    printed: Vec<String>,
}

impl Show {
    pub(crate) fn new(
        options: OutputOptions,
        title: Option<String>,
        extra: Option<String>,
    ) -> Self {
        Show {
            options,
            head: None,
            document: Document::new(&system(), title, extra),
            totals: Totals::default(),
            waiting: Vec::new(),
            first: true,
            output_requested: false,
            congestion: None,
            printed: Vec::new(),
        }
    }

    /// All streams are connected.
    pub(crate) fn begin(&mut self, head: Head, started: &Started, output: &mut Output) {
        self.output_requested = head.side == Side::Server && started.params.get_server_output;
        let own = || sysctl::read("net.ipv4.tcp_congestion_control").ok();
        self.congestion = started.params.congestion.clone().or_else(own);
        self.document.begin(&head);
        match self.options.form {
            Form::Text => self.print(text::head(&head, self.options.verbose), output),
            Form::Document => {}
            Form::Stream { .. } => output.whole(&self.document.start_line()),
        }
        self.head = Some(head);
    }

    /// Adds a row; an interval is printed when every stream has one.
    pub(crate) fn row(&mut self, interval: &Interval, output: &mut Output) {
        let Some(id) = interval.stream else { return };
        if self.waiting.iter().any(|row| row.id == id) {
            // A stream that has ended has no row.
            self.flush(output);
        }
        let all = self.head.as_ref().map_or(0, |head| head.streams.len());
        self.waiting.push(row(id, interval));
        if self.waiting.len() == all {
            self.flush(output);
        }
    }

    fn flush(&mut self, output: &mut Output) {
        let rows = std::mem::take(&mut self.waiting);
        let Some(head) = &self.head else { return };
        rows.iter().for_each(|row| self.totals.add(row));
        // A last fraction of an interval without data is not printed.
        let shown = |row: &Row| row.bytes > 0 || row.to_s - row.from_s >= head.interval_s * 0.1;
        if !rows.iter().any(shown) {
            return;
        }
        match self.options.form {
            Form::Text => {
                let lines = text::rows(head, &rows, self.options.format, self.first);
                self.print(lines, output);
            }
            Form::Document => self.document.interval(head, &rows),
            Form::Stream { whole } => {
                output.whole(&json::interval_line(head, &rows));
                if whole || self.output_requested {
                    self.document.interval(head, &rows);
                }
            }
        }
        self.first = false;
    }

    /// Prints the totals of both ends.
    pub(crate) fn end(
        &mut self,
        ours: Option<&iperf3_proto::Results>,
        theirs: Option<&iperf3_proto::Results>,
        output: &mut Output,
    ) {
        self.flush(output);
        let Some(end) = self.totals(ours, theirs) else { return };
        let Some(head) = &self.head else { return };
        self.document.end(head, &end);
        if self.options.is_text() {
            let lines = summary::summary(head, &end, self.options.format, self.options.verbose);
            self.print(lines, output);
        }
    }

    /// The totals so far.
    fn totals(
        &self,
        ours: Option<&iperf3_proto::Results>,
        theirs: Option<&iperf3_proto::Results>,
    ) -> Option<End> {
        Some(self.totals.end(self.head.as_ref()?, ours, theirs))
    }

    /// The test failed.
    pub(crate) fn fail(&mut self, why: &str, output: &mut Output) {
        let why = &with_flags(why);
        self.document.fail(why);
        if self.options.is_text() {
            output.complain(&format!("error - {why}"));
        }
    }

    /// The test was interrupted at this end.
    pub(crate) fn stopped(&mut self, output: &mut Output) {
        const WHY: &str = "interrupt - the client has terminated";
        self.document.fail(WHY);
        if self.options.is_text() {
            output.complain(WHY);
        }
    }

    /// Prints what remains.
    pub(crate) fn close(&mut self, output: &mut Output) {
        match self.options.form {
            Form::Text => {}
            Form::Document => output.whole(&self.document.text()),
            Form::Stream { whole } => {
                for line in self.document.last_lines() {
                    output.whole(&line);
                }
                if whole {
                    output.whole(&self.document.text());
                }
            }
        }
    }

    fn print(&mut self, lines: Vec<String>, output: &mut Output) {
        output.lines(&lines);
        if self.output_requested {
            self.printed.extend(lines);
        }
    }

    /// The output for the client that requested it, before the totals are printed.
    pub(crate) fn for_the_client(&mut self, output: &mut Output) -> Option<ServerOutput> {
        self.flush(output);
        let (head, mut end) = (self.head.as_ref()?, self.totals(None, None)?);
        if head.asked.protocol == Protocol::Tcp {
            // The results, which contain it, do not exist yet.
            end.congestion_local = self.congestion.clone();
        }
        if self.options.is_text() {
            let last = summary::summary(head, &end, self.options.format, self.options.verbose);
            let lines = self.printed.iter().chain(&last);
            return Some(ServerOutput::Text(lines.map(|line| format!("{line}\n")).collect()));
        }
        let mut document = self.document.clone();
        document.end(head, &end);
        document.for_results().map(ServerOutput::Json)
    }
}

fn row(id: u32, interval: &Interval) -> Row {
    let bytes = |count: Option<units::ByteCount>| count.map_or(0, units::ByteCount::bytes);
    let microseconds = |time: Option<units::Rtt>| {
        time.map_or(0, |time| u64::try_from(time.duration().as_micros()).unwrap_or(u64::MAX))
    };
    let datagrams = interval.datagrams.unwrap_or_default();
    Row {
        id,
        sending: interval.sending,
        from_s: interval.from_s,
        to_s: interval.to_s,
        bytes: interval.bytes.bytes(),
        retransmits: interval.retransmits.unwrap_or(0),
        cwnd: bytes(interval.cwnd),
        peer_window: bytes(interval.peer_window),
        rtt_us: microseconds(interval.rtt),
        rttvar_us: microseconds(interval.rttvar),
        pmtu: interval.pmtu.map_or(0, u64::from),
        reorder: 0,
        packets: datagrams.packets,
        lost: i64::try_from(datagrams.lost).unwrap_or(i64::MAX),
        out_of_order: datagrams.out_of_order,
        jitter_ms: datagrams.jitter.secs_f64() * 1e3,
        omitted: interval.omitted,
    }
}

/// The report's description of a started test. `server` is the server's name on
/// the client's command line; `None` at the server.
pub(crate) fn head(started: &Started, server: Option<&str>, args: &Iperf3Args) -> Head {
    let side = if server.is_some() { Side::Client } else { Side::Server };
    let params = &started.params;
    let protocol = if params.udp { Protocol::Udp } else { Protocol::Tcp };
    let host = |address: SocketAddr| address.ip().to_canonical().to_string();
    let count = |value: i64| u64::try_from(value).unwrap_or(0);
    let streams = (0..).zip(&started.streams).map(|(index, stream)| Stream {
        id: stream.id,
        socket: socket(index, side, protocol),
        sending: stream.sending,
        local_host: host(stream.local),
        local_port: stream.local.port(),
        remote_host: host(stream.peer),
        remote_port: stream.peer.port(),
    });
    Head {
        side,
        system: system(),
        peer_host: server.map_or_else(|| host(started.peer), str::to_owned),
        peer_port: started.peer.port(),
        unix_s: started.unix_s,
        cookie: started.cookie.clone(),
        control_mss: u64::from(started.control_mss),
        send_buffer: started.send_buffer.bytes(),
        receive_buffer: started.receive_buffer.bytes(),
        streams: streams.collect(),
        asked: Asked {
            protocol,
            streams: params.streams(),
            block: u64::from(params.block()),
            omit: count(params.omit),
            duration: count(params.time),
            bytes: count(params.num),
            blocks: count(params.blockcount),
            reverse: params.reverse,
            bidir: params.bidirectional,
            tos: count(params.tos),
            rate: count(params.bandwidth),
            fq_rate: count(params.fqrate),
            window: count(params.window),
            mss: count(params.mss),
            gso: params.gso != 0,
            gro: params.gro != 0,
        },
        interval_s: args.common.interval,
        title: params.title.clone(),
        extra_data: params.extra_data.clone(),
        file: args.common.file.as_ref().map(|path| {
            let size = std::fs::metadata(&**path).map_or(0, |file| file.len());
            (path.display().to_string(), size)
        }),
    }
}
