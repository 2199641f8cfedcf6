//! A connection between the boxes, plaintext or TLS, without blocking.

use crate::counters::Counters;
use host::edge_poller::Edge;
use host::tcp_info::TcpInfo;
use rustls::Connection;
use socket2::SockRef;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// Flag of send(2): more follows at once.
const MSG_MORE: i32 = 0x8000;
/// The queue keeps no more memory than this when it is empty.
const KEPT_QUEUE: usize = 1024;
/// Ciphertext read from the socket at a time: rustls alone reads 4 KiB.
const CIPHERTEXT: usize = 64 << 10;

/// A lane's socket with the bytes that it has not taken yet.
pub(crate) struct LaneSocket {
    pub(crate) stream: TcpStream,
    tls: Option<Box<Connection>>,
    /// Bytes before TLS.
    preamble: Vec<u8>,
    /// Messages, and payload that was copied.
    queue: Vec<u8>,
    written: usize,
    /// What was read from the socket, and the part of it that TLS has taken.
    ciphertext: Vec<u8>,
    taken: usize,
    pub(crate) is_connected: bool,
    pub(crate) readable: bool,
    writable: bool,
    counters: Arc<Counters>,
}

impl LaneSocket {
    /// A socket that is not connected yet. `preamble` is sent before TLS.
    pub(crate) fn connecting(
        stream: TcpStream,
        tls: Option<Box<Connection>>,
        preamble: Vec<u8>,
        counters: Arc<Counters>,
    ) -> Self {
        LaneSocket {
            stream,
            tls,
            preamble,
            queue: Vec::new(),
            written: 0,
            ciphertext: Vec::new(),
            taken: 0,
            is_connected: false,
            readable: false,
            writable: false,
            counters,
        }
    }

    /// A socket that was accepted; TLS has completed its handshake.
    pub(crate) fn accepted(
        stream: TcpStream,
        tls: Option<Box<Connection>>,
        counters: Arc<Counters>,
    ) -> Self {
        let mut socket = LaneSocket::connecting(stream, tls, Vec::new(), counters);
        (socket.is_connected, socket.readable, socket.writable) = (true, true, true);
        socket
    }

    pub(crate) fn note(&mut self, edge: Edge) {
        self.readable |= edge.readable;
        self.writable |= edge.writable;
    }

    /// True if splice(2) may move its payload.
    pub(crate) const fn is_plain(&self) -> bool {
        self.tls.is_none()
    }

    /// True once messages may be sent: connected, and the peer's key is proved.
    pub(crate) fn is_ready(&self) -> bool {
        self.is_connected && self.tls.as_ref().is_none_or(|tls| !tls.is_handshaking())
    }

    /// Where messages are appended, to be written by [`LaneSocket::flush`].
    pub(crate) const fn queue(&mut self) -> &mut Vec<u8> {
        &mut self.queue
    }

    /// Writes what is queued. True if nothing is left and the socket may take more.
    ///
    /// # Errors
    /// The connection has failed.
    pub(crate) fn flush(&mut self) -> io::Result<bool> {
        if !self.is_connected {
            return Ok(false);
        }
        while !self.preamble.is_empty() && self.writable {
            if let Some(count) = self.write_to_socket(|stream, own| stream.write(&own.preamble))? {
                self.preamble.drain(..count);
            }
        }
        if !self.preamble.is_empty() {
            return Ok(false);
        }
        let is_flushed = if self.tls.is_some() { self.flush_tls()? } else { self.flush_plain(0)? };
        Ok(is_flushed && self.is_ready() && self.writable)
    }

    /// Writes what is queued, before payload that follows at once.
    pub(crate) fn flush_before_payload(&mut self) -> io::Result<bool> {
        if self.tls.is_some() { self.flush() } else { self.flush_plain(MSG_MORE) }
    }

    fn flush_plain(&mut self, flags: i32) -> io::Result<bool> {
        while self.written < self.queue.len() {
            if !self.writable {
                return Ok(false);
            }
            let sent = self.write_to_socket(|stream, own| {
                let rest = own.queue.get(own.written..).unwrap_or_default();
                SockRef::from(*stream).send_with_flags(rest, flags)
            })?;
            self.written += sent.unwrap_or_default();
        }
        self.clear_queue();
        Ok(true)
    }

    fn clear_queue(&mut self) {
        self.written = 0;
        if self.queue.capacity() > KEPT_QUEUE {
            self.queue = Vec::new();
        } else {
            self.queue.clear();
        }
    }

    /// `None` if the socket takes nothing now.
    fn write_to_socket(
        &mut self,
        write: impl Fn(&mut &TcpStream, &Self) -> io::Result<usize>,
    ) -> io::Result<Option<usize>> {
        match write(&mut &self.stream, self) {
            Ok(count) => {
                self.counters.wan_sent.add(count);
                Ok(Some(count))
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.writable = false;
                Ok(None)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn flush_tls(&mut self) -> io::Result<bool> {
        let Some(tls) = &mut self.tls else { return Ok(true) };
        if !tls.is_handshaking() && self.written < self.queue.len() {
            // TLS takes all of it: its buffer has no limit, and is flushed before it gets more.
            let rest = self.queue.get(self.written..).unwrap_or_default();
            tls.writer().write_all(rest)?;
            self.clear_queue();
        }
        while self.writable && self.tls.as_ref().is_some_and(|tls| tls.wants_write()) {
            let Some(tls) = &mut self.tls else { break };
            match tls.write_tls(&mut &self.stream) {
                Ok(count) => self.counters.wan_sent.add(count),
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.writable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.is_flushed())
    }

    /// Sends what is queued and a copy of payload after it; what the socket does not take is
    /// queued.
    pub(crate) fn send_copied(&mut self, payload: &[u8]) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            // The caller has flushed: the handshake is complete, and TLS has taken what was queued
            // before.
            let rest = self.queue.get(self.written..).unwrap_or_default();
            tls.writer().write_all(rest)?;
            tls.writer().write_all(payload)?;
            self.clear_queue();
            return self.flush().map(drop);
        }
        let sent = self.write_to_socket(|stream, own| {
            let rest = own.queue.get(own.written..).unwrap_or_default();
            stream.write_vectored(&[IoSlice::new(rest), IoSlice::new(payload)])
        })?;
        let sent = self.written + sent.unwrap_or_default();
        if let Some(of_payload) = sent.checked_sub(self.queue.len()) {
            self.clear_queue();
            self.queue.extend_from_slice(payload.get(of_payload..).unwrap_or_default());
        } else {
            self.written = sent;
            self.queue.extend_from_slice(payload);
        }
        Ok(())
    }

    /// Ends the direction towards the peer, behind what was flushed.
    ///
    /// # Errors
    /// The connection has failed.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            // A socket that is full has FIN alone.
            self.flush_tls()?;
        }
        self.stream.shutdown(Shutdown::Write)
    }

    /// Counts payload that was moved past this type by splice(2), or notes that the socket takes
    /// none now.
    pub(crate) fn spliced(&mut self, moved: io::Result<usize>) -> io::Result<usize> {
        match moved {
            Ok(count) => {
                self.counters.wan_sent.add(count);
                Ok(count)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.writable = false;
                Ok(0)
            }
            Err(error) => Err(error),
        }
    }

    /// True if nothing is left to write.
    pub(crate) fn is_flushed(&self) -> bool {
        self.queue.is_empty() && self.tls.as_ref().is_none_or(|tls| !tls.wants_write())
    }

    /// True while the kernel has bytes that the path has not taken yet.
    pub(crate) fn is_sending(&self) -> bool {
        let unsent = TcpInfo::of(&self.stream).ok().and_then(|info| info.notsent_bytes);
        !self.is_flushed() || unsent.is_some_and(|bytes| bytes > 0)
    }

    /// Minimum RTT of the connection, if the kernel knows one.
    pub(crate) fn min_rtt(&self) -> Option<Duration> {
        let micros = TcpInfo::of(&self.stream).ok()?.min_rtt_us?;
        Some(Duration::from_micros(u64::from(micros)))
    }

    pub(crate) const fn is_writable(&self) -> bool {
        self.writable
    }

    /// Reads what has arrived: `None` if there is nothing, zero at the end of the stream.
    ///
    /// # Errors
    /// The connection has failed, or the peer has another key.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        if self.tls.is_some() { self.read_tls(buffer) } else { self.read_socket(buffer) }
    }

    fn read_socket(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            match (&self.stream).read(buffer) {
                Ok(count) => {
                    self.counters.wan_received.add(count);
                    return Ok(Some(count));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.readable = false;
                    return Ok(None);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn read_tls(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            let Some(tls) = &mut self.tls else { return Ok(None) };
            match tls.reader().read(buffer) {
                Ok(count) => return Ok(Some(count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // The peer closed the connection without saying so.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(Some(0)),
                Err(error) => return Err(error),
            }
            let mut rest = self.ciphertext.get(self.taken..).unwrap_or_default();
            if rest.is_empty() {
                match self.receive()? {
                    Some(0) => return Ok(Some(0)),
                    Some(_) => continue,
                    None => {
                        // The next message of the handshake.
                        self.flush_tls()?;
                        return Ok(None);
                    }
                }
            }
            self.taken += tls.read_tls(&mut rest)?;
            tls.process_new_packets()
                .map_err(|error| io::Error::new(ErrorKind::InvalidData, format!("TLS: {error}")))?;
        }
    }

    /// Reads ciphertext: `None` if there is nothing, zero at the end of the stream.
    fn receive(&mut self) -> io::Result<Option<usize>> {
        // A lane at rest holds no memory for it.
        (self.ciphertext, self.taken) = (Vec::new(), 0);
        let mut bytes = vec![0; CIPHERTEXT];
        let read = self.read_socket(&mut bytes)?;
        if let Some(count) = read {
            bytes.truncate(count);
            self.ciphertext = bytes;
        }
        Ok(read)
    }

    /// Counts payload that splice(2) took, or notes that nothing has arrived.
    pub(crate) fn taken(&mut self, moved: io::Result<usize>) -> io::Result<Option<usize>> {
        match moved {
            Ok(count) => {
                self.counters.wan_received.add(count);
                Ok(Some(count))
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.readable = false;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}
