//! What a box reports while it runs.

use ::boost::{BufferKind, CappedBuffer, Event, FlowEnd, FlowSummary, Uncompressed};
use serde::Serialize;
use std::net::SocketAddr;

/// The version of [`BoostLine`] in JSON.
pub const BOOST_EVENT_SCHEMA: &str = "longhaul.boost-event/1";

/// An event of a box. Texts of peers are not printable as they are.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum BoostEvent {
    /// It listens.
    Listening {
        /// `near` or `far`.
        role: &'static str,
        /// The addresses, with what each is for.
        addresses: Vec<String>,
        /// The connections between the boxes are encrypted.
        encrypted: bool,
        /// Their congestion control.
        congestion: String,
    },
    /// A setting of this host, or a flag, that costs speed or safety.
    Warning {
        /// What to do about it.
        text: String,
    },
    /// A flow has ended.
    Flow(FlowFinished),
    /// A connection was closed before it was a flow or a lane.
    Refused {
        /// Its address.
        peer: SocketAddr,
        /// The reason.
        why: String,
    },
    /// The far box cannot be reached; reported once until it can.
    FarUnreachable {
        /// Its address.
        far: SocketAddr,
        /// The reason.
        why: String,
    },
    /// UDP does not reach the far box: TCP carries the flows for some minutes.
    UdtBlocked {
        /// Its address.
        far: SocketAddr,
        /// The reason.
        why: String,
    },
    /// The kernel caps a buffer, so several connections carry the session.
    SeveralConnections {
        /// Their number.
        connections: u64,
        /// The smallest buffer.
        buffer: LaneBuffer,
        /// Its size.
        granted_bytes: u64,
        /// The size that was asked for.
        asked_bytes: u64,
    },
    /// The far box is reached.
    FarReached {
        /// Its address.
        far: SocketAddr,
    },
    /// Nothing more is accepted; the box ends with its last flow.
    Draining {
        /// Flows that have not ended.
        flows: u64,
    },
    /// Events that were not reported, as there were too many.
    HeldBack {
        /// Their number.
        count: u64,
    },
}

/// A buffer of the connections between the boxes.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LaneBuffer {
    /// The send buffer of this box.
    NearSend,
    /// Its receive buffer.
    NearReceive,
    /// The smaller one of the far box.
    Far,
}

/// A flow that has ended.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FlowFinished {
    /// The application; at far, the near box.
    pub peer: SocketAddr,
    /// The target.
    pub target: String,
    /// Bytes from the application to the target.
    pub sent_bytes: u64,
    /// Bytes from the target to the application.
    pub received_bytes: u64,
    /// Bytes between the boxes for `sent_bytes`, without headers: fewer where they were compressed.
    pub wan_sent_bytes: u64,
    /// Bytes between the boxes for `received_bytes`.
    pub wan_received_bytes: u64,
    /// Why the direction from this box was not compressed, though both boxes compress: `encrypted`,
    /// `incompressible` or `cpu_limited`.
    pub uncompressed: Option<&'static str>,
    /// Seconds from its beginning.
    pub seconds: f64,
    /// `fin`, `reset`, `refused`, `lane_failed`, `idle` or `stopped`.
    pub end: &'static str,
    /// The reason, if it did not end with FIN.
    pub why: Option<String>,
}

/// A line of the log: an event with its time.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Serialize)]
pub struct BoostLine<'a> {
    /// [`BOOST_EVENT_SCHEMA`].
    pub schema: &'static str,
    /// Seconds since 1970-01-01 UTC.
    pub time: f64,
    /// The event.
    #[serde(flatten)]
    pub event: &'a BoostEvent,
}

impl<'a> BoostLine<'a> {
    /// A line of now.
    #[must_use]
    pub fn now(event: &'a BoostEvent) -> Self {
        let time = host::clock::unix_time().as_secs_f64();
        BoostLine { schema: BOOST_EVENT_SCHEMA, time, event }
    }
}

impl From<FlowSummary> for FlowFinished {
    fn from(flow: FlowSummary) -> Self {
        let (end, why) = match flow.end {
            FlowEnd::Orderly => ("fin", None),
            FlowEnd::LocalReset => ("reset", Some("reset on this side".to_owned())),
            FlowEnd::PeerReset => ("reset", Some("reset on the other side".to_owned())),
            FlowEnd::Refused(refusal) => ("refused", Some(refusal.to_string())),
            FlowEnd::LaneFailed(why) => ("lane_failed", Some(why)),
            FlowEnd::IdleTimeout => ("idle", Some("idle for too long".to_owned())),
            FlowEnd::Stopped => ("stopped", Some("the box was stopped".to_owned())),
        };
        FlowFinished {
            peer: flow.peer,
            target: flow.target.to_string(),
            sent_bytes: flow.sent,
            received_bytes: flow.received,
            wan_sent_bytes: flow.wan_sent,
            wan_received_bytes: flow.wan_received,
            uncompressed: flow.uncompressed.map(|why| match why {
                Uncompressed::Encrypted => "encrypted",
                Uncompressed::Incompressible => "incompressible",
                Uncompressed::CpuLimited => "cpu_limited",
            }),
            seconds: flow.duration.as_secs_f64(),
            end,
            why,
        }
    }
}

impl From<Event> for BoostEvent {
    fn from(event: Event) -> Self {
        match event {
            Event::FlowEnded(summary) => BoostEvent::Flow(summary.into()),
            Event::RequestRefused { peer, why } | Event::LaneRefused { peer, why } => {
                BoostEvent::Refused { peer, why }
            }
            Event::FarUnreachable { far, why } => BoostEvent::FarUnreachable { far, why },
            Event::UdtBlocked { far, why } => BoostEvent::UdtBlocked { far, why },
            Event::FarReached { far } => BoostEvent::FarReached { far },
            Event::SeveralConnections { connections, capped, granted, asked } => {
                BoostEvent::SeveralConnections {
                    connections: connections as u64,
                    buffer: match capped {
                        CappedBuffer::Near(BufferKind::Send) => LaneBuffer::NearSend,
                        CappedBuffer::Near(BufferKind::Receive) => LaneBuffer::NearReceive,
                        CappedBuffer::Far => LaneBuffer::Far,
                    },
                    granted_bytes: granted.bytes(),
                    asked_bytes: asked.bytes(),
                }
            }
        }
    }
}
