//! What Wireshark's expert information says of a packet: severity, group, message.

use crate::application::{Application, Payload};
use crate::field::Field;
use crate::value::Value;
use crate::values::http;
use crate::view::PacketView;
use capture::dissect::{Protocol, TcpFlags};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use tcp_analysis::Flags;

/// How much an item matters, with Wireshark's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u32)]
#[expect(missing_docs, reason = "the names are Wireshark's")]
pub enum Severity {
    Chat = 0x20_0000,
    Note = 0x40_0000,
    Warning = 0x60_0000,
    Error = 0x80_0000,
}

impl Severity {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Severity::Chat => "Chat",
            Severity::Note => "Note",
            Severity::Warning => "Warning",
            Severity::Error => "Error",
        }
    }
}

/// What an item is about, with Wireshark's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
#[expect(missing_docs, reason = "the names are Wireshark's")]
pub enum Group {
    Sequence = 0x200_0000,
    Malformed = 0x700_0000,
}

impl Group {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Group::Sequence => "Sequence",
            Group::Malformed => "Malformed",
        }
    }
}

/// A kind of item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpertKind {
    /// How much it matters.
    pub severity: Severity,
    /// What it is about.
    pub group: Group,
    /// Name of the protocol.
    pub protocol: &'static str,
    /// What it says, without numbers.
    pub summary: &'static str,
}

const fn kind(severity: Severity, summary: &'static str) -> ExpertKind {
    ExpertKind { severity, group: Group::Sequence, protocol: "TCP", summary }
}

const fn chat(protocol: &'static str, summary: &'static str) -> ExpertKind {
    ExpertKind { protocol, ..kind(Severity::Chat, summary) }
}

const SYN: usize = 0;
const SYN_ACK: usize = 1;
const FIN: usize = 2;
const FIN_ACTIVE: usize = 3;
const FIN_PASSIVE: usize = 4;
const RST: usize = 5;
const REQUEST: usize = 6;
const RESPONSE: usize = 7;
const MALFORMED: usize = 8;
/// The first of the analysis.
const FLAGS_FROM: usize = 9;

/// The flags of the analysis, in the order of [`KINDS`] from [`FLAGS_FROM`] on.
const FLAGS: [Flags; 15] = [
    Flags::RETRANSMISSION,
    Flags::FAST_RETRANSMISSION,
    Flags::SPURIOUS_RETRANSMISSION,
    Flags::OUT_OF_ORDER,
    Flags::REUSED_PORTS,
    Flags::LOST_SEGMENT,
    Flags::ACK_LOST_SEGMENT,
    Flags::WINDOW_UPDATE,
    Flags::WINDOW_FULL,
    Flags::KEEP_ALIVE,
    Flags::KEEP_ALIVE_ACK,
    Flags::DUPLICATE_ACK,
    Flags::ZERO_WINDOW_PROBE,
    Flags::ZERO_WINDOW,
    Flags::ZERO_WINDOW_PROBE_ACK,
];

/// Every kind of item.
pub const KINDS: [ExpertKind; 24] = [
    kind(Severity::Chat, "Connection establish request (SYN)"),
    kind(Severity::Chat, "Connection establish acknowledge (SYN+ACK)"),
    kind(Severity::Chat, "Connection finish (FIN)"),
    kind(Severity::Note, "This frame initiates the connection closing"),
    kind(Severity::Note, "This frame undergoes the connection closing"),
    kind(Severity::Warning, "Connection reset (RST)"),
    chat("HTTP", "HTTP request"),
    chat("HTTP", "HTTP response"),
    ExpertKind {
        severity: Severity::Error,
        group: Group::Malformed,
        protocol: "packet",
        summary: "Malformed packet",
    },
    kind(Severity::Note, "This frame is a (suspected) retransmission"),
    kind(Severity::Note, "This frame is a (suspected) fast retransmission"),
    kind(Severity::Note, "This frame is a (suspected) spurious retransmission"),
    kind(Severity::Warning, "This frame is a (suspected) out-of-order segment"),
    kind(
        Severity::Note,
        "A new tcp session is started with the same ports as an earlier session in this trace",
    ),
    kind(Severity::Warning, "Previous segment(s) not captured (common at capture start)"),
    kind(Severity::Warning, "ACKed segment that wasn't captured (common at capture start)"),
    kind(Severity::Chat, "TCP window update"),
    kind(Severity::Warning, "TCP window specified by the receiver is now completely full"),
    kind(Severity::Note, "TCP keep-alive segment"),
    kind(Severity::Note, "ACK to a TCP keep-alive segment"),
    kind(Severity::Note, "Duplicate ACK"),
    kind(Severity::Note, "TCP Zero Window Probe"),
    kind(Severity::Warning, "TCP Zero Window segment"),
    kind(Severity::Note, "ACK to a TCP Zero Window Probe"),
];

/// An item about a packet.
#[derive(Debug, Clone, Copy)]
pub struct Item<'a> {
    /// Place of its kind in [`KINDS`].
    pub place: usize,
    /// Its kind.
    pub kind: ExpertKind,
    detail: Detail<'a>,
}

/// What a message has beyond its kind.
#[derive(Debug, Clone, Copy)]
enum Detail<'a> {
    None,
    Port(u16),
    Number(u32),
    /// The first line of a message, unfiltered.
    Line(&'a [u8]),
}

impl Item<'_> {
    /// The message as Wireshark has it. A line of HTTP is text of the file, not to be trusted.
    #[must_use]
    pub fn message(&self) -> Cow<'_, str> {
        let summary = self.kind.summary;
        match self.detail {
            Detail::None => Cow::Borrowed(summary),
            Detail::Port(port) => format!("{summary}: server port {port}").into(),
            Detail::Number(number) => format!("{summary} (#{number})").into(),
            Detail::Line(line) => format!("{}\\r\\n", String::from_utf8_lossy(line)).into(),
        }
    }
}

/// Hands each item about a packet to `emit`.
pub fn each<'a>(view: &PacketView<'a>, mut emit: impl FnMut(Item<'a>)) {
    let mut put = |place: usize, detail: Detail<'a>| {
        if let Some(kind) = KINDS.get(place) {
            emit(Item { place, kind: *kind, detail });
        }
    };
    tcp(view, &mut put);
    if let Some(payload) = Payload::of(view).filter(|it| it.application == Application::Http)
        && let Some((first, line)) = http::first_line(payload.bytes)
    {
        let is_request = matches!(first, http::FirstLine::Request(_));
        put(if is_request { REQUEST } else { RESPONSE }, Detail::Line(line));
    }
    if view.layers.iter().any(|(protocol, _)| protocol == Protocol::Malformed) {
        put(MALFORMED, Detail::None);
    }
}

fn tcp<'a>(view: &PacketView<'a>, put: &mut dyn FnMut(usize, Detail<'a>)) {
    let (Some(segment), Some(stream)) = (view.segment, &view.stream) else { return };
    let (flags, ports) = (segment.flags, segment.ports());
    if flags.has(TcpFlags::SYN) {
        let is_reply = flags.has(TcpFlags::ACK);
        let (source, destination) = ports;
        let port = Detail::Port(if is_reply { source } else { destination });
        put(if is_reply { SYN_ACK } else { SYN }, port);
    }
    if flags.has(TcpFlags::FIN) {
        put(FIN, Detail::None);
        put(if stream.closes_first { FIN_ACTIVE } else { FIN_PASSIVE }, Detail::None);
    }
    if flags.has(TcpFlags::RST) {
        put(RST, Detail::None);
    }
    for (place, flag) in (FLAGS_FROM..).zip(FLAGS) {
        if stream.analysis.flags.has(flag) {
            let is_duplicate = flag == Flags::DUPLICATE_ACK;
            let number = Detail::Number(stream.analysis.duplicate_ack);
            put(place, if is_duplicate { number } else { Detail::None });
        }
    }
}

/// The values of a field of the expert information.
pub(crate) fn values(view: &PacketView<'_>, field: Field, emit: &mut dyn FnMut(Value<'_>)) {
    each(view, |item| match field {
        Field::ExpertMessage => emit(Value::Text(&item.message())),
        Field::ExpertSeverity => emit(Value::Integer(i64::from(item.kind.severity as u32))),
        Field::ExpertGroup => emit(Value::Integer(i64::from(item.kind.group as u32))),
        _ => {}
    });
}
