//! One connection of a test: its control connection, or one with data.

use super::reader::{Item, Reader};
use super::{COOKIE, Cookie, Document, State, StateChange, Test, partial_json};
use capture::dissect::{PacketDirection, TcpSegment};

/// States that are kept: a test has eight.
const MAX_STATES: usize = 32;

/// A connection that began with a cookie.
#[derive(Debug)]
pub(super) struct Control {
    client: PacketDirection,
    sides: [Reader; 2],
    test: Test,
}

impl Control {
    /// `first` begins with the cookie.
    pub(super) fn new(stream: u32, cookie: Cookie, first: &TcpSegment<'_>) -> Self {
        Control {
            client: first.direction,
            sides: [Reader::after(first.seq.wrapping_add(COOKIE as u32)), Reader::default()],
            test: Test {
                cookie,
                stream,
                parameters: None,
                results: [None, None],
                states: Vec::new(),
                is_incomplete: false,
            },
        }
    }

    pub(super) fn client(&self) -> PacketDirection {
        self.client
    }

    pub(super) fn cookie(&self) -> Cookie {
        self.test.cookie
    }

    /// The test, if this is its control connection.
    pub(super) fn test(&self) -> Option<&Test> {
        let first = self.test.states.first().map(|change| change.state);
        let begins =
            matches!(first, Some(State::ParamExchange | State::AccessDenied | State::ServerError));
        (begins || self.test.parameters.is_some()).then_some(&self.test)
    }

    /// Reads a segment; how many bytes of JSON, of at most `most`, were kept.
    pub(super) fn add(
        &mut self,
        packet: u64,
        time_ns: u64,
        segment: &TcpSegment<'_>,
        most: usize,
    ) -> usize {
        let from_server = usize::from(segment.direction != self.client);
        let (side, test) = (&mut self.sides[from_server], &mut self.test);
        let mut kept = 0;
        side.add(segment, |item| match item {
            Item::State(state) => {
                if test.states.len() < MAX_STATES {
                    test.states.push(StateChange { state, packet, time_ns, error: None });
                }
            }
            Item::Error(code, errno) => {
                let last = test.states.iter_mut().rev();
                let mut errors = last.filter(|change| change.state == State::ServerError);
                if let Some(change) = errors.next() {
                    change.error = Some((code, errno));
                }
            }
            Item::Json { text, cut } => {
                let is_first = from_server == 0 && test.parameters.is_none();
                let place = if is_first && test.results[0].is_none() {
                    &mut test.parameters
                } else {
                    &mut test.results[from_server]
                };
                if place.is_none()
                    && kept + text.len() <= most
                    && let Some(json) = partial_json::object(text)
                {
                    kept += text.len();
                    *place = Some(Document { json, packet, cut });
                }
            }
        });
        test.is_incomplete |= side.has_gap();
        kept
    }
}
