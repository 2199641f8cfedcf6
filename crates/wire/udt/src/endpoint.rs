//! What a driver needs of a connection, and an application of its stream, in any mode.

use crate::CloseReason;
use crate::connection::{Connection, Statistics, Transmit};
use crate::cookie::PeerAddress;
use crate::native::NativeConnection;
use units::Nanos;

/// One end of a connection, in any mode.
pub trait Endpoint {
    /// Datagrams from `from` arrived together: one, or a train that was received as one.
    /// `arrived` is when, not after `now`.
    fn receive<'a>(
        &mut self,
        now: Nanos,
        arrived: Nanos,
        from: PeerAddress,
        datagrams: impl IntoIterator<Item = &'a [u8]>,
    );

    /// The next datagrams to send: fills `out` with at most `max_segments` packets. `None`
    /// if there is nothing to send now.
    fn poll_transmit(
        &mut self,
        now: Nanos,
        max_segments: usize,
        out: &mut Vec<u8>,
    ) -> Option<Transmit>;

    /// When [`Endpoint::on_timeout`] and [`Endpoint::poll_transmit`] are to be called, if
    /// nothing happens before; `None`: never.
    fn next_timeout(&self) -> Option<Nanos>;

    /// Time has passed.
    fn on_timeout(&mut self, now: Nanos);

    /// Whether the handshake is over and the connection not closed.
    fn is_established(&self) -> bool;

    /// Why it is closed; `None` if it is not.
    fn closed(&self) -> Option<CloseReason>;

    /// Bytes of a full packet, without the headers of IP and UDP.
    fn packet_bytes(&self) -> usize;

    /// Bytes of the stream that a full packet carries.
    fn payload_bytes(&self) -> usize;

    /// Writes bytes of the stream and gives their number: fewer than offered if the buffer
    /// is full.
    fn write(&mut self, bytes: &[u8]) -> usize;

    /// Bytes that can be written now: those of whole packets.
    fn writable(&self) -> usize;

    /// Reads bytes of the stream and gives their number.
    fn read(&mut self, into: &mut [u8]) -> usize;

    /// Discards all bytes that can be read, and counts them.
    fn discard(&mut self) -> u64;

    /// Whether the peer's stream ended and all of it was read.
    fn is_finished(&self) -> bool;

    /// Whether all that was written is acknowledged.
    fn is_flushed(&self) -> bool;

    /// Closes this end: what was written is still delivered.
    fn close(&mut self);

    /// Closes the connection at once and informs the peer.
    fn abort(&mut self, reason: CloseReason);

    /// Its state.
    fn statistics(&self, now: Nanos) -> Statistics;
}

/// Calls the methods of the same names that `$connection` has.
macro_rules! endpoint {
    ($connection:ty, $receive:item) => {
        impl Endpoint for $connection {
            $receive

            fn poll_transmit(
                &mut self,
                now: Nanos,
                max_segments: usize,
                out: &mut Vec<u8>,
            ) -> Option<Transmit> {
                self.poll_transmit(now, max_segments, out)
            }

            fn next_timeout(&self) -> Option<Nanos> {
                self.next_timeout()
            }

            fn on_timeout(&mut self, now: Nanos) {
                self.on_timeout(now);
            }

            fn is_established(&self) -> bool {
                self.is_established()
            }

            fn closed(&self) -> Option<CloseReason> {
                self.closed()
            }

            fn packet_bytes(&self) -> usize {
                self.packet_bytes()
            }

            fn payload_bytes(&self) -> usize {
                self.payload_bytes()
            }

            fn write(&mut self, bytes: &[u8]) -> usize {
                self.write(bytes)
            }

            fn writable(&self) -> usize {
                self.writable()
            }

            fn read(&mut self, into: &mut [u8]) -> usize {
                self.read(into)
            }

            fn discard(&mut self) -> u64 {
                self.discard()
            }

            fn is_finished(&self) -> bool {
                self.is_finished()
            }

            fn is_flushed(&self) -> bool {
                self.is_flushed()
            }

            fn close(&mut self) {
                self.close();
            }

            fn abort(&mut self, reason: CloseReason) {
                self.abort(reason);
            }

            fn statistics(&self, now: Nanos) -> Statistics {
                self.statistics(now)
            }
        }
    };
}

endpoint!(
    Connection,
    fn receive<'a>(
        &mut self,
        now: Nanos,
        arrived: Nanos,
        _from: PeerAddress,
        datagrams: impl IntoIterator<Item = &'a [u8]>,
    ) {
        self.receive(now, arrived, datagrams);
    }
);

endpoint!(
    NativeConnection,
    fn receive<'a>(
        &mut self,
        now: Nanos,
        arrived: Nanos,
        from: PeerAddress,
        datagrams: impl IntoIterator<Item = &'a [u8]>,
    ) {
        self.receive(now, arrived, from, datagrams);
    }
);
