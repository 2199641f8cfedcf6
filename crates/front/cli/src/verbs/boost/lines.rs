//! The log of a box: a line for each event.

use crate::failure::with_flags;
use longhaul::boost::{BoostDocument, BoostEvent, BoostLine, FlowFinished, LaneBuffer};
use report::untrusted;
use std::fmt::Write;
use units::ByteCount;

/// Longest text of a peer.
const MOST: usize = 300;

/// The line of an event, as text or as JSON.
pub(super) fn line(event: &BoostEvent, is_json: bool) -> String {
    let event = printable(event);
    if !is_json {
        return text(&event);
    }
    let document = serde_json::to_value(BoostLine::now(&event)).unwrap_or_default();
    untrusted::json(&document.to_string())
}

fn printable(event: &BoostEvent) -> BoostEvent {
    let mut event = event.clone();
    match &mut event {
        BoostEvent::Flow(FlowFinished { why: Some(why), .. })
        | BoostEvent::Refused { why, .. }
        | BoostEvent::FarUnreachable { why, .. }
        | BoostEvent::UdtBlocked { why, .. }
        | BoostEvent::Warning { text: why } => {
            *why = untrusted::excerpt(&with_flags(why), MOST);
        }
        _ => {}
    }
    event
}

fn text(event: &BoostEvent) -> String {
    match event {
        BoostEvent::Listening { addresses, encrypted, congestion, .. } => {
            let encryption = if *encrypted { "TLS 1.3" } else { "PLAINTEXT" };
            format!(
                "Listening on {}; between the boxes: {encryption}, {congestion}; stop with Ctrl-C",
                addresses.join(", ")
            )
        }
        BoostEvent::Warning { text } => format!("warning: {text}"),
        BoostEvent::Flow(flow) => flow_text(flow),
        BoostEvent::Refused { peer, why } => format!("refused {peer}: {why}"),
        BoostEvent::FarUnreachable { far, why } => {
            format!("the far box {far} cannot be reached: {why}; check that it runs, and its port")
        }
        BoostEvent::UdtBlocked { far, why } => {
            format!("no UDT to the far box {far}, TCP carries the flows: {why}")
        }
        BoostEvent::FarReached { far } => format!("connected to the far box {far}"),
        BoostEvent::SeveralConnections { connections, buffer, granted_bytes, .. } => {
            let size = ByteCount::from_bytes(*granted_bytes);
            let capped = match buffer {
                LaneBuffer::NearSend => "the kernel caps the send buffer",
                LaneBuffer::NearReceive => "the kernel caps the receive buffer",
                LaneBuffer::Far => "the kernel of the far box caps its buffers",
            };
            format!("{capped} at {size}: {connections} connections carry the session")
        }
        BoostEvent::Draining { flows } => {
            format!("draining: waiting for {flows} {}", plural(*flows, "flow"))
        }
        BoostEvent::HeldBack { count } => {
            format!("log rate limit: suppressed {count} {}", plural(*count, "event"))
        }
    }
}

fn plural(count: u64, what: &str) -> String {
    if count == 1 { what.to_owned() } else { format!("{what}s") }
}

fn flow_text(flow: &FlowFinished) -> String {
    let FlowFinished { peer, target, seconds, end, .. } = flow;
    let [sent, received] = [flow.sent_bytes, flow.received_bytes].map(ByteCount::from_bytes);
    let mut text =
        format!("{peer} -> {target}: sent {sent}, received {received} in {seconds:.2} s");
    let wan = ByteCount::from_bytes(flow.wan_sent_bytes + flow.wan_received_bytes);
    if flow.wan_sent_bytes != flow.sent_bytes || flow.wan_received_bytes != flow.received_bytes {
        let _ = write!(text, "; {wan} between the boxes");
    }
    if let Some(why) = flow.uncompressed {
        let _ = write!(text, "; not compressed: {}", why.replace('_', " "));
    }
    if let Some(why) = &flow.why {
        let _ = write!(text, "; {}: {why}", end.replace('_', " "));
    }
    text
}

/// What a box has carried.
pub(super) fn summary(document: &BoostDocument) -> String {
    let bytes = ByteCount::from_bytes;
    let (inward, outward) = if document.role == "near" {
        ("from applications", "to applications")
    } else {
        ("from targets", "to targets")
    };
    let mut text = format!(
        "{} {} in {:.0} s: {} refused, {} reset; {} {}, {} reused\n\
         {} {inward}, {} {outward}; {} sent and {} received between the boxes; {:.1} s of CPU",
        document.flows,
        plural(document.flows, "flow"),
        document.seconds,
        document.refused,
        document.reset,
        document.lanes,
        plural(document.lanes, "lane"),
        document.reused,
        bytes(document.in_bytes),
        bytes(document.out_bytes),
        bytes(document.wan_sent_bytes),
        bytes(document.wan_received_bytes),
        document.cpu_s,
    );
    if let Some(reduction) = &document.reduction {
        let _ = write!(text, "\n{reduction}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(end: &'static str, why: Option<&str>) -> BoostEvent {
        BoostEvent::Flow(FlowFinished {
            peer: "192.0.2.1:5".parse().unwrap(),
            target: "origin.example:80".to_owned(),
            sent_bytes: 1_000,
            received_bytes: 2_000_000,
            wan_sent_bytes: 1_000,
            wan_received_bytes: 2_000_000,
            uncompressed: None,
            seconds: 1.5,
            end,
            why: why.map(str::to_owned),
        })
    }

    #[test]
    fn a_flow_is_a_line() {
        assert_eq!(
            line(&flow("fin", None), false),
            "192.0.2.1:5 -> origin.example:80: sent 1 kB, received 2 MB in 1.50 s"
        );
        let BoostEvent::Flow(mut reduced) = flow("fin", None) else { return };
        (reduced.wan_received_bytes, reduced.uncompressed) = (799_000, Some("cpu_limited"));
        assert_eq!(
            line(&BoostEvent::Flow(reduced), false),
            "192.0.2.1:5 -> origin.example:80: sent 1 kB, received 2 MB in 1.50 s; 800 kB between \
             the boxes; not compressed: cpu limited"
        );
        let failed = line(&flow("lane_failed", Some("gone\u{1b}[2J")), false);
        assert!(failed.ends_with("; lane failed: gone[2J"), "{failed}");
        let json = line(&flow("reset", Some("x")), true);
        let document: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(document["schema"], "longhaul.boost-event/1");
        assert_eq!((&document["event"], &document["end"]), (&"flow".into(), &"reset".into()));
    }
}
