//! Where a UDT test continues over TCP: UDP is blocked, or policed and TCP carries more.

use super::once::Measured;
use super::{TestEvent, TestRun, path_mtu};
use crate::{Problem, StopFlag};
use diagnose::repeats;
use perf::PerfError;
use perf::client::{self, ClientConfig, EndAfter, Transport, UdtOptions};
use record::Direction;
use units::BitRate;

/// A trial of TCP: what it may take for slow start, and what it is measured over, in s.
const TRIAL_OMIT_S: u32 = 1;
const TRIAL_S: f64 = 2.0;
/// A test of less than this is over before a trial is worth it, s.
const MIN_TEST_S: f64 = 5.0;
/// The rate that TCP has to reach, as a multiple of UDT's rate.
const ADVANTAGE: f64 = 1.5;

impl TestRun<'_> {
    /// One test as requested by `config`, with RTT probes to the port `probed`. Where UDP does not
    /// reach the server, or is policed, over TCP instead of UDT: not in native mode, which is
    /// encrypted.
    pub(super) fn carried(
        config: &ClientConfig,
        probed: Option<u16>,
        on_event: &mut dyn FnMut(TestEvent),
        stop: &StopFlag,
    ) -> Result<Measured, Problem> {
        let Some(udt) = config.transport.udt().filter(|_| !config.is_native()) else {
            return Ok(Self::attempt(config, probed, on_event, stop)?);
        };
        let path_mtu = path_mtu::below_the_route(config, stop);
        let transport = Transport::Udt(UdtOptions { path_mtu, ..udt });
        let config = &ClientConfig { transport, ..config.clone() };
        let noted = path_mtu.map(|mtu| {
            format!("the path MTU is {mtu} bytes, less than the route's: UDT sends smaller packets")
        });
        if let Some(note) = &noted {
            on_event(TestEvent::Note(note.clone()));
        }
        let mut measured = Self::over_udt_or_tcp(config, probed, on_event, stop)?;
        if let Some(note) = noted {
            measured.measurement.notes.insert(0, note);
        }
        Ok(measured)
    }

    /// One UDT test, over TCP where UDT does not reach the server.
    fn over_udt_or_tcp(
        config: &ClientConfig,
        probed: Option<u16>,
        on_event: &mut dyn FnMut(TestEvent),
        stop: &StopFlag,
    ) -> Result<Measured, Problem> {
        let (Some(udt), Some(over_tcp)) = (config.transport.udt(), config.fallback()) else {
            return Ok(Self::attempt(config, probed, on_event, stop)?);
        };
        let udt = UdtOptions { stops_if_policed: is_worth_a_trial(config), ..udt };
        let checked = ClientConfig { transport: Transport::Udt(udt), ..config.clone() };
        let (note, chosen) = match Self::attempt(&checked, probed, on_event, stop) {
            Err(PerfError::NoUdt { waited, .. }) => {
                let note = format!(
                    "switched from UDT to TCP: no UDP reply within {} ms; UDP is blocked on the path, \
                     or the server is not longhaul's",
                    waited.as_millis()
                );
                (note, over_tcp)
            }
            Err(PerfError::Policed { delivered, .. }) => {
                on_event(TestEvent::Note(format!(
                    "UDT loses packets without a queue and delivers {delivered}: UDP may be \
                     policed; trying TCP for 3 s"
                )));
                trial(config, over_tcp, delivered, stop)?
            }
            ended => return Ok(ended?),
        };
        on_event(TestEvent::Note(note.clone()));
        let mut measured = Self::attempt(&chosen, probed, on_event, stop)?;
        measured.measurement.notes.insert(0, note);
        Ok(measured)
    }
}

/// Returns true if a test is long enough, free to choose its rate, and sends from here.
fn is_worth_a_trial(config: &ClientConfig) -> bool {
    config.end.seconds().is_some_and(|seconds| seconds >= MIN_TEST_S)
        && config.rate.is_none()
        && config.direction == Direction::Forward
}

/// Measures TCP for a moment. What to continue with, and why.
fn trial(
    config: &ClientConfig,
    over_tcp: ClientConfig,
    udt: BitRate,
    stop: &StopFlag,
) -> Result<(String, ClientConfig), Problem> {
    let end = EndAfter::Seconds(TRIAL_S);
    let short = ClientConfig { end, omit_seconds: TRIAL_OMIT_S, ..over_tcp.clone() };
    let trial = client::run(&short, &mut |_| (), stop)?;
    let tcp = repeats::figures(&trial.measurement).throughput_bps;
    Ok(if tcp.as_f64() >= udt.as_f64() * ADVANTAGE {
        (
            format!(
                "switched from UDT to TCP: UDT carried {udt}, TCP carried {tcp}; UDP is policed"
            ),
            over_tcp,
        )
    } else {
        (format!("continuing over UDT: UDT carried {udt}, TCP carried {tcp}"), config.clone())
    })
}
