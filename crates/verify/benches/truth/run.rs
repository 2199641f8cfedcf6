//! One labelled transfer in a lab.

use crate::{Fallible, cases::Case};
use lab::{Lab, Options};
use probe::{
    ServerEvent, StopFlag,
    client::{self, ClientConfig},
    server::{Server, ServerConfig},
};
use record::Measurement;
use std::time::Duration;
use topology::Plan;

/// What it measured; `None` where the machine could not carry the path.
pub(crate) fn run(case: &Case) -> Fallible<Option<Measurement>> {
    let path = case.path.parse()?;
    let lab =
        Lab::start(&Plan::pair(path, case.congestion, &case.sysctls, true), Options::default())?;
    let [client, server] = [lab.client(), lab.server()].map(|host| &host.namespace);
    let config = ClientConfig {
        seconds: case.seconds,
        rate: case.rate,
        fq_rate: case.pacing,
        block: case.block,
        sample_every: Duration::from_millis(50),
        report_every: Duration::from_secs(60),
        watch_load: Duration::ZERO,
        ..ClientConfig::new(lab.server().ipv4.to_string())
    };
    let settings = ServerConfig { one_off: true, ..ServerConfig::default() };
    let listening = server.run(|| Server::bind(&settings))??;
    let served = StopFlag::new();
    let measured = std::thread::scope(|scope| {
        let serving = scope.spawn(|| server.run(|| listening.serve(&served, &|_: ServerEvent| ())));
        let measured = client.run(|| client::run(&config, &mut |_| (), &StopFlag::new()));
        served.raise();
        let _ = serving.join();
        measured
    })??;
    let report = lab.finish()?.into_path();
    Ok(report.valid.then_some(measured.measurement))
}
