//! Datagrams in trains: one call hands the kernel many, or takes many (udp(7),
//! `UDP_SEGMENT`, `UDP_GRO`; sendmmsg(2), recvmmsg(2)).

use crate::sys;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

/// Most datagrams the kernel takes in one call (`UDP_MAX_SEGMENTS` before 6.9).
pub const MOST_SEGMENTS: usize = 64;

/// Lets every write to a socket be cut into datagrams of `bytes` each; the
/// last of a write may be shorter.
///
/// # Errors
/// The system's own: kernels before 4.18 have no such thing.
pub fn segment(socket: &impl AsFd, bytes: u16) -> io::Result<()> {
    sys::set_option(socket, libc::SOL_UDP, libc::UDP_SEGMENT, &libc::c_int::from(bytes))
}

/// Whether a datagram was not sent because the socket or the device was full.
#[must_use]
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::EAGAIN))
}

/// Lets a socket take trains of datagrams whole, as they came, where the
/// network hands over trains.
///
/// # Errors
/// The system's own: kernels before 5.0 have no such thing.
pub fn coalesce(socket: &impl AsFd) -> io::Result<()> {
    sys::set_option(socket, libc::SOL_UDP, libc::UDP_GRO, &(1 as libc::c_int))
}

/// Most datagrams of one [`send_each`].
const MOST_AT_ONCE: usize = 64;

/// Hands over `train`, datagrams of `bytes` each, one by one in the kernel but
/// in one call: where [`segment`] does not work. Tells how many bytes went;
/// at most 64 datagrams go at a time.
///
/// # Errors
/// The system's own for the first datagram; that of a later one is told by the
/// next call.
pub fn send_each(socket: &impl AsFd, train: &[u8], bytes: usize) -> io::Result<usize> {
    // SAFETY: both are plain structures for which all zeros is a value.
    let mut vectors: [libc::iovec; MOST_AT_ONCE] = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: as above.
    let mut messages: [libc::mmsghdr; MOST_AT_ONCE] =
        unsafe { MaybeUninit::zeroed().assume_init() };
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

/// Room for datagrams that arrive, taken many at a time.
#[derive(Debug)]
pub struct Inbox {
    room: Vec<u8>,
    /// Bytes for one message: a datagram, or a train of them.
    each: usize,
    /// What came into each slot: its bytes, and those of one datagram in it.
    came: Vec<(usize, usize)>,
    /// Messages to ask for next, by the length of the last ones.
    ask: usize,
}

/// Most messages of one [`Inbox::receive`].
const MOST_SLOTS: usize = 32;

/// Bytes taken at a time where long messages come: so much is still in the core's
/// cache when it is read. Eight trains of 64 kB were not, and the receiver lost
/// what two let it keep up with.
const CACHED: usize = 131_072;

/// Space for the one control message asked for: the size of a train's datagrams.
#[repr(C)]
union Control {
    space: [u8; 32],
    align: libc::cmsghdr,
}

impl Inbox {
    /// Room for `slots` messages (1 to 32) of `each` bytes; longer ones are cut.
    #[must_use]
    pub fn new(slots: usize, each: usize) -> Self {
        let slots = slots.clamp(1, MOST_SLOTS);
        Inbox { room: vec![0; slots * each], each, came: Vec::with_capacity(slots), ask: slots }
    }

    /// Waits for the first message and takes what else is there; tells how
    /// many. Each is then to be had from [`Inbox::message`].
    ///
    /// # Errors
    /// The system's own: `WouldBlock` where nothing came within the socket's
    /// timeout, `ConnectionRefused` where a datagram sent earlier found nobody.
    pub fn receive(&mut self, socket: &impl AsFd) -> io::Result<usize> {
        self.came.clear();
        // SAFETY: plain structures for which all zeros is a value.
        let mut vectors: [libc::iovec; MOST_SLOTS] = unsafe { MaybeUninit::zeroed().assume_init() };
        // SAFETY: as above.
        let mut messages: [libc::mmsghdr; MOST_SLOTS] =
            unsafe { MaybeUninit::zeroed().assume_init() };
        let mut controls = [const { Control { space: [0; 32] } }; MOST_SLOTS];
        let mut count: libc::c_uint = 0;
        for (((slot, vector), message), control) in self
            .room
            .chunks_exact_mut(self.each.max(1))
            .take(self.ask)
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
        let fd = socket.as_fd().as_raw_fd();
        let flags = libc::MSG_WAITFORONE;
        // SAFETY: `count` messages are filled, each with a vector into a slot
        // of its own and a control of its own; all outlive the call.
        let came = unsafe {
            libc::recvmmsg(fd, messages.as_mut_ptr(), count, flags as _, ptr::null_mut())
        };
        let came = usize::try_from(came).map_err(|_| io::Error::last_os_error())?;
        for message in messages.iter().take(came) {
            let bytes = (message.msg_len as usize).min(self.each);
            // A message without a size is one datagram.
            let datagram = segment_size(&message.msg_hdr).unwrap_or(bytes);
            self.came.push((bytes, datagram.max(1)));
        }
        let longest = self.came.iter().map(|(bytes, _)| *bytes).max().unwrap_or(0).max(1);
        self.ask = (CACHED / longest).clamp(2, MOST_SLOTS);
        Ok(came)
    }

    /// The datagrams of message `index` of the last [`Inbox::receive`].
    pub fn message(&self, index: usize) -> impl Iterator<Item = &[u8]> {
        let (bytes, datagram) = self.came.get(index).copied().unwrap_or((0, 1));
        let at = index * self.each;
        // An empty datagram is one too.
        let empty = (bytes == 0 && index < self.came.len()).then_some(&[][..]);
        self.room[at.min(self.room.len())..][..bytes].chunks(datagram).chain(empty)
    }
}

fn segment_size(header: &libc::msghdr) -> Option<usize> {
    // SAFETY: the kernel filled the header and its control, which still live.
    let mut control = unsafe { libc::CMSG_FIRSTHDR(header) };
    while !control.is_null() {
        // SAFETY: CMSG_FIRSTHDR and CMSG_NXTHDR give headers that lie whole
        // within the control.
        let found = unsafe { &*control };
        if found.cmsg_level == libc::SOL_UDP && found.cmsg_type == libc::UDP_GRO {
            // SAFETY: the kernel puts an int behind such a header; it need not be aligned.
            let size = unsafe { libc::CMSG_DATA(control).cast::<libc::c_int>().read_unaligned() };
            return usize::try_from(size).ok().filter(|size| *size > 0);
        }
        // SAFETY: as for the first.
        control = unsafe { libc::CMSG_NXTHDR(header, control) };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::time::Duration;

    fn pair() -> (UdpSocket, UdpSocket) {
        let [a, b] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        a.connect(b.local_addr().unwrap()).unwrap();
        b.connect(a.local_addr().unwrap()).unwrap();
        b.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        (a, b)
    }

    fn take(socket: &UdpSocket, inbox: &mut Inbox, datagrams: usize) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        while all.len() < datagrams {
            let came = inbox.receive(socket).unwrap();
            for index in 0..came {
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
            let came = take(&to, &mut inbox, 4);
            let expected: Vec<Vec<u8>> = train.chunks(30).map(<[u8]>::to_vec).collect();
            assert_eq!(came, expected);
        }
        segment(&from, 30).unwrap();
        assert_eq!(from.send(&train).unwrap(), 100);
        let mut inbox = Inbox::new(2, 65_536);
        let came = take(&to, &mut inbox, 4);
        assert_eq!(came.iter().map(Vec::len).collect::<Vec<_>>(), [30, 30, 30, 10]);
        assert_eq!(came.concat(), train);
    }

    #[test]
    fn few_long_messages_are_taken_at_a_time() {
        let (from, to) = pair();
        let mut inbox = Inbox::new(MOST_SLOTS, 65_536);
        for (bytes, ask) in [(60_000, 2), (100, MOST_SLOTS), (16_384, 8)] {
            from.send(&vec![0; bytes]).unwrap();
            assert_eq!((inbox.receive(&to).unwrap(), inbox.ask), (1, ask));
        }
        for number in 0..20u8 {
            from.send(&[number]).unwrap();
        }
        assert_eq!(inbox.receive(&to).unwrap(), 8);
        assert_eq!(inbox.receive(&to).unwrap(), 12);
        assert_eq!(inbox.message(11).collect::<Vec<_>>(), [&[19]]);
    }

    #[test]
    fn nothing_and_too_much_are_told() {
        let (from, to) = pair();
        let mut inbox = Inbox::new(0, 8);
        from.send(&[]).unwrap();
        assert_eq!(take(&to, &mut inbox, 1), [Vec::<u8>::new()]);
        from.send(&[7; 100]).unwrap();
        assert_eq!(take(&to, &mut inbox, 1), [vec![7; 8]], "cut to the room there is");
        to.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        let error = inbox.receive(&to).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(inbox.message(0).count(), 0);
        assert_eq!(inbox.message(9).count(), 0);
    }
}
