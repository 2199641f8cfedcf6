//! Capture files, through requests alone.

#![expect(clippy::unwrap_used, clippy::panic, reason = "in a test an unwrap is an assertion")]

use longhaul::capture::{CaptureOutput, CaptureRequest};
use longhaul::explain::{ExplainDocument, ExplainRequest};
use longhaul::pcap::{
    ExpertRequest, FollowRequest, HandshakeRequest, IoRequest, ListRequest, MergeRequest,
    PacketsRequest, PcapDocument, PcapEvent, PcapRequest, PcapView, StreamsRequest,
};
use longhaul::{Document, Event, Fault, Problem, Request, StopFlag};
use std::path::PathBuf;
use units::ByteCount;

fn sample(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../cli/tests/corpus")).join(name)
}

/// The document of a request as it is sent over a wire, and its events.
fn run(request: &Request) -> Result<(Document, Vec<Event>), Problem> {
    let text = serde_json::to_string(request).unwrap();
    let request: Request = serde_json::from_str(&text).unwrap();
    let mut events = Vec::new();
    let document = longhaul::run(request, &mut |event| events.push(event), &StopFlag::new())?;
    Ok((document, events))
}

fn pcap(name: &str, view: PcapView) -> (PcapDocument, Vec<Event>) {
    let request = PcapRequest { files: vec![sample(name)], view };
    match run(&Request::Pcap(request)).unwrap() {
        (Document::Pcap(document), events) => (document, events),
        (other, _) => panic!("{other:?}"),
    }
}

/// Members are in alphabetical order.
fn is_sorted(document: &impl serde::Serialize) -> bool {
    let text = serde_json::to_string(document).unwrap();
    let read: serde_json::Value = serde_json::from_str(&text).unwrap();
    text == serde_json::to_string(&read).unwrap()
}

#[test]
fn a_capture_is_explained() {
    let request = Request::Explain(ExplainRequest::new(sample("loss-middle.pcap.gz")));
    let (document, _) = run(&request).unwrap();
    let Document::Explain(ExplainDocument::Transfers(transfers)) = document else { panic!() };
    let [transfer] = &transfers[..] else { panic!("{} transfers", transfers.len()) };
    assert_eq!(transfer.name, "stream 0");
    assert!(transfer.finding.limit.is_some() && !transfer.finding.sentence.is_empty());
    assert!(transfer.measurement.received().bytes() > 100_000);
    assert!(transfer.measurement.notes.iter().any(|note| note.starts_with("captured ")));
}

/// Each view finds the same stream, and JSON lists members by name.
#[test]
fn each_view_has_its_document() {
    let name = "loss-middle.pcap.gz";
    let (PcapDocument::Summary(summary), _) = pcap(name, PcapView::Summary) else { panic!() };
    assert!(is_sorted(&summary));
    let packets = summary.files[0].packets;
    assert!(packets > 100);
    let (PcapDocument::Hierarchy(tree), _) = pcap(name, PcapView::Hierarchy) else { panic!() };
    assert_eq!(tree.files[0].protocols[0].frames, packets);
    let view = PcapView::Conversations(ListRequest::default());
    let (PcapDocument::Conversations(list), _) = pcap(name, view) else { panic!() };
    let [conversation] = &list.files[0].conversations[..] else { panic!() };
    assert_eq!(conversation.a_to_b.frames + conversation.b_to_a.frames, packets);
    let view = PcapView::Endpoints(ListRequest::default());
    let (PcapDocument::Endpoints(list), _) = pcap(name, view) else { panic!() };
    assert_eq!(list.files[0].endpoints.len(), 2);
    let view = PcapView::Streams(StreamsRequest::default());
    let (PcapDocument::Streams(list), _) = pcap(name, view) else { panic!() };
    assert!(is_sorted(&list));
    assert!(list.files[0].streams[0].limit.is_some());
    let view = PcapView::Handshakes(HandshakeRequest::default());
    let (PcapDocument::Handshakes(list), _) = pcap(name, view) else { panic!() };
    assert!(!list.files[0].handshakes[0].packets.is_empty());
    let (PcapDocument::Io(io), _) = pcap(name, PcapView::Io(IoRequest::default())) else {
        panic!()
    };
    assert_eq!(io.curves[0].packets.iter().sum::<u64>(), packets);
    let view = PcapView::Expert(ExpertRequest::default());
    let (PcapDocument::Expert(expert), _) = pcap(name, view) else { panic!() };
    assert!(expert.items.iter().any(|item| item.severity == "Note"));
    for document in [PcapDocument::Handshakes(list), PcapDocument::Expert(expert)] {
        let text = serde_json::to_string(&document).unwrap();
        let sorted = serde_json::from_str::<serde_json::Value>(&text).unwrap().to_string();
        assert!(text == sorted, "members are in alphabetical order");
    }
}

#[test]
fn packets_are_events_or_a_file() {
    let filter = "tcp.flags.syn == 1".to_owned();
    let wanted = PacketsRequest { filter, ..PacketsRequest::default() };
    let shown = |events: &[Event]| -> Vec<u64> {
        let number = |event: &Event| match event {
            Event::Pcap(PcapEvent::Packet(packet)) => Some(packet.number),
            _ => None,
        };
        events.iter().filter_map(number).collect()
    };
    let (document, events) = pcap("loss-middle.pcap.gz", PcapView::Packets(wanted.clone()));
    let PcapDocument::Listed(list) = document else { panic!() };
    let numbers = shown(&events);
    assert!(numbers.len() >= 2 && numbers[0] == 1, "{numbers:?}");
    assert_eq!(list.shown, numbers.len() as u64);

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("syns.pcap");
    let request = PacketsRequest { write: Some(file.clone()), ..wanted };
    let (_, events) = pcap("loss-middle.pcap.gz", PcapView::Packets(request));
    assert_eq!(shown(&events), [0; 0]);
    let (document, _) = run(&Request::Pcap(PcapRequest::new(file))).unwrap();
    let Document::Pcap(PcapDocument::Summary(written)) = document else { panic!() };
    assert_eq!(written.files[0].packets, numbers.len() as u64);
}

#[test]
fn a_stream_is_followed() {
    let view = PcapView::Follow(FollowRequest { bytes: 1000, ..FollowRequest::default() });
    let (document, events) = pcap("loss-middle.pcap.gz", view);
    let PcapDocument::Listed(list) = document else { panic!() };
    let parts = events.iter().filter_map(|event| match event {
        Event::Pcap(PcapEvent::Part(part)) => Some(part.bytes as u64),
        _ => None,
    });
    assert_eq!((list.shown, parts.sum::<u64>()), (1000, 1000));
}

/// Of several files, one that cannot be read is an event; alone it is the problem.
#[test]
fn files_that_cannot_be_read() {
    let (good, missing) = (sample("loss-middle.pcap.gz"), sample("missing.pcap"));
    let of = |files| Request::Pcap(PcapRequest { files, view: PcapView::Hierarchy });
    let (document, events) = run(&of(vec![missing.clone(), good])).unwrap();
    let Document::Pcap(PcapDocument::Hierarchy(tree)) = document else { panic!() };
    assert_eq!(tree.files.len(), 1);
    assert!(matches!(&events[..], [Event::Pcap(PcapEvent::Unreadable(_))]), "{events:?}");
    let requests =
        [of(vec![missing.clone()]), Request::Explain(ExplainRequest::new(missing.clone()))];
    for request in requests {
        let problem = run(&request).unwrap_err();
        assert_eq!(problem.fault, Fault::Input, "{problem}");
        assert!(problem.message.contains("missing.pcap"), "{problem}");
    }
}

/// Before a file is opened: none of these exists.
#[test]
fn wrong_requests_name_a_field() {
    let pcap = |files: &[&str], view| {
        Request::Pcap(PcapRequest { files: files.iter().map(PathBuf::from).collect(), view })
    };
    let packets = |filter: &str, packet| PacketsRequest {
        filter: filter.to_owned(),
        packet,
        ..PacketsRequest::default()
    };
    let merge = || PcapView::Merge(MergeRequest::default());
    let capture = CaptureRequest::new("eth0", "/nonexistent/a.pcap");
    let buffer = ByteCount::from_bytes(1000);
    let output = CaptureOutput::File(PathBuf::new());
    let filters = vec!["tcp".to_owned(); 9];
    let wrong = [
        (pcap(&[], PcapView::Summary), "files"),
        (pcap(&["a"], merge()), "files"),
        (pcap(&["a", "b", "c"], merge()), "files"),
        (pcap(&["-", "-"], merge()), "files"),
        (pcap(&["a", "b"], PcapView::Follow(FollowRequest::default())), "files"),
        (pcap(&["a"], PcapView::Packets(packets("tcp", Some(1)))), "packet"),
        (pcap(&["a"], PcapView::Packets(packets("tcp.prt == 1", None))), "filter"),
        (pcap(&["a"], PcapView::Io(IoRequest { filters, ..IoRequest::default() })), "filters"),
        (Request::Explain(ExplainRequest::default()), "files"),
        (
            Request::Capture(CaptureRequest { interface: String::new(), ..capture.clone() }),
            "interface",
        ),
        (Request::Capture(CaptureRequest { snaplen: 1 << 20, ..capture.clone() }), "snaplen"),
        (Request::Capture(CaptureRequest { buffer, ..capture.clone() }), "buffer"),
        (Request::Capture(CaptureRequest { output, ..capture }), "output"),
    ];
    for (request, field) in wrong {
        let problem = run(&request).unwrap_err();
        assert_eq!(problem.fault, Fault::Request, "{problem}");
        let named = problem.remedy.as_ref().map(|remedy| remedy.field.name());
        assert!(named.is_none_or(|named| named == field), "{problem}");
        assert!(problem.to_string().contains(field), "{problem}");
    }
}
