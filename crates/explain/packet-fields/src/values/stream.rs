//! What is known of a TCP segment from its stream, and its options.

use super::Emit;
use crate::field::Field;
use crate::value::Value;
use crate::view::{PacketView, StreamView};
use capture::dissect::{TcpFlags, TcpOption, TcpSegment};
use tcp_analysis::{Flags, WindowScale};

/// Which flag of the analysis a field is.
fn flag(field: Field) -> Option<Flags> {
    Some(match field {
        Field::TcpAnalysisRetransmission => Flags::RETRANSMISSION,
        Field::TcpAnalysisFastRetransmission => Flags::FAST_RETRANSMISSION,
        Field::TcpAnalysisSpuriousRetransmission => Flags::SPURIOUS_RETRANSMISSION,
        Field::TcpAnalysisOutOfOrder => Flags::OUT_OF_ORDER,
        Field::TcpAnalysisDuplicateAck => Flags::DUPLICATE_ACK,
        Field::TcpAnalysisAckLostSegment => Flags::ACK_LOST_SEGMENT,
        Field::TcpAnalysisLostSegment => Flags::LOST_SEGMENT,
        Field::TcpAnalysisZeroWindow => Flags::ZERO_WINDOW,
        Field::TcpAnalysisZeroWindowProbe => Flags::ZERO_WINDOW_PROBE,
        Field::TcpAnalysisZeroWindowProbeAck => Flags::ZERO_WINDOW_PROBE_ACK,
        Field::TcpAnalysisWindowFull => Flags::WINDOW_FULL,
        Field::TcpAnalysisWindowUpdate => Flags::WINDOW_UPDATE,
        Field::TcpAnalysisKeepAlive => Flags::KEEP_ALIVE,
        Field::TcpAnalysisKeepAliveAck => Flags::KEEP_ALIVE_ACK,
        Field::TcpAnalysisReusedPorts => Flags::REUSED_PORTS,
        _ => return None,
    })
}

/// The flags that Wireshark has.
fn shown_flags(stream: &StreamView) -> Flags {
    Flags(stream.analysis.flags.0 & !Flags::DUPLICATE_SACK.0)
}

/// Whether Wireshark's analysis says anything about the packet; only then it shows the
/// initial RTT.
fn is_analysed(stream: &StreamView) -> bool {
    let analysis = &stream.analysis;
    !shown_flags(stream).is_empty()
        || analysis.acknowledges.is_some()
        || analysis.bytes_in_flight.is_some()
}

impl StreamView {
    /// The sequence number relative to the sender's first one.
    #[must_use]
    pub fn relative_seq(&self, seq: u32) -> u32 {
        seq.wrapping_sub(self.base[0])
    }

    /// The acknowledgment number, or an edge of a SACK block, relative to the receiver's
    /// first one.
    #[must_use]
    pub fn relative_ack(&self, ack: u32) -> u32 {
        ack.wrapping_sub(self.base[1])
    }

    /// The window in bytes: as sent in a SYN, scaled in what follows it.
    #[must_use]
    pub fn window_bytes(&self, segment: &TcpSegment<'_>) -> u32 {
        let is_syn = segment.flags.has(TcpFlags::SYN);
        u32::from(segment.window) << if is_syn { 0 } else { self.scale.shift() }
    }
}

/// The sequence number that an ACK tells, relative to the receiver's first one.
pub(crate) fn acknowledgment(segment: &TcpSegment<'_>, stream: &StreamView) -> u32 {
    if segment.flags.has(TcpFlags::ACK) { stream.relative_ack(segment.ack) } else { segment.ack }
}

pub(super) fn values(view: &PacketView<'_>, field: Field, emit: Emit<'_>) {
    let Some(segment) = view.segment else { return };
    if !option_values(view, segment, field, emit)
        && let Some(stream) = &view.stream
        && let Some(value) = of_stream(segment, stream, field)
    {
        emit(value);
    }
}

fn of_stream<'a>(segment: &TcpSegment<'_>, stream: &StreamView, field: Field) -> Option<Value<'a>> {
    if let Some(flag) = flag(field) {
        return stream.analysis.flags.has(flag).then_some(Value::Present);
    }
    let integer = |number: u32| Some(Value::Integer(i64::from(number)));
    let time = |ns: u64| Value::Time(ns.cast_signed());
    let present = |is_there: bool| is_there.then_some(Value::Present);
    let analysis = &stream.analysis;
    let duplicates = analysis.flags.has(Flags::DUPLICATE_ACK);
    match field {
        Field::TcpStream => integer(stream.number),
        Field::TcpCompleteness => integer(u32::from(stream.completeness)),
        Field::TcpSeq => integer(stream.relative_seq(segment.seq)),
        Field::TcpNxtseq => integer(stream.relative_seq(segment.next_seq())),
        Field::TcpAck => integer(acknowledgment(segment, stream)),
        Field::TcpWindowSize => integer(stream.window_bytes(segment)),
        Field::TcpWindowSizeScalefactor if !segment.flags.has(TcpFlags::SYN) => {
            Some(Value::Integer(match stream.scale {
                WindowScale::Unknown => -1,
                WindowScale::Off => -2,
                WindowScale::Shift(shift) => 1 << shift,
            }))
        }
        Field::TcpTimeRelative => Some(Value::Time(stream.since_first_ns)),
        Field::TcpTimeDelta => Some(Value::Time(stream.since_previous_ns)),
        Field::TcpAnalysisFlags => (!shown_flags(stream).is_empty()).then_some(Value::Present),
        Field::TcpAnalysis => is_analysed(stream).then_some(Value::Present),
        Field::TcpAnalysisDuplicateAckNum if duplicates => integer(analysis.duplicate_ack),
        Field::TcpAnalysisDuplicateAckFrame if duplicates => integer(analysis.repeats_packet),
        Field::TcpAnalysisAcksFrame => integer(analysis.acknowledges?.0),
        // Wireshark does not show times of 0.
        Field::TcpAnalysisAckRtt => Some(analysis.acknowledges?.1).filter(|ns| *ns > 0).map(time),
        Field::TcpAnalysisInitialRtt if is_analysed(stream) => stream.initial_rtt_ns.map(time),
        Field::TcpAnalysisBytesInFlight => integer(analysis.bytes_in_flight?),
        // Wireshark does not show 0.
        Field::TcpAnalysisPushBytesSent => integer(stream.push_bytes_sent.filter(|it| *it > 0)?),
        Field::TcpConnectionSyn => present(segment.flags.is_first_syn()),
        Field::TcpConnectionSynack => present(segment.flags.is_syn_ack()),
        Field::TcpConnectionFin => present(segment.flags.has(TcpFlags::FIN)),
        Field::TcpConnectionFinActive => {
            present(segment.flags.has(TcpFlags::FIN) && stream.closes_first)
        }
        Field::TcpConnectionFinPassive => {
            present(segment.flags.has(TcpFlags::FIN) && !stream.closes_first)
        }
        Field::TcpConnectionRst => present(segment.flags.has(TcpFlags::RST)),
        Field::TcpAnalysisRto => analysis.retransmit_delay_ns.filter(|ns| *ns > 0).map(time),
        _ => None,
    }
}

/// The kind of the option that a field shows as a whole.
fn option_kind(field: Field) -> Option<u8> {
    Some(match field {
        Field::TcpOptionsEol => 0,
        Field::TcpOptionsNop => 1,
        Field::TcpOptionsMssOption => 2,
        Field::TcpOptionsWscale => 3,
        Field::TcpOptionsSack => 5,
        Field::TcpOptionsTimestamp => 8,
        Field::TcpOptionsTfo => 34,
        _ => return None,
    })
}

/// Whether a field is in an option, or is an option as a whole.
fn is_in_options(field: Field) -> bool {
    option_kind(field).is_some()
        || matches!(
            field,
            Field::TcpOptionKind
                | Field::TcpOptionLen
                | Field::TcpOptionsMss
                | Field::TcpOptionsWscaleShift
                | Field::TcpOptionsWscaleMultiplier
                | Field::TcpOptionsSackPerm
                | Field::TcpOptionsSackLe
                | Field::TcpOptionsSackRe
                | Field::TcpOptionsSackCount
                | Field::TcpOptionsTsval
                | Field::TcpOptionsTsecr
                | Field::TcpOptionsMptcpSubtype
        )
}

/// The values of a field that is in options; whether it is one.
fn option_values(
    view: &PacketView<'_>,
    segment: &TcpSegment<'_>,
    field: Field,
    emit: Emit<'_>,
) -> bool {
    if field == Field::TcpOptions {
        if !segment.option_bytes().is_empty() {
            emit(Value::Bytes(segment.option_bytes()));
        }
        return true;
    }
    if !is_in_options(field) {
        return false;
    }
    let mut rest = segment.option_bytes();
    for option in segment.each_option() {
        // A no-operation has no length.
        let length = if option.kind == 1 { 1 } else { option.data.len() + 2 };
        let (whole, after) = rest.split_at_checked(length).unwrap_or((rest, &[][..]));
        rest = after;
        if option_kind(field) == Some(option.kind) {
            emit(Value::Bytes(whole));
        } else {
            in_option(view, option, field, emit);
        }
    }
    // It ends the list, and the rest is padding.
    if option_kind(field) == Some(0) && rest.first() == Some(&0) {
        emit(Value::Bytes(rest.get(..1).unwrap_or_default()));
    }
    if field == Field::TcpOptionKind && rest.first() == Some(&0) {
        emit(Value::Integer(0));
    }
    true
}

fn in_option(view: &PacketView<'_>, option: TcpOption<'_>, field: Field, emit: Emit<'_>) {
    let long = |[a, b, c, d]: [u8; 4]| u32::from_be_bytes([a, b, c, d]);
    let number = match (field, option.kind, option.data) {
        (Field::TcpOptionKind, kind, _) => i64::from(kind),
        (Field::TcpOptionLen, 2.., data) => data.len() as i64 + 2,
        (Field::TcpOptionsMss, 2, [a, b]) => i64::from(u16::from_be_bytes([*a, *b])),
        (Field::TcpOptionsWscaleShift, 3, [shift]) => i64::from(*shift),
        (Field::TcpOptionsWscaleMultiplier, 3, [shift]) => 1 << (*shift).min(14),
        (Field::TcpOptionsSackPerm, 4, []) => return emit(Value::Present),
        (Field::TcpOptionsSackCount, 5, data) => (data.len() / 8) as i64,
        (Field::TcpOptionsSackLe | Field::TcpOptionsSackRe, 5, data) => {
            for [a, b, c, d, e, f, g, h] in data.as_chunks::<8>().0 {
                let is_left = field == Field::TcpOptionsSackLe;
                let edge = long(if is_left { [*a, *b, *c, *d] } else { [*e, *f, *g, *h] });
                let relative = view.stream.map_or(edge, |stream| stream.relative_ack(edge));
                emit(Value::Integer(i64::from(relative)));
            }
            return;
        }
        (Field::TcpOptionsTsval, 8, &[a, b, c, d, ..]) => i64::from(long([a, b, c, d])),
        (Field::TcpOptionsTsecr, 8, &[_, _, _, _, a, b, c, d]) => i64::from(long([a, b, c, d])),
        (Field::TcpOptionsMptcpSubtype, 30, [first, ..]) => i64::from(first >> 4),
        _ => return,
    };
    emit(Value::Integer(number));
}
