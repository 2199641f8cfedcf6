//! RTT under load, as the page shows it, beside a ping from the visitor to the server at the same time.

use crate::hosts::Hosts;
use crate::page::Conversation;
use bench_harness::{Fallible, heading, median, row};
use host::clock::now;
use probe::{Event, PingConfig, ping};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The paths: 500 ms of queue at 50 Mbit/s, and none.
const PATHS: [(&str, &str); 2] = [
    ("FIFO of 500 ms", "rate=50mbit,rtt=20ms,queue=3125kB"),
    ("FQ-CoDel", "rate=50mbit,rtt=20ms,queue=fq_codel"),
];
/// The interval of the ping, as the page's probes have it.
const INTERVAL: Duration = Duration::from_millis(40);
const TIMEOUT: Duration = Duration::from_secs(5);
/// RTTs count from this share of a step on, as for the page.
const LOADED_FROM: f64 = 0.6;
/// The deviation that is promised: the larger of a time in ms and a share.
const WITHIN_MS: f64 = 2.0;
const WITHIN: f64 = 0.05;

pub(crate) fn measure() -> Fallible<()> {
    heading();
    for (name, path) in PATHS {
        let hosts = Hosts::of(path, "cubic", &[])?;
        let done = hosts.over(beside_ping)?;
        done.not_valid.iter().for_each(|why| println!("  not valid: {why}"));
        let (told, replies) = done.result;
        for (direction, figure) in [("download", "rtt_download"), ("upload", "rtt_upload")] {
            let result = told.messages.last().ok_or("no result")?;
            let shown = result[figure].as_f64().unwrap_or(f64::NAN);
            let (from, to) = loaded(&told, direction).ok_or("the step has no samples")?;
            let within = replies.iter().filter(|(at, _)| (from..to).contains(at));
            let pinged = median(&within.map(|(_, rtt)| *rtt).collect::<Vec<_>>());
            let is_near = (shown - pinged).abs() <= WITHIN_MS.max(pinged * WITHIN);
            let what = format!("{name}, {direction}: median RTT under load");
            let measured = format!("{shown:.1} ms, ping {pinged:.1} ms");
            row(&what, "2 ms or 5 % of ping", &measured, is_near);
        }
    }
    Ok(())
}

/// When each probe of a ping was sent, and its RTT, ms.
type Replies = Vec<(Instant, f64)>;

/// A run, and a ping at the same time.
fn beside_ping(hosts: &Hosts) -> Fallible<(Conversation, Replies)> {
    let address = SocketAddr::new(hosts.server().ipv4.into(), 0);
    let config = PingConfig::plain(address, 0, INTERVAL, TIMEOUT);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let pinging = scope.spawn(|| {
            let mut replies = Replies::new();
            let mut take = |event| {
                if let Event::Reply { rtt, duplicate: false, .. } = event {
                    replies.push((now() - rtt, rtt.as_secs_f64() * 1e3));
                }
            };
            let stop = || is_over.load(Ordering::Relaxed);
            let ended = hosts.visitor().namespace.run(|| ping(&config, &mut take, &stop));
            ended.map(|ended| ended.map(|_| replies))
        });
        let told = hosts.conversation(false);
        is_over.store(true, Ordering::Relaxed);
        let replies = pinging.join().map_err(|_| "the ping panicked")??;
        Ok((told?, replies.map_err(|error| error.to_string())?))
    })
}

/// The loaded part of the step with several flows of a direction.
fn loaded(told: &Conversation, direction: &str) -> Option<(Instant, Instant)> {
    let step =
        told.of("step").into_iter().rfind(|step| step["kind"] == direction)?["step"].as_u64();
    let began = told
        .messages
        .iter()
        .zip(&told.times)
        .filter(|(message, _)| message["type"] == "sample" && message["step"].as_u64() == step);
    // A message that waited for a probe came late: the earliest one tells best.
    let began = began.filter_map(|(message, at)| {
        at.checked_sub(Duration::from_secs_f64(message["t"].as_f64()?))
    });
    let began = began.min()?;
    let results = told.of("step-result");
    let seconds =
        results.iter().find(|result| result["step"].as_u64() == step)?["seconds"].as_f64()?;
    let from = Duration::from_secs_f64(seconds * LOADED_FROM);
    Some((began + from, began + Duration::from_secs_f64(seconds)))
}
