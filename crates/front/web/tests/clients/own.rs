//! Our own clients, against our server.

use crate::relay;
use crate::server::Server;
use longhaul::StopFlag;
use longhaul::ndt7::{self, Ndt7Document, Ndt7Request, Ndt7Test};
use longhaul::responsiveness::{self, ResponsivenessEvent, ResponsivenessRequest};
use record::Limit;
use web::Tls;

fn ndt7(url: String) -> Ndt7Document {
    let request = Ndt7Request { insecure: true, ..Ndt7Request::new(url) };
    let mut shown = 0;
    let document = ndt7::run(&request, &mut |_| shown += 1, &StopFlag::new());
    let document = document.unwrap_or_else(|problem| panic!("{problem}"));
    assert!(shown > 20 * document.tests.len(), "{shown} events");
    document
}

/// Each end has its samples, and what arrived is what was sent.
fn check(document: &Ndt7Document) {
    for one in &document.tests {
        let stream = &one.transfer.measurement.streams[0];
        assert!(stream.sender.len() > 20 && stream.receiver.len() > 10, "{:?}", one.test);
        assert_eq!(stream.reverse, one.test == Ndt7Test::Download);
        let (sent, received) = (stream.sent_bytes as f64, stream.received_bytes as f64);
        assert!((received / sent - 1.0).abs() < 0.05, "{sent} {received}");
        assert!((9.0..12.5).contains(&stream.received_seconds), "{}", stream.received_seconds);
        let rate = received * 8.0 / stream.received_seconds;
        assert!((one.rate_bps.bps() as f64 / rate - 1.0).abs() < 0.01);
        let limit = one.transfer.finding.limit;
        // Nothing of the loopback limits a transfer, but a server without time reads slowly, and
        // drops what its memory lacks room for: a finding says so where the samples do.
        let last = stream.sender.last().copied().unwrap_or_default();
        assert!(limit != Some(Limit::Loss) || last.retransmits > 0, "{limit:?}");
        let window_s = last.rwnd_limited_us as f64 / 1e6;
        assert!(limit != Some(Limit::ReceiveWindow) || window_s > 0.2 * last.t_s, "{window_s}");
    }
}

#[test]
fn ndt7_without_tls() {
    let server = Server::start(|_| ());
    let document = ndt7(format!("ws://{}", relay::start(server.address)));
    let tests: Vec<Ndt7Test> = document.tests.iter().map(|one| one.test).collect();
    assert_eq!(tests, [Ndt7Test::Download, Ndt7Test::Upload]);
    check(&document);
}

#[test]
fn ndt7_with_tls_asks_for_consent_to_a_self_signed_certificate() {
    let server = Server::start(|request| request.tls = Tls::SelfSigned);
    let strict = Ndt7Request::new(server.address.to_string());
    let problem = ndt7::run(&strict, &mut |_| (), &StopFlag::new()).unwrap_err();
    assert_eq!(problem.remedy.unwrap().field, longhaul::Field::Insecure, "{}", problem.message);
    let address = relay::start(server.address);
    let document = ndt7(format!("wss://{address}/ndt/v7/upload"));
    assert_eq!(document.tests.len(), 1);
    check(&document);
}

#[test]
fn responsiveness_over_tls() {
    let server = Server::start(|request| request.tls = Tls::SelfSigned);
    let url = format!("https://{}", server.responsiveness);
    let request = ResponsivenessRequest { insecure: true, ..ResponsivenessRequest::new(url) };
    let mut intervals = 0;
    let on_event = &mut |event| {
        intervals += u32::from(matches!(event, ResponsivenessEvent::Interval { .. }));
    };
    let document = responsiveness::run(&request, on_event, &StopFlag::new());
    let document = document.unwrap_or_else(|problem| panic!("{problem}"));
    assert!(document.idle.probes >= 5 && document.idle.tls_ms.is_some());
    assert_eq!(document.directions.len(), 2);
    assert!((16..=40).contains(&intervals), "{intervals}");
    for one in &document.directions {
        assert!(one.rpm.is_some_and(|rpm| rpm > 60.0), "{}", one.sentence);
        assert!(one.foreign.probes >= 5 && one.loaded.probes >= 5);
        assert!(one.rate_bps.bps() > 10_000_000 && one.connections >= 1);
        let streams = &one.measurement.streams;
        assert_eq!(streams.len(), one.connections as usize);
        // The one opened last may have nothing yet.
        let before = &streams[..streams.len().saturating_sub(1).max(1)];
        assert!(before.iter().all(|stream| stream.received_bytes > 0));
    }
}

#[test]
fn a_stop_ends_a_test() {
    let server = Server::start(|_| ());
    let stop = StopFlag::new();
    let raised = stop.clone();
    let request = Ndt7Request::new(format!("ws://{}", server.address));
    let result = ndt7::run(&request, &mut |_| raised.raise(), &stop);
    assert_eq!(result.unwrap_err().fault, longhaul::Fault::Interrupted);
    let url = format!("http://{}", server.responsiveness);
    let result = responsiveness::run(&ResponsivenessRequest::new(url), &mut |_| (), &stop);
    assert_eq!(result.unwrap_err().fault, longhaul::Fault::Interrupted);
}
