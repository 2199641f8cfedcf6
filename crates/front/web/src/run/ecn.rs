//! What the server's kernel knows of ECN on the path (RFC 3168).

use super::message::StepKind;
use crate::connection::Connection;
use host::handshake::Handshake;
use serde::Serialize;

/// Data segments after which a connection without a mark had none.
const ENOUGH_SEGMENTS: u32 = 20;

/// What was seen of the flows of a run.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Observed {
    flows: u32,
    negotiated: u32,
    /// Uploads with ECN and enough segments, and those of them in which ECT arrived.
    uploads: u32,
    with_ect: u32,
    /// Segments of downloads that the client reported as marked.
    marked: u64,
    /// Rounds in which it reported marked packets of WebTransport.
    marked_datagrams: u64,
}

/// What is known. What is not is null.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Ecn {
    /// Whether both ends of the TCP connections use ECN.
    pub(super) negotiated: bool,
    /// Whether ECT(0) arrives at the server.
    pub(super) up: Option<bool>,
    /// Whether it arrives at the client.
    pub(super) down: Option<bool>,
    /// The same of ECT(1), in either direction.
    pub(super) ect1: Option<bool>,
    /// Segments of downloads that were marked with congestion experienced.
    pub(super) marked: u64,
    pub(super) sentence: String,
}

impl Observed {
    /// Takes the flows at a step's end.
    pub(super) fn take<'a>(
        &mut self,
        kind: StepKind,
        connections: impl Iterator<Item = &'a Connection>,
    ) {
        for connection in connections {
            let shook = Handshake::of(connection.descriptor());
            if let (Ok(shook), Ok(info)) = (shook, connection.tcp_info()) {
                let segments = info.data_segs_in.unwrap_or(0);
                self.flow(kind, &shook, segments, info.delivered_ce.unwrap_or(0).into());
            }
        }
    }

    fn flow(&mut self, kind: StepKind, shook: &Handshake, segments: u32, marked: u64) {
        self.flows += 1;
        self.negotiated += u32::from(shook.ecn);
        if kind == StepKind::Upload && shook.ecn && segments >= ENOUGH_SEGMENTS {
            self.uploads += 1;
            self.with_ect += u32::from(shook.ecn_seen);
        }
        if kind == StepKind::Download {
            self.marked += marked;
        }
    }

    /// Takes a session of datagrams.
    pub(super) fn take_datagrams(&mut self, marked: u64) {
        self.marked_datagrams += marked;
    }

    /// What is known, given the kernel's setting `net.ipv4.tcp_ecn`; `None` without a flow.
    pub(super) fn result(&self, setting: Option<&str>) -> Option<Ecn> {
        if self.flows == 0 {
            return None;
        }
        let negotiated = self.negotiated > 0;
        let up = (self.uploads > 0).then_some(self.with_ect > 0);
        // A receiver reports congestion experienced alone: without it, ECT may have been cleared.
        let marked = self.marked + self.marked_datagrams;
        let down = (marked > 0).then_some(true);
        let (marked, sentence) = (self.marked, self.sentence(setting));
        Some(Ecn { negotiated, up, down, ect1: None, marked, sentence })
    }

    fn sentence(&self, setting: Option<&str>) -> String {
        if self.negotiated == 0 {
            let refuses = setting.is_some_and(|setting| setting.trim() == "0");
            return if refuses {
                "ECN: cannot tell, because this server does not accept it (net.ipv4.tcp_ecn is 0)."
            } else {
                "ECN: not negotiated. The client did not ask for it, as most systems do not, or \
                 the request was removed on the path; the server cannot tell which."
            }
            .to_owned();
        }
        let up = match (self.uploads, self.with_ect) {
            (0, _) => "no upload shows whether ECT(0) arrives at the server",
            (_, 0) => "ECT(0) is cleared on the path to the server",
            _ => "ECT(0) arrives at the server",
        };
        let down = if self.marked + self.marked_datagrams > 0 {
            "packets to the client were marked with congestion experienced"
        } else {
            "no packet to the client was marked, so it is unknown whether ECT(0) arrives there"
        };
        format!("ECN: negotiated; {up}; {down}. ECT(1): cannot tell, because neither end sends it.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shook(ecn: bool, ecn_seen: bool) -> Handshake {
        Handshake {
            ecn,
            ecn_seen,
            timestamps: true,
            sack: true,
            window_scale: true,
            peer_shift: 7,
            own_shift: 7,
        }
    }

    #[test]
    fn it_says_what_is_known_and_nothing_else() {
        assert_eq!(Observed::default().result(None), None);
        let mut seen = Observed::default();
        seen.flow(StepKind::Download, &shook(false, false), 1, 0);
        seen.flow(StepKind::Upload, &shook(false, false), 1000, 0);
        let without = seen.result(Some("2")).unwrap();
        assert_eq!((without.negotiated, without.up, without.down), (false, None, None));
        assert!(without.sentence.contains("did not ask"), "{}", without.sentence);
        assert!(seen.result(Some("0\n")).unwrap().sentence.contains("tcp_ecn is 0"));

        seen.flow(StepKind::Upload, &shook(true, false), 5, 0);
        assert_eq!(seen.result(None).unwrap().up, None, "too few segments");
        seen.flow(StepKind::Upload, &shook(true, false), 1000, 0);
        let cleared = seen.result(None).unwrap();
        assert_eq!((cleared.negotiated, cleared.up), (true, Some(false)));
        seen.flow(StepKind::Upload, &shook(true, true), 1000, 0);
        seen.flow(StepKind::Download, &shook(true, true), 1, 3);
        let known = seen.result(None).unwrap();
        assert_eq!((known.up, known.down, known.ect1), (Some(true), Some(true), None));
        assert_eq!(known.marked, 3);
        assert!(known.sentence.contains("ECT(1): cannot tell"));
    }
}
