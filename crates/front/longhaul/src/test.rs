//! Throughput to a server and its limit: one test, repeated tests, a rate search.
//!
//! ```
//! use longhaul::StopFlag;
//! use longhaul::test::{self, EndAfter, TestDocument, TestEvent, TestRequest};
//! # use perf::ServerEvent;
//! # use perf::server::{Server, ServerConfig};
//! # let bind = Some([127, 0, 0, 1].into());
//! # let server = Server::bind(&ServerConfig { bind, port: 0, ..ServerConfig::default() })?;
//! # let (port, ended) = (server.local_addr().port(), StopFlag::new());
//! # let stop = ended.clone();
//! # let serving = std::thread::spawn(move || server.serve(&stop, &|_: ServerEvent| ()));
//!
//! let mut request = TestRequest::new("127.0.0.1");
//! request.transfer.end = EndAfter::Seconds(0.2);
//! # request.transfer.ports = port..=port;
//! let on_event = &mut |event| {
//!     if let TestEvent::Interval(interval) = event {
//!         println!("{}", interval.rate);
//!     }
//! };
//! let TestDocument::Once(result) = test::run(&request, on_event, &StopFlag::new())? else {
//!     unreachable!("the mode of a new request is one test")
//! };
//! println!("{}", result.report.finding.sentence);
//! # ended.raise();
//! # serving.join().unwrap()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod capture;
mod decide;
mod earlier;
mod find_rate;
mod fix;
mod line_class;
mod once;
mod path_mtu;
mod repeat;
mod report;
mod request;
mod udp_impact;
mod udt_fallback;

pub use earlier::Earlier;
pub use fix::fix;
pub use perf::client::{
    ClientConfig, EndAfter, Family, RisingTrain, TcpOptions, Transport, UdpOptions, UdtOptions,
};
pub use report::{StreamTotal, TestReport, TestResult, directions};
pub use request::{LatencyProbes, TestMode, TestRequest};

use crate::{Problem, StopFlag};
use record::{FindRateReport, Interval, Protocol, RateTry, RepeatReport};
use serde::Serialize;
use std::net::SocketAddr;
use units::{BitRate, ByteCount};

/// Events of [`run`], in order.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TestEvent {
    /// The requested datagram length: the largest that the path carries unfragmented.
    DatagramLength(ByteCount),
    /// A test of several begins.
    Repetition {
        /// Its number, from 1.
        number: u32,
        /// The number of all.
        count: u32,
    },
    /// A test of several failed; the next one follows.
    RepetitionFailed {
        /// Its number, from 1.
        number: u32,
        /// The reason.
        problem: Problem,
    },
    /// The streams of a test are open.
    Connected {
        /// The server.
        peer: SocketAddr,
        /// The transport of the test: TCP after UDT was given up.
        protocol: Protocol,
        /// The streams' ids.
        streams: Vec<u32>,
        /// Remarks so far, such as a clamped window; the measurement has them too.
        notes: Vec<String>,
    },
    /// A report interval of one stream, or of the sum, has ended.
    Interval(Interval),
    /// A remark on the path, or on how the test continues.
    Note(String),
    /// The result of the first test; the second one, which decides, follows.
    Measured(Box<TestResult>),
    /// The second test begins.
    SecondTest {
        /// Its purpose, and its difference from the first one.
        announcement: String,
        /// Its effect on other users of the path, if any.
        impact: Option<String>,
    },
    /// A rate search tries a rate.
    Trying(BitRate),
    /// The result of a try.
    Tried(RateTry),
    /// The reason the document that follows lacks something: the test broke off, or its second test
    /// or its capture failed.
    Incomplete(Problem),
}

/// The document of a [`TestMode`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum TestDocument {
    /// Of one test.
    Once(Box<TestResult>),
    /// Of repeated tests.
    Repeat(Box<RepeatReport>),
    /// Of a rate search.
    FindRate(Box<FindRateReport>),
}

/// Runs the tests.
///
/// # Errors
/// An invalid field, a name without address; no server, or one that refuses; a test that
/// failed before there was anything to report.
pub fn run(
    request: &TestRequest,
    on_event: &mut dyn FnMut(TestEvent),
    stop: &StopFlag,
) -> Result<TestDocument, Problem> {
    request.check()?;
    let mut transfer = request.settled_transfer();
    if request.fits_path {
        let length = path_mtu::datagram_length(&transfer, stop)?;
        on_event(TestEvent::DatagramLength(length));
        transfer.block = Some(length);
    }
    let test = TestRun { request, transfer };
    Ok(match &request.mode {
        TestMode::Once { decide, capture } => {
            TestDocument::Once(Box::new(test.once(*decide, capture.as_deref(), on_event, stop)?))
        }
        TestMode::Repeat { count } => {
            TestDocument::Repeat(Box::new(test.repeat(*count, on_event, stop)?))
        }
        TestMode::FindRate { loss_target, try_seconds } => {
            let end = EndAfter::Seconds(*try_seconds);
            let transfer = ClientConfig { end, rate: None, ..test.transfer };
            let limit = request.transfer.rate;
            let found = find_rate::run(transfer, limit, *loss_target, on_event, stop)?;
            TestDocument::FindRate(Box::new(found))
        }
    })
}

/// A checked request.
struct TestRun<'a> {
    request: &'a TestRequest,
    /// The transfer as it is run.
    transfer: ClientConfig,
}
