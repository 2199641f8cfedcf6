//! Order of the messages on the control connection.
//!
//! ```text
//! client                        server
//!   cookie ────────────────────▶
//!          ◀──────────────────── PARAM_EXCHANGE
//!   parameters ────────────────▶
//!          ◀──────────────────── CREATE_STREAMS
//!   (opens the streams)
//!          ◀──────────────────── TEST_START, TEST_RUNNING
//!   TEST_END ──────────────────▶
//!          ◀──────────────────── EXCHANGE_RESULTS
//!   results ───────────────────▶
//!          ◀──────────────────── results, DISPLAY_RESULTS
//!   IPERF_DONE ────────────────▶
//! ```
//!
//! At any point the client may send `CLIENT_TERMINATE`, and the server
//! `SERVER_TERMINATE`, `ACCESS_DENIED` or `SERVER_ERROR`.

use crate::State;
use std::fmt;

/// An end of the control connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Requests the test, and ends it.
    Client,
    /// Runs the tests that clients request.
    Server,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Role::Client => "client",
            Role::Server => "server",
        })
    }
}

/// State of the control connection, as one end sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    role: Role,
    at: Point,
}

/// Which message is expected next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Point {
    /// Next: `PARAM_EXCHANGE`.
    Connected,
    /// Next: `CREATE_STREAMS`.
    Parameters,
    /// Next: `TEST_START`.
    Streams,
    /// Next: `TEST_RUNNING`.
    Starting,
    /// Next: `TEST_END`, from the client.
    Running,
    /// Next: `EXCHANGE_RESULTS`.
    Ended,
    /// Next: `DISPLAY_RESULTS`.
    Results,
    /// Next: `IPERF_DONE`, from the client.
    Displayed,
    /// Nothing more.
    Over,
}

/// A message that violates the protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// No version of iperf3 sends this byte.
    #[error(
        "byte {byte:#04x} {point} is not an iperf3 message; check that the port belongs to iperf3 or longhaul"
    )]
    Unknown {
        /// The byte.
        byte: u8,
        /// When it was received: `before PARAM_EXCHANGE`.
        point: &'static str,
    },
    /// A message at the wrong time.
    #[error("unexpected {state} {point}; compare the versions of both ends")]
    OutOfOrder {
        /// The message.
        state: State,
        /// When it was received: `before PARAM_EXCHANGE`.
        point: &'static str,
    },
}

impl Order {
    /// A control connection on which the cookie has been sent.
    #[must_use]
    pub const fn new(role: Role) -> Self {
        Order { role, at: Point::Connected }
    }

    /// Processes a byte received from the other end.
    ///
    /// # Errors
    /// The byte is not a message, or not one allowed now. The connection is unusable.
    pub fn receive(&mut self, byte: u8) -> Result<State, OrderError> {
        let from = match self.role {
            Role::Client => Role::Server,
            Role::Server => Role::Client,
        };
        let Some(state) = State::from_byte(byte) else {
            return Err(OrderError::Unknown { byte, point: self.point() });
        };
        self.step(from, state)?;
        Ok(state)
    }

    /// Records a message that this end sends, and returns its byte.
    ///
    /// # Errors
    /// The message is not allowed now: a bug of the caller.
    pub fn send(&mut self, state: State) -> Result<u8, OrderError> {
        self.step(self.role, state)?;
        Ok(state.byte())
    }

    /// The current point of the protocol in words: `before PARAM_EXCHANGE`.
    #[must_use]
    pub const fn point(&self) -> &'static str {
        match self.at {
            Point::Connected => "before PARAM_EXCHANGE",
            Point::Parameters => "before CREATE_STREAMS",
            Point::Streams => "before TEST_START",
            Point::Starting => "before TEST_RUNNING",
            Point::Running => "during the test",
            Point::Ended => "before EXCHANGE_RESULTS",
            Point::Results => "before DISPLAY_RESULTS",
            Point::Displayed => "before IPERF_DONE",
            Point::Over => "after the end",
        }
    }

    fn step(&mut self, from: Role, state: State) -> Result<(), OrderError> {
        use Role::{Client, Server};
        self.at = match (self.at, from, state) {
            (Point::Over, ..) => {
                return Err(OrderError::OutOfOrder { state, point: self.point() });
            }
            (_, Client, State::ClientTerminate)
            | (_, Server, State::ServerTerminate | State::AccessDenied | State::ServerError)
            | (Point::Displayed, Client, State::IperfDone) => Point::Over,
            (Point::Connected, Server, State::ParamExchange) => Point::Parameters,
            (Point::Parameters, Server, State::CreateStreams) => Point::Streams,
            (Point::Streams, Server, State::TestStart) => Point::Starting,
            (Point::Starting, Server, State::TestRunning) => Point::Running,
            (Point::Running, Client, State::TestEnd) => Point::Ended,
            (Point::Ended, Server, State::ExchangeResults) => Point::Results,
            (Point::Results, Server, State::DisplayResults) => Point::Displayed,
            _ => return Err(OrderError::OutOfOrder { state, point: self.point() }),
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WHOLE_TEST: [(Role, State); 8] = [
        (Role::Server, State::ParamExchange),
        (Role::Server, State::CreateStreams),
        (Role::Server, State::TestStart),
        (Role::Server, State::TestRunning),
        (Role::Client, State::TestEnd),
        (Role::Server, State::ExchangeResults),
        (Role::Server, State::DisplayResults),
        (Role::Client, State::IperfDone),
    ];

    fn after(role: Role, steps: usize) -> Order {
        let mut order = Order::new(role);
        for (from, state) in WHOLE_TEST.into_iter().take(steps) {
            if from == role {
                order.send(state).unwrap();
            } else {
                assert_eq!(order.receive(state.byte()), Ok(state));
            }
        }
        order
    }

    #[test]
    fn a_whole_test_is_in_order_at_both_ends() {
        assert_eq!(after(Role::Client, 8).point(), "after the end");
        assert_eq!(after(Role::Server, 8).point(), "after the end");
    }

    #[test]
    fn either_end_may_abort_at_any_point() {
        for steps in 0..8 {
            let mut client = after(Role::Client, steps);
            assert_eq!(client.clone().receive(0xff), Ok(State::AccessDenied));
            assert_eq!(client.clone().receive(0xfe), Ok(State::ServerError));
            assert!(client.send(State::ClientTerminate).is_ok());
            assert!(client.receive(1).is_err(), "nothing follows the end");
        }
    }

    #[test]
    fn a_message_at_the_wrong_time_names_both() {
        let error = after(Role::Client, 1).receive(State::TestRunning.byte()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "unexpected TEST_RUNNING before CREATE_STREAMS; compare the versions of both ends"
        );
        let error = after(Role::Client, 0).receive(b'H').unwrap_err();
        assert!(matches!(error, OrderError::Unknown { byte: b'H', .. }), "{error}");
        // A server does not accept a server's messages from a client.
        assert!(after(Role::Server, 1).receive(State::CreateStreams.byte()).is_err());
    }

    proptest! {
        #[test]
        fn any_byte_sequence_is_processed(bytes in prop::collection::vec(any::<u8>(), 0..40), client in any::<bool>()) {
            let mut order = Order::new(if client { Role::Client } else { Role::Server });
            for byte in bytes {
                let _ = order.receive(byte);
            }
        }
    }
}
