//! The capture of a test's packets: those between this host and the server's ports.

use crate::cross_traffic::device_towards;
use crate::{Fault, Problem, StopFlag};
use host::address;
use host::privileges::User;
use host::resolve;
use live_capture::{CaptureConfig, Ending, Limits, LiveCapture, Output, Totals, WriteFormat};
use perf::client::ClientConfig;
use record::CaptureReport;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// After the test, for the packets that close its connections.
const LINGER: Duration = Duration::from_millis(300);

/// Most addresses of the server.
const MAX_ADDRESSES: usize = 16;

/// A capture beside a test.
pub(super) struct TestCapture {
    config: CaptureConfig,
    ended: StopFlag,
    thread: JoinHandle<(Totals, Ending)>,
}

/// The capture, and what went wrong meanwhile.
pub(super) struct Captured {
    pub(super) report: CaptureReport,
    pub(super) failed: Option<Problem>,
}

impl TestCapture {
    /// Opens the socket and the file; from here on packets are captured.
    pub(super) fn start(
        test: &ClientConfig,
        file: &Path,
        stop: &StopFlag,
    ) -> Result<Self, Problem> {
        let config = config(test, stop)?;
        let format = if file.extension().is_some_and(|ending| ending == "pcap") {
            WriteFormat::Pcap
        } else {
            WriteFormat::Pcapng
        };
        let user = User::instead_of_root().filter(|user| user.is_caller());
        let output = Output::File(file.to_owned());
        let capture = LiveCapture::open(&config, output, format, user)?;
        let ended = StopFlag::new();
        let flag = ended.clone();
        let run = move || capture.run(Limits::default(), &|| flag.is_raised(), &mut |_| ());
        let thread = thread::Builder::new().name("capture".to_owned()).spawn(run);
        Ok(TestCapture {
            config,
            ended,
            thread: thread.map_err(|error| Problem::new(Fault::Internal, error))?,
        })
    }

    /// Ends it after the test's last packets.
    pub(super) fn finish(self) -> Captured {
        thread::sleep(LINGER);
        self.ended.raise();
        let (totals, ending) =
            self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // That the test ended it is no interruption.
        let ending = if matches!(ending, Ending::Stopped) { Ending::Limit } else { ending };
        let report = live_capture::report(&self.config, &totals, &ending);
        let failed = ending.problem(&totals, &self.config.interface);
        Captured { report, failed }
    }
}

/// The server's addresses and ports, on the interface of the route to it; on all where its
/// addresses have several.
fn config(test: &ClientConfig, stop: &StopFlag) -> Result<CaptureConfig, Problem> {
    let (first, last) = (*test.ports.start(), *test.ports.end());
    let stopped = || stop.is_raised();
    let found = resolve::resolve(&test.host, first, test.family, test.bind, &stopped);
    let Some(mut servers) = found.map_err(|error| Problem::new(Fault::Request, error))? else {
        return Err(Problem::new(Fault::Interrupted, "interrupted"));
    };
    servers.truncate(MAX_ADDRESSES);
    let mut devices: Vec<String> = match &test.device {
        Some(device) => vec![device.clone()],
        None => servers.iter().map(|server| device(*server, test.bind)).collect(),
    };
    devices.dedup();
    let interface = match devices.as_slice() {
        [only] => only.clone(),
        _ => "any".to_owned(),
    };
    let hosts: Vec<String> = servers.iter().map(|server| format!("host {}", server.ip())).collect();
    let filter = format!("({}) and portrange {first}-{last}", hosts.join(" or "));
    Ok(CaptureConfig { filter, ..CaptureConfig::headers(interface) })
}

/// The interface of the route to a server; `any` where it is unknown.
fn device(server: SocketAddr, bind: Option<IpAddr>) -> String {
    if let Some(zone) = address::zone_name(server) {
        return zone;
    }
    let local = bind.unwrap_or(address::any_like(server).ip());
    let local = UdpSocket::bind((local, 0)).and_then(|socket| {
        // Sends nothing: the kernel only chooses a route.
        socket.connect(server)?;
        socket.local_addr()
    });
    let device = local.ok().and_then(|local| device_towards(server.ip(), local.ip()));
    device.unwrap_or_else(|| "any".to_owned())
}
