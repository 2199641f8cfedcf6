//! Capture files, and packets by themselves.

use capture::conversations::Conversations;
use capture::dissect::{Layers, dissect};
use capture::endpoints::Endpoints;
use capture::file::Reader;
use capture::hierarchy::Hierarchy;
use capture::overview::Overview;
use capture::{LinkType, MemoryBudget, Seed};
use capture_merge::CapturedPackets;
use packet_fields::iperf3_control::ControlConnections;
use packet_fields::{Summary, Tracker, detail};
use tcp_analysis::Rules;

/// A file, read to its end or to where it breaks off, everything that is counted, and everything
/// that is shown of its packets.
pub(crate) fn file(input: &[u8]) {
    let Ok(mut reader) = Reader::new(input).map_err(|broken| broken.to_string()) else { return };
    let seed = Seed([1, 2]);
    let (mut layers, mut overview) = (Layers::new(), Overview::default());
    let (mut hierarchy, mut conversations) = (Hierarchy::new(seed), Conversations::new(seed));
    let (mut tracker, mut summary) = (Tracker::new(Rules::default()), Summary::default());
    let mut iperf3 = ControlConnections::within(&MemoryBudget::new(1 << 20));
    loop {
        let packet = match reader.next_packet() {
            Ok(Some(packet)) => packet,
            Ok(None) => break,
            Err(broken) => {
                let _ = broken.to_string();
                break;
            }
        };
        dissect(packet.link, packet.data, packet.original_len, &mut layers);
        overview.add(&packet, &layers);
        let segment = layers.tcp(packet.data);
        let segment = segment.as_ref();
        let stream = conversations.add(&packet, &layers, segment);
        let named = iperf3.name(&layers, segment, stream);
        let layers = named.as_ref().unwrap_or(&layers);
        hierarchy.add(layers, packet.original_len);
        let view = tracker.add(&packet, layers, segment, stream, &conversations);
        summary.fill(&view);
        assert!(summary.info.chars().all(|c| !c.is_control()), "{:?}", summary.info);
        assert!(!detail::layers(&view).is_empty());
        let _ = (packet.options.comments().count(), packet.options.dropped());
    }
    assert_eq!(reader.summary().packets, overview.packets);
    let rows = hierarchy.rows();
    assert_eq!(rows.first().map(|row| row.frames), Some(overview.packets));
    let view = MemoryBudget::new(1 << 20);
    let _ = (overview.rate_bps(), conversations.ip(&view).0.len());
    let _ = (Endpoints::of_ip(&conversations, &view), Endpoints::of_tcp(&conversations, &view));
}

/// A packet: the first byte is its link type, the second says how much more of it there
/// was than was captured.
pub(crate) fn packet(input: &[u8]) {
    let [link, more, data @ ..] = input else { return };
    // Above 255 there is one type that is dissected.
    let link = if *link == 255 { LinkType::LINUX_SLL2 } else { LinkType((*link).into()) };
    let original = data.len() as u32 + u32::from(*more) * 16;
    let mut layers = Layers::new();
    dissect(link, data, original, &mut layers);
    let mut end = 0;
    for (protocol, layer) in layers.iter() {
        assert_eq!(layer.start, end, "{protocol:?}");
        end += layer.header_len;
        assert!(end + layer.payload_len <= original, "{protocol:?}");
    }
    assert!(layers.not_understood().is_none_or(|what| !what.to_string().is_empty()));
    if let Some(segment) = layers.tcp(data) {
        assert!(segment.payload.len() <= segment.payload_len as usize);
        assert!(segment.payload_len <= original);
        let _ = segment.options().sack_blocks().len();
        assert!(segment.each_option().all(|option| !option.name().is_empty()));
    }
}

/// A file as two captures of the same traffic: a third of its packets is in both.
pub(crate) fn merge(input: &[u8]) {
    let Ok(mut reader) = Reader::new(input) else { return };
    let (mut layers, mut conversations) = (Layers::new(), Conversations::new(Seed([1, 2])));
    let [mut a, mut b] = [CapturedPackets::new(), CapturedPackets::new()];
    while let Ok(Some(packet)) = reader.next_packet() {
        dissect(packet.link, packet.data, packet.original_len, &mut layers);
        let segment = layers.tcp(packet.data);
        let stream = conversations.add(&packet, &layers, segment.as_ref());
        let tcp = stream.zip(segment.as_ref());
        if !packet.number.is_multiple_of(3) {
            a.add(&packet, &layers, tcp);
        }
        if packet.number % 3 != 1 {
            b.add(&packet, &layers, tcp);
        }
    }
    let Some(merge) = capture_merge::merge(a, b, false, &|| false) else { return };
    for counts in merge.counts {
        let sum = counts.matched
            + counts.partly_lost
            + counts.lost
            + counts.duplicated
            + counts.only_here
            + counts.outside
            + counts.without_partner
            + counts.not_compared;
        assert_eq!(sum, counts.packets);
    }
}
