//! A case in the lab: both servers, and the visitor between whose runs they take turns.

use crate::page::{Server, ask, carry_out, hello_by_requests};
use bench_harness::Fallible;
use lab::{Lab, LabHost, Options};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use topology::Plan;
use web::WebRequest;

/// Rounds of a first verdict, and those that are added while it is open, as the page has them.
const ROUNDS: usize = 3;
const MORE_ROUNDS: usize = 2;
const PORT: u16 = 8080;

/// The hosts `visitor`, `near` and `far` of a plan; what the near server says.
pub(crate) fn run(plan: &str, step_seconds: f64) -> Fallible<Value> {
    let none = &mut |_: &str| Err(std::io::ErrorKind::NotFound.into());
    let plan = Plan::parse("legs.toml", plan, none)?;
    let lab = Lab::start(&plan, Options { shared: true, ..Options::default() })?;
    lab.begin();
    let near = start(lab.host("near")?, step_seconds)?;
    let far = start(lab.host("far")?, step_seconds)?;
    let addresses = [address(lab.host("near")?), address(lab.host("far")?)];
    let visitor = &lab.host("visitor")?.namespace;
    let found = visitor.run(|| catch_unwind(AssertUnwindSafe(|| measure(addresses))));
    drop((near, far));
    lab.finish()?;
    found?.map_err(|_| "the visitor gave up")?
}

fn address(host: &LabHost) -> SocketAddr {
    SocketAddr::new(host.ipv4.into(), PORT)
}

fn start(host: &LabHost, step_seconds: f64) -> Fallible<Server> {
    let listen = SocketAddr::from(([0, 0, 0, 0], PORT));
    let request = WebRequest { listen, step_seconds, ..WebRequest::default() };
    Ok(host.namespace.run(|| Server::start(request))?)
}

fn measure([near, far]: [SocketAddr; 2]) -> Fallible<Value> {
    let mut rounds: Vec<Value> = Vec::new();
    let mut count = ROUNDS;
    loop {
        while rounds.len() < count {
            rounds.push(json!({"near": leg(near), "far": leg(far)}));
        }
        let verdict = verdict(near, &rounds)?;
        if verdict["more_rounds"] == true {
            count += MORE_ROUNDS;
            continue;
        }
        return Ok(verdict);
    }
}

/// A round of one leg, as the page posts it.
fn leg(server: SocketAddr) -> Value {
    let mut hello = hello_by_requests();
    hello["purpose"] = json!("leg");
    let told = carry_out(server, &hello);
    let result = |kind: &str, flows: u64| {
        let is_it = |step: &&Value| step["kind"] == kind && step["flows"] == flows;
        told.of("step-result").into_iter().find(is_it).cloned()
    };
    let transfer = |kind: &str, flows: u64| {
        let step = result(kind, flows)?;
        let (rate, rtt_loaded, valid) = (&step["rate"], &step["rtt_loaded"], &step["valid"]);
        let limit = &step["finding"]["limit"];
        Some(json!({"rate": rate, "rtt_loaded": rtt_loaded, "limit": limit, "valid": valid}))
    };
    let idle = result("idle", 0).map(|step| step["rtt_idle"].clone());
    json!({"rtt_idle": idle, "single": transfer("download", 1),
        "download": transfer("download", 6), "upload": transfer("upload", 6)})
}

fn verdict(near: SocketAddr, rounds: &[Value]) -> Fallible<Value> {
    let body = json!({"rounds": rounds}).to_string();
    let length = body.len();
    let head = format!("POST /api/legs HTTP/1.1\r\nHost: {near}\r\nConnection: close\r\n");
    let (status, answer) = ask(near, &format!("{head}Content-Length: {length}\r\n\r\n{body}"));
    let text = answer.split_once("\r\n\r\n").map_or("", |(_, text)| text);
    if status != 200 {
        return Err(format!("the near server answered {status}: {text}").into());
    }
    Ok(serde_json::from_str(text)?)
}
