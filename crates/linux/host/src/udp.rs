//! Batches of datagrams: many per system call (udp(7), `UDP_SEGMENT`, `UDP_GRO`;
//! sendmmsg(2), recvmmsg(2)).

use crate::{clock, packet_info, sys};
use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;
use std::time::Duration;

/// Maximum number of datagrams per GSO buffer (`UDP_MAX_SEGMENTS` before 6.9).
pub const MAX_SEGMENTS: usize = 64;

/// Enables segmentation offload: every write is split into datagrams of `bytes`
/// each; the last one may be shorter.
///
/// # Errors
/// The system error; requires Linux 4.18.
pub fn segment(socket: &impl AsFd, bytes: u16) -> io::Result<()> {
    sys::set_option(socket, libc::SOL_UDP, libc::UDP_SEGMENT, &libc::c_int::from(bytes))
}

/// Whether a datagram was not sent because the socket or the device was full.
#[must_use]
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::EAGAIN))
}

/// Enables receive offload: trains of datagrams are received whole where the
/// network delivers trains.
///
/// # Errors
/// The system error; requires Linux 5.0.
pub fn coalesce(socket: &impl AsFd) -> io::Result<()> {
    sys::set_option(socket, libc::SOL_UDP, libc::UDP_GRO, &(1 as libc::c_int))
}

/// Enables arrival timestamps, from which [`Inbox::waited`] is known.
///
/// # Errors
/// The system error.
pub fn timestamps(socket: &impl AsFd) -> io::Result<()> {
    sys::set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &(1 as libc::c_int))
}

/// Maximum number of datagrams per [`send_each`].
const MAX_BATCH: usize = 64;

/// Sends `train` as single datagrams of `bytes` each, in one system call: for
/// sockets where [`segment`] is not available. Returns the number of bytes sent,
/// at most those of 64 datagrams.
///
/// # Errors
/// The system error of the first datagram; the next call returns that of a later
/// one.
pub fn send_each(socket: &impl AsFd, train: &[u8], bytes: usize) -> io::Result<usize> {
    let mut vectors: [libc::iovec; MAX_BATCH] = sys::zeroed();
    let mut messages: [libc::mmsghdr; MAX_BATCH] = sys::zeroed();
    let mut count: libc::c_uint = 0;
    let datagrams = train.chunks(bytes.max(1));
    for ((vector, message), datagram) in vectors.iter_mut().zip(&mut messages).zip(datagrams) {
        vector.iov_base = datagram.as_ptr().cast_mut().cast();
        vector.iov_len = datagram.len();
        message.msg_hdr.msg_iov = vector;
        message.msg_hdr.msg_iovlen = 1;
        count += 1;
    }
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: `count` messages are filled; each points to one vector, and that
    // into `train`; sending does not write to it.
    let sent =
        sys::retry(|| unsafe { libc::sendmmsg(fd, messages.as_mut_ptr(), count, 0) } as isize)?;
    Ok(messages.iter().take(sent).map(|message| message.msg_len as usize).sum())
}

/// Buffers for receiving many datagrams per call.
#[derive(Debug)]
pub struct Inbox {
    buffer: Vec<u8>,
    /// Bytes per message: a datagram, or a train of them.
    slot_bytes: usize,
    received: Vec<Received>,
    /// Wall-clock time of the last receive call, if there were timestamps.
    received_at: Option<Duration>,
    /// Number of messages to ask for next, by the length of the last ones.
    next_slots: usize,
    /// The last call returned as many messages as it asked for.
    is_full: bool,
    /// Addresses are recorded.
    has_sources: bool,
}

/// Maximum number of messages per [`Inbox::receive`].
const MAX_SLOTS: usize = 32;

/// Bytes to receive per call if messages are long: few enough to be in the core's
/// cache when they are read. With eight trains of 64 kB they were not, and the
/// receiver lost datagrams; with two it kept up.
const CACHED_BYTES: usize = 131_072;

/// What is known of a message.
#[derive(Debug, Clone, Copy)]
struct Received {
    bytes: usize,
    /// Size of one datagram in it.
    datagram: usize,
    /// Wall-clock time of its arrival.
    arrived: Option<Duration>,
    /// Where it comes from, and where it was sent to, if that is recorded.
    source: Option<SocketAddr>,
    local: Option<IpAddr>,
}

/// Buffer for the control messages: the size of a train's datagrams, a timestamp, and the address
/// that it was sent to.
#[repr(C)]
union Control {
    space: [u8; 128],
    align: libc::cmsghdr,
}

impl Inbox {
    /// Buffers for `slots` messages (1 to 32) of `slot_bytes`; longer ones are truncated.
    #[must_use]
    pub fn new(slots: usize, slot_bytes: usize) -> Self {
        let slots = slots.clamp(1, MAX_SLOTS);
        Inbox {
            buffer: vec![0; slots * slot_bytes],
            slot_bytes,
            received: Vec::with_capacity(slots),
            received_at: None,
            next_slots: slots,
            is_full: false,
            has_sources: false,
        }
    }

    /// From now on [`Inbox::source`] is known: for sockets that are not connected.
    pub const fn record_sources(&mut self) {
        self.has_sources = true;
    }

    /// Waits for the first message and receives all that are available. Returns their
    /// number; each is then available from [`Inbox::message`].
    ///
    /// # Errors
    /// The system error: `WouldBlock` if nothing arrived within the socket's timeout,
    /// `ConnectionRefused` if an earlier datagram met a closed port.
    pub fn receive(&mut self, socket: &impl AsFd) -> io::Result<usize> {
        self.receive_with(socket, libc::MSG_WAITFORONE)
    }

    /// As [`Inbox::receive`], without waiting.
    ///
    /// # Errors
    /// As [`Inbox::receive`]: `WouldBlock` if nothing is there.
    pub fn receive_at_once(&mut self, socket: &impl AsFd) -> io::Result<usize> {
        self.receive_with(socket, libc::MSG_DONTWAIT)
    }

    fn receive_with(&mut self, socket: &impl AsFd, flags: libc::c_int) -> io::Result<usize> {
        self.received.clear();
        self.is_full = false;
        let mut vectors: [libc::iovec; MAX_SLOTS] = sys::zeroed();
        let mut messages: [libc::mmsghdr; MAX_SLOTS] = sys::zeroed();
        let mut controls = [const { Control { space: [0; 128] } }; MAX_SLOTS];
        let mut sources = [const { MaybeUninit::<libc::sockaddr_storage>::zeroed() }; MAX_SLOTS];
        let mut count: libc::c_uint = 0;
        for (((slot, vector), message), control) in self
            .buffer
            .chunks_exact_mut(self.slot_bytes.max(1))
            .take(self.next_slots)
            .zip(&mut vectors)
            .zip(&mut messages)
            .zip(&mut controls)
        {
            vector.iov_base = slot.as_mut_ptr().cast();
            vector.iov_len = slot.len();
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
            message.msg_hdr.msg_control = ptr::from_mut(control).cast();
            message.msg_hdr.msg_controllen = size_of::<Control>() as _;
            count += 1;
        }
        if self.has_sources {
            for (message, source) in messages.iter_mut().zip(&mut sources) {
                message.msg_hdr.msg_name = source.as_mut_ptr().cast();
                message.msg_hdr.msg_namelen = size_of::<libc::sockaddr_storage>() as _;
            }
        }
        let fd = socket.as_fd().as_raw_fd();
        let asked = count as usize;
        // SAFETY: `count` messages are filled, each with a vector into a slot
        // of its own and a control of its own; all outlive the call.
        let count = unsafe {
            libc::recvmmsg(fd, messages.as_mut_ptr(), count, flags as _, ptr::null_mut())
        };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        self.is_full = count == asked;
        for (message, source) in messages.iter().zip(&sources).take(count) {
            let bytes = (message.msg_len as usize).min(self.slot_bytes);
            // Without a size, the message is one datagram.
            let mut received = Received {
                bytes,
                datagram: bytes.max(1),
                arrived: None,
                source: None,
                local: None,
            };
            received.read_control(&message.msg_hdr);
            if self.has_sources {
                // SAFETY: zeros are a value of it, and the kernel has written an address.
                received.source = socket_address(unsafe { source.assume_init_ref() });
            }
            self.received.push(received);
        }
        let has_timestamps = self.received.first().is_some_and(|first| first.arrived.is_some());
        self.received_at = has_timestamps.then(clock::unix_time);
        let longest = self.received.iter().map(|received| received.bytes).max();
        let longest = longest.unwrap_or(0).max(1);
        self.next_slots = (CACHED_BYTES / longest).clamp(2, MAX_SLOTS);
        Ok(count)
    }

    /// Whether the last call returned as many messages as it asked for, so that more may wait.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.is_full
    }

    /// The time that message `index` of the last [`Inbox::receive`] had waited in the
    /// kernel when that returned; zero without [`timestamps`].
    #[must_use]
    pub fn waited(&self, index: usize) -> Duration {
        let arrived = self.received.get(index).and_then(|received| received.arrived);
        match (self.received_at, arrived) {
            (Some(now), Some(arrived)) => now.saturating_sub(arrived),
            _ => Duration::ZERO,
        }
    }

    /// Where message `index` of the last [`Inbox::receive`] comes from; `None` without
    /// [`Inbox::record_sources`].
    #[must_use]
    pub fn source(&self, index: usize) -> Option<SocketAddr> {
        self.received.get(index)?.source
    }

    /// The address that message `index` of the last [`Inbox::receive`] was sent to; `None` without
    /// [`packet_info::record`].
    #[must_use]
    pub fn local(&self, index: usize) -> Option<IpAddr> {
        self.received.get(index)?.local
    }

    /// The datagrams of message `index` of the last [`Inbox::receive`].
    pub fn message(&self, index: usize) -> impl Iterator<Item = &[u8]> {
        let (bytes, datagram) =
            self.received.get(index).map_or((0, 1), |received| (received.bytes, received.datagram));
        let at = index * self.slot_bytes;
        // An empty datagram counts, too.
        let empty = (bytes == 0 && index < self.received.len()).then_some(&[][..]);
        self.buffer[at.min(self.buffer.len())..][..bytes].chunks(datagram).chain(empty)
    }
}

/// An IP address and port; `None` for those of another family.
pub(crate) fn socket_address(storage: &libc::sockaddr_storage) -> Option<SocketAddr> {
    let storage = ptr::from_ref(storage);
    // SAFETY: both structures fit into the storage, which is aligned for either, and any
    // bytes are a value of them.
    unsafe {
        match i32::from((*storage).ss_family) {
            libc::AF_INET => {
                let name = &*storage.cast::<libc::sockaddr_in>();
                let address = Ipv4Addr::from(u32::from_be(name.sin_addr.s_addr));
                Some(SocketAddrV4::new(address, u16::from_be(name.sin_port)).into())
            }
            libc::AF_INET6 => {
                let name = &*storage.cast::<libc::sockaddr_in6>();
                let (address, port) =
                    (Ipv6Addr::from(name.sin6_addr.s6_addr), u16::from_be(name.sin6_port));
                Some(SocketAddrV6::new(address, port, 0, name.sin6_scope_id).into())
            }
            _ => None,
        }
    }
}

impl Received {
    /// Reads the control messages that came with it.
    fn read_control(&mut self, header: &libc::msghdr) {
        // SAFETY: the kernel filled the header and its control, which still live.
        let mut control = unsafe { libc::CMSG_FIRSTHDR(header) };
        while !control.is_null() {
            // SAFETY: CMSG_FIRSTHDR and CMSG_NXTHDR give headers that lie whole
            // within the control.
            let found = unsafe { &*control };
            match (found.cmsg_level, found.cmsg_type) {
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    // SAFETY: the kernel puts an int behind such a header; it need not
                    // be aligned.
                    let size =
                        unsafe { libc::CMSG_DATA(control).cast::<libc::c_int>().read_unaligned() };
                    if let Some(size) = usize::try_from(size).ok().filter(|size| *size > 0) {
                        self.datagram = size;
                    }
                }
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                    // SAFETY: the kernel puts a timespec behind such a header; it need
                    // not be aligned.
                    let time = unsafe {
                        libc::CMSG_DATA(control).cast::<libc::timespec>().read_unaligned()
                    };
                    let (s, ns) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
                    self.arrived = s.ok().zip(ns.ok()).map(|(s, ns)| Duration::new(s, ns));
                }
                // SAFETY: such a header, from the kernel.
                _ => self.local = self.local.or(unsafe { packet_info::of_control(control) }),
            }
            // SAFETY: as for the first.
            control = unsafe { libc::CMSG_NXTHDR(header, control) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    fn pair() -> (UdpSocket, UdpSocket) {
        let [a, b] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        a.connect(b.local_addr().unwrap()).unwrap();
        b.connect(a.local_addr().unwrap()).unwrap();
        b.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        (a, b)
    }

    #[test]
    fn sources_are_recorded_for_either_family() {
        for any in ["127.0.0.1:0", "[::1]:0"] {
            let [to, one, other] = [(); 3].map(|()| UdpSocket::bind(any).unwrap());
            to.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            let mut inbox = Inbox::new(4, 100);
            one.send_to(b"before", to.local_addr().unwrap()).unwrap();
            assert_eq!((inbox.receive(&to).unwrap(), inbox.source(0)), (1, None));
            inbox.record_sources();
            for from in [&one, &other] {
                from.send_to(b"after", to.local_addr().unwrap()).unwrap();
                assert_eq!(inbox.receive(&to).unwrap(), 1);
                assert_eq!(inbox.source(0), from.local_addr().ok());
            }
        }
    }

    fn take(socket: &UdpSocket, inbox: &mut Inbox, datagrams: usize) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        while all.len() < datagrams {
            let count = inbox.receive(socket).unwrap();
            for index in 0..count {
                all.extend(inbox.message(index).map(<[u8]>::to_vec));
            }
        }
        all
    }

    #[test]
    fn trains_arrive_as_their_datagrams() {
        let (from, to) = pair();
        let train: Vec<u8> = (0..100u8).collect();
        for coalesced in [false, true] {
            if coalesced {
                coalesce(&to).unwrap();
            }
            let mut inbox = Inbox::new(4, 65_536);
            assert_eq!(send_each(&from, &train, 30).unwrap(), 100);
            let arrived = take(&to, &mut inbox, 4);
            let expected: Vec<Vec<u8>> = train.chunks(30).map(<[u8]>::to_vec).collect();
            assert_eq!(arrived, expected);
        }
        segment(&from, 30).unwrap();
        assert_eq!(from.send(&train).unwrap(), 100);
        let mut inbox = Inbox::new(2, 65_536);
        let arrived = take(&to, &mut inbox, 4);
        assert_eq!(arrived.iter().map(Vec::len).collect::<Vec<_>>(), [30, 30, 30, 10]);
        assert_eq!(arrived.concat(), train);
    }

    #[test]
    fn few_long_messages_are_received_at_a_time() {
        let (from, to) = pair();
        let mut inbox = Inbox::new(MAX_SLOTS, 65_536);
        for (bytes, next_slots) in [(60_000, 2), (100, MAX_SLOTS), (16_384, 8)] {
            from.send(&vec![0; bytes]).unwrap();
            assert_eq!((inbox.receive(&to).unwrap(), inbox.next_slots), (1, next_slots));
        }
        for number in 0..20u8 {
            from.send(&[number]).unwrap();
        }
        assert_eq!((inbox.receive(&to).unwrap(), inbox.is_full()), (8, true));
        assert_eq!((inbox.receive_at_once(&to).unwrap(), inbox.is_full()), (12, false));
        assert_eq!(inbox.message(11).collect::<Vec<_>>(), [&[19]]);
    }

    #[test]
    fn timeouts_and_truncation_are_reported() {
        let (from, to) = pair();
        let mut inbox = Inbox::new(0, 8);
        from.send(&[]).unwrap();
        assert_eq!(take(&to, &mut inbox, 1), [Vec::<u8>::new()]);
        from.send(&[7; 100]).unwrap();
        assert_eq!(take(&to, &mut inbox, 1), [vec![7; 8]], "cut to the buffer there is");
        to.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        let error = inbox.receive(&to).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        to.set_read_timeout(None).unwrap();
        let error = inbox.receive_at_once(&to).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(inbox.message(0).count(), 0);
        assert_eq!(inbox.message(9).count(), 0);
    }
}
