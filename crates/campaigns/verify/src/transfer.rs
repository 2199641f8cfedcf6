//! One transfer between the hosts of a lab, by our own client and server.

use crate::VerifyError;
use lab::Lab;
use perf::client::{self, ClientConfig, EndAfter};
use perf::server::{Server, ServerConfig};
use perf::{Event, Interval, ServerEvent, StopFlag};
use record::Measurement;
use std::time::Duration;

/// Interval of reports and samples: enough points for a curve of a few seconds.
const REPORT_INTERVAL: Duration = Duration::from_millis(500);
const SAMPLE: Duration = Duration::from_millis(50);

/// Sends from the lab's client to its server for `seconds`.
pub(crate) fn run(
    lab: &Lab,
    seconds: f64,
    observe: &mut (dyn FnMut(Interval) + Send),
    stop: &StopFlag,
) -> Result<Measurement, VerifyError> {
    let [client, server] = [lab.client(), lab.server()].map(|host| &host.namespace);
    let config = ClientConfig {
        end: EndAfter::Seconds(seconds),
        sample_every: SAMPLE,
        report_every: REPORT_INTERVAL,
        watch_load: Duration::ZERO,
        ..ClientConfig::new(lab.server().ipv4.to_string())
    };
    let settings = ServerConfig { one_off: true, ..ServerConfig::default() };
    let listening = server.run(|| Server::bind(&settings)).map_err(VerifyError::Settings)??;
    let served = StopFlag::new();
    let measured = std::thread::scope(|scope| {
        let serving = scope.spawn(|| server.run(|| listening.serve(&served, &|_: ServerEvent| ())));
        let measured = client.run(|| {
            let mut forward = |event| {
                if let Event::Interval(interval) = event {
                    observe(interval);
                }
            };
            client::run(&config, &mut forward, stop)
        });
        served.raise();
        // The client's error is more specific than the server's.
        let _ = serving.join();
        measured
    });
    match measured.map_err(VerifyError::Settings)? {
        _ if stop.is_raised() => Err(VerifyError::Interrupted),
        result => Ok(result?.measurement),
    }
}
