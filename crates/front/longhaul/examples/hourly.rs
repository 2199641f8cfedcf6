//! Measures a path every hour, and appends each result to a file as a line of JSON:
//! `cargo run --example hourly -- HOST FILE [SECONDS [ROUNDS]]`.

use longhaul::ping::{PingMethod, PingRequest};
use longhaul::{Document, Request, StopFlag};
use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

/// Measures in rounds, one every so often, and stores the results. A round that fails is stored
/// with its problem.
pub(crate) fn measure(
    request: &PingRequest,
    file: &Path,
    every: Duration,
    rounds: u64,
    stop: &StopFlag,
) -> Result<(), Box<dyn Error>> {
    let request = Request::Ping(request.clone());
    request.check()?;
    let mut file = std::fs::File::options().create(true).append(true).open(file)?;
    for round in 0..rounds {
        if round > 0 {
            std::thread::sleep(every);
        }
        let line = match longhaul::run(request.clone(), &mut |_| {}, stop) {
            Ok(document @ Document::Ping(_)) => serde_json::to_string(&document)?,
            Ok(_) => unreachable!("the document is the request's"),
            Err(problem) => serde_json::to_string(&problem)?,
        };
        writeln!(file, "{line}")?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(host), Some(file)) = (words.next(), words.next()) else {
        return Err("give HOST FILE [SECONDS [ROUNDS]]".into());
    };
    let every = words.next().map_or(Ok(3600), |text| text.parse())?;
    let rounds = words.next().map_or(Ok(u64::MAX), |text| text.parse())?;
    let request = PingRequest { method: PingMethod::IcmpOrTcp, ..PingRequest::new(&host) };
    measure(&request, Path::new(&file), Duration::from_secs(every), rounds, &StopFlag::new())
}
