//! A visitor and a server with an emulated path between them.

use crate::page::{Conversation, carry_out};
use bench_harness::Fallible;
use lab::{Lab, LabHost, Options};
use longhaul::StopFlag;
use perf::client::{self, ClientConfig};
use perf::server::{Server, ServerConfig};
use record::Measurement;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;
use topology::Plan;
use units::ByteCount;
use web::{WebEvent, WebRequest};

/// The visitor is the lab's client.
pub(crate) struct Hosts {
    lab: Lab,
}

/// What was done over a path, and why the emulation was not valid, if it was not.
pub(crate) struct Done<T> {
    pub(crate) result: T,
    pub(crate) not_valid: Vec<String>,
}

impl Hosts {
    /// Of a path, with congestion control and sysctls of both hosts.
    pub(crate) fn of(path: &str, congestion: &str, sysctls: &[(String, String)]) -> Fallible<Self> {
        let plan = Plan::pair(path.parse()?, congestion, sysctls, true);
        Ok(Hosts { lab: Lab::start(&plan, Options::default())? })
    }

    pub(crate) fn visitor(&self) -> &LabHost {
        self.lab.client()
    }

    pub(crate) fn server(&self) -> &LabHost {
        self.lab.server()
    }

    /// Does something over the path, which ends with it.
    pub(crate) fn over<T>(self, work: impl FnOnce(&Self) -> Fallible<T>) -> Fallible<Done<T>> {
        self.lab.begin();
        let result = work(&self)?;
        let not_valid = self.lab.finish()?.into_path().reasons;
        Ok(Done { result, not_valid })
    }

    /// Serves the speed test while `work` is done.
    pub(crate) fn serving<T>(
        &self,
        work: impl FnOnce(SocketAddr, &Receiver<WebEvent>) -> Fallible<T>,
    ) -> Fallible<T> {
        let request = WebRequest {
            listen: SocketAddr::from((self.server().ipv4, 8080)),
            max_bytes_per_run: ByteCount::from_bytes(1_000_000_000_000),
            ..WebRequest::default()
        };
        let (stop, drain) = (StopFlag::new(), StopFlag::new());
        let (sender, events) = channel();
        thread::scope(|scope| {
            let serving = scope.spawn(|| {
                let mut tell = |event| drop(sender.send(event));
                self.server().namespace.run(|| web::serve(&request, &mut tell, &drain, &stop))
            });
            let done = stop.raised_on_drop();
            let ended = match events.recv_timeout(Duration::from_secs(10)) {
                Ok(WebEvent::Listening { address, .. }) => work(address, &events),
                _ => Err("the server does not listen".into()),
            };
            drop(done);
            let served = serving.join().map_err(|_| "the server panicked")??;
            served.map_err(|problem| problem.to_string())?;
            ended
        })
    }

    /// The result of a run, by a client of the page's protocol in this process; `thorough` with
    /// experiments.
    pub(crate) fn run(&self, thorough: bool) -> Fallible<Value> {
        let mut told = self.conversation(thorough)?;
        match told.messages.pop() {
            Some(last) if last["type"] == "result" => Ok(last),
            last => Err(format!("the run has no result: {last:?}").into()),
        }
    }

    /// Everything that the server says in it.
    pub(crate) fn conversation(&self, thorough: bool) -> Fallible<Conversation> {
        let hello = json!({"type": "hello", "version": 1, "platform": "linux", "max_bytes": null,
            "thorough": thorough, "transports": ["http", "websocket"]});
        self.serving(|address, _| {
            Ok(self.visitor().namespace.run(|| carry_out(address, &hello))?)
        })
    }

    /// A transfer of `longhaul test` from the visitor.
    pub(crate) fn test(&self, config: ClientConfig) -> Fallible<Measurement> {
        let config = ClientConfig { host: self.server().ipv4.to_string(), ..config };
        let settings = ServerConfig { one_off: true, ..ServerConfig::default() };
        let [visitor, server] = [self.visitor(), self.server()].map(|host| &host.namespace);
        let listening = server.run(|| Server::bind(&settings))??;
        let served = StopFlag::new();
        let report = thread::scope(|scope| {
            let serving = scope.spawn(|| server.run(|| listening.serve(&served, &|_| ())));
            let done = served.raised_on_drop();
            let report = visitor.run(|| client::run(&config, &mut |_| (), &StopFlag::new()));
            drop(done);
            // The client's error is more specific than the server's.
            let _ = serving.join();
            report
        });
        Ok(report??.measurement)
    }
}
