//! The one-byte messages of the control connection.

use std::fmt;

/// A message of one signed byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i8)]
pub enum State {
    /// Server: all streams are open; prepare the test.
    TestStart = 1,
    /// Server: the test starts.
    TestRunning = 2,
    /// Client: the test is over. The client always ends it, in reverse too.
    TestEnd = 4,
    /// Server: send your parameters.
    ParamExchange = 9,
    /// Server: open the streams.
    CreateStreams = 10,
    /// Server: it was stopped.
    ServerTerminate = 11,
    /// Client: it was interrupted.
    ClientTerminate = 12,
    /// Server: send the results; the server's follow.
    ExchangeResults = 13,
    /// Server: the results are complete.
    DisplayResults = 14,
    /// Client: the session ends.
    IperfDone = 16,
    /// Server: busy with another test, or the cookie is another test's.
    AccessDenied = -1,
    /// Server: it failed; an error code and an errno follow, four bytes each.
    ServerError = -2,
}

impl State {
    /// The byte on the wire.
    #[must_use]
    pub const fn byte(self) -> u8 {
        (self as i8).cast_unsigned()
    }

    /// Decodes a byte; `None` for one that no version sends.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte.cast_signed() {
            1 => State::TestStart,
            2 => State::TestRunning,
            4 => State::TestEnd,
            9 => State::ParamExchange,
            10 => State::CreateStreams,
            11 => State::ServerTerminate,
            12 => State::ClientTerminate,
            13 => State::ExchangeResults,
            14 => State::DisplayResults,
            16 => State::IperfDone,
            -1 => State::AccessDenied,
            -2 => State::ServerError,
            _ => return None,
        })
    }

    /// The name used in messages to people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            State::TestStart => "TEST_START",
            State::TestRunning => "TEST_RUNNING",
            State::TestEnd => "TEST_END",
            State::ParamExchange => "PARAM_EXCHANGE",
            State::CreateStreams => "CREATE_STREAMS",
            State::ServerTerminate => "SERVER_TERMINATE",
            State::ClientTerminate => "CLIENT_TERMINATE",
            State::ExchangeResults => "EXCHANGE_RESULTS",
            State::DisplayResults => "DISPLAY_RESULTS",
            State::IperfDone => "IPERF_DONE",
            State::AccessDenied => "ACCESS_DENIED",
            State::ServerError => "SERVER_ERROR",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_byte_survives_the_wire() {
        let known = (0..=255u8).filter_map(|b| State::from_byte(b).map(|s| (b, s)));
        assert_eq!(known.clone().count(), 12);
        for (byte, state) in known {
            assert_eq!(state.byte(), byte);
        }
        assert_eq!(State::AccessDenied.byte(), 0xff);
        assert_eq!(State::ServerError.byte(), 0xfe);
    }
}
