//! Messages of every netlink family and their attributes (netlink(7)): read with every length
//! checked, and written.

use netlink_sys::{Socket, SocketAddr};
use std::io;

/// Length of `struct nlmsghdr`, bytes.
const HEADER: usize = 16;

/// The two highest bits of an attribute's type are flags: nested, and in network byte order.
const NESTED: u16 = 1 << 15;
const KIND: u16 = 0x3fff;

/// A message without its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Message<'a> {
    /// Its type.
    pub(crate) kind: u16,
    /// `NLM_F_*`.
    pub(crate) flags: u16,
    /// The sequence number of the request that it answers.
    pub(crate) number: u32,
    /// A structure of the type, then attributes.
    pub(crate) body: &'a [u8],
}

impl Message<'_> {
    /// Whether it ends a dump.
    pub(crate) const fn is_done(&self) -> bool {
        self.kind == libc::NLMSG_DONE as u16
    }

    /// An acknowledgement (`Ok`) or error: `NLMSG_ERROR`, whose body begins with zero or a
    /// negative error number.
    pub(crate) fn acknowledgement(&self) -> Option<io::Result<()>> {
        if self.kind != libc::NLMSG_ERROR as u16 {
            return None;
        }
        Some(match u32_at(self.body, 0).map(u32::cast_signed) {
            Some(0) => Ok(()),
            Some(code) => Err(io::Error::from_raw_os_error(code.saturating_abs())),
            None => Err(cut_off()),
        })
    }
}

/// A socket of a family, connected to the kernel.
pub(crate) fn open(family: isize) -> io::Result<Socket> {
    let mut socket = Socket::new(family)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    Ok(socket)
}

/// The messages of one datagram; a malformed one is the last.
pub(crate) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = io::Result<Message<'_>>> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let message = first(bytes);
        let length = message.map_or(0, |message| HEADER + message.body.len());
        bytes = bytes.get(length.next_multiple_of(4)..).filter(|_| length > 0).unwrap_or_default();
        Some(message.ok_or_else(cut_off))
    })
}

fn first(bytes: &[u8]) -> Option<Message<'_>> {
    let length = usize::try_from(u32_at(bytes, 0)?).ok()?;
    let (kind, flags, number) = (u16_at(bytes, 4)?, u16_at(bytes, 6)?, u32_at(bytes, 8)?);
    Some(Message { kind, flags, number, body: bytes.get(HEADER..length)? })
}

fn cut_off() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the kernel's answer is cut off")
}

/// A message: header, a structure of its type, attributes. All are far shorter than 4 GiB.
pub(crate) fn message(
    kind: u16,
    flags: libc::c_int,
    number: usize,
    fixed: &[u8],
    attributes: &[Vec<u8>],
) -> Vec<u8> {
    let attributes = attributes.concat();
    let length = u32::try_from(HEADER + fixed.len() + attributes.len()).unwrap_or(u32::MAX);
    let flags = u16::try_from(flags).unwrap_or_default();
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    let mut bytes = [
        &length.to_ne_bytes()[..],
        &kind.to_ne_bytes(),
        &flags.to_ne_bytes(),
        &number.to_ne_bytes(),
        &[0; 4],
        fixed,
        &attributes,
    ]
    .concat();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Types and values of attributes, as far as they are well-formed.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(bytes, 0)?);
        let (kind, value) = (u16_at(bytes, 2)? & KIND, bytes.get(4..length)?);
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The first attribute of a type.
pub(crate) fn find(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(bytes).find_map(|(kind, value)| (kind == wanted).then_some(value))
}

/// An attribute: length, type, value, aligned to four bytes. All are far shorter than 64 KiB.
pub(crate) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
    let mut bytes = [&length.to_ne_bytes(), &kind.to_ne_bytes(), value].concat();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// An attribute that holds a NUL-terminated text.
pub(crate) fn text(kind: u16, text: &str) -> Vec<u8> {
    attribute(kind, &[text.as_bytes(), b"\0"].concat())
}

/// An attribute that holds attributes.
pub(crate) fn nest(kind: u16, attributes: &[Vec<u8>]) -> Vec<u8> {
    attribute(kind | NESTED, &attributes.concat())
}

/// The text of an attribute, up to its NUL.
pub(crate) fn text_of(value: &[u8]) -> Option<String> {
    let text = value.split(|byte| *byte == 0).next()?;
    String::from_utf8(text.to_vec()).ok()
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_written_is_read() {
        let link = message(16, 1, 7, &[9; 6], &[text(3, "eth0"), nest(18, &[attribute(1, &[5])])]);
        let ack = message(libc::NLMSG_ERROR as u16, 0, 8, &(-19i32).to_ne_bytes(), &[]);
        let bytes = [link, ack].concat();
        let read: Vec<_> = messages(&bytes).map(Result::unwrap).collect();
        let [link, ack] = read.as_slice() else { panic!("{read:?}") };
        assert_eq!((link.kind, link.number, link.acknowledgement().is_none()), (16, 7, true));
        let found = &link.body[6..];
        assert_eq!(find(found, 3).and_then(text_of).as_deref(), Some("eth0"));
        assert_eq!(find(find(found, 18).unwrap(), 1), Some(&[5][..]));
        assert_eq!(find(found, 4), None);
        let error = ack.acknowledgement().unwrap().unwrap_err();
        assert_eq!((ack.number, error.raw_os_error()), (8, Some(libc::ENODEV)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_to_an_end(bytes: Vec<u8>, zeros in 0..64usize) {
            for bytes in [bytes, vec![0; zeros]] {
                let all: Vec<_> = messages(&bytes).collect();
                prop_assert!(all.len() <= bytes.len() / HEADER + 1);
                prop_assert!(attributes(&bytes).count() <= bytes.len() / 4 + 1);
            }
        }
    }
}
