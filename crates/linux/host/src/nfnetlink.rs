//! Messages of netfilter (linux/netfilter/nfnetlink.h), and changes of nf_tables.

use crate::netlink_message::{self, attribute, messages, nest, open, text};
use netlink_sys::{Socket, protocols::NETLINK_NETFILTER};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// A netfilter socket in the calling thread's network namespace.
#[derive(Debug)]
pub(crate) struct Nfnetlink {
    socket: Socket,
}

/// Message types of nf_tables.
pub(crate) mod kind {
    pub(crate) const NF_TABLES: u16 = libc::NFNL_SUBSYS_NFTABLES as u16;
    pub(crate) const BATCH_BEGIN: u16 = libc::NFNL_MSG_BATCH_BEGIN as u16;
    pub(crate) const BATCH_END: u16 = libc::NFNL_MSG_BATCH_END as u16;
    pub(crate) const TABLE: u16 = libc::NFT_MSG_NEWTABLE as u16;
    pub(crate) const CHAIN: u16 = libc::NFT_MSG_NEWCHAIN as u16;
    pub(crate) const RULE: u16 = libc::NFT_MSG_NEWRULE as u16;
}

/// Type, flags and body of a change of nf_tables. Attribute numbers are those of
/// linux/netfilter/nf_tables.h.
pub(crate) type Request = (u16, libc::c_int, Vec<u8>);

impl Nfnetlink {
    pub(crate) fn open() -> io::Result<Self> {
        let socket = open(NETLINK_NETFILTER)?;
        // The kernel answers within the send call: there is nothing to wait for.
        socket.set_non_blocking(true)?;
        Ok(Nfnetlink { socket })
    }

    /// Makes all of these changes in tables of `family` (`NFPROTO_*`), or none.
    ///
    /// # Errors
    /// The system error of the first change that the kernel refused.
    pub(crate) fn commit(&self, family: libc::c_int, requests: Vec<Request>) -> io::Result<()> {
        let last = requests.len();
        let bound =
            |kind, number| message(kind, libc::NLM_F_REQUEST, number, family, kind::NF_TABLES, &[]);
        let mut batch = bound(kind::BATCH_BEGIN, 0);
        for (number, (kind, flags, body)) in (1..).zip(requests) {
            let ack = if number == last { libc::NLM_F_ACK } else { 0 };
            let flags = libc::NLM_F_REQUEST | libc::NLM_F_CREATE | flags | ack;
            batch.extend(message((kind::NF_TABLES << 8) | kind, flags, number, family, 0, &body));
        }
        batch.extend(bound(kind::BATCH_END, last + 1));
        self.socket.send(&batch, 0)?;
        self.acknowledged(last)
    }

    /// Sends a message that asks for an acknowledgement, and checks that.
    pub(crate) fn request(&self, message: &[u8]) -> io::Result<()> {
        self.socket.send(message, 0)?;
        self.acknowledged(0)
    }

    /// Sends messages without waiting for anything.
    pub(crate) fn send(&self, messages: &[u8]) -> io::Result<()> {
        self.socket.send(messages, 0).map(drop)
    }

    fn acknowledged(&self, last: usize) -> io::Result<()> {
        loop {
            let (answer, _) = self.socket.recv_from_full()?;
            if let Some((number, answer)) = acknowledgement(&answer) {
                answer?;
                if usize::try_from(number) == Ok(last) {
                    return Ok(());
                }
            }
        }
    }
}

impl AsFd for Nfnetlink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// An element of a rule's list of expressions.
pub(crate) fn expression(name: &str, attributes: &[Vec<u8>]) -> Vec<u8> {
    nest(1, &[text(1, name), nest(2, attributes)])
}

pub(crate) fn number(kind: u16, number: u32) -> Vec<u8> {
    attribute(kind, &number.to_be_bytes())
}

pub(crate) fn data(kind: u16, value: &[u8]) -> Vec<u8> {
    nest(kind, &[attribute(1, value)])
}

/// Loads a property of the packet (`NFT_META_*`) into the first register.
pub(crate) fn meta(key: libc::c_int) -> Vec<u8> {
    expression("meta", &[number(1, REGISTER), number(2, key.cast_unsigned())])
}

/// Loads bytes of a header (`NFT_PAYLOAD_*`) into the first register.
pub(crate) fn header(base: libc::c_int, offset: u32, length: u32) -> Vec<u8> {
    let place = [number(2, base.cast_unsigned()), number(3, offset), number(4, length)];
    expression("payload", &[&[number(1, REGISTER)], &place[..]].concat())
}

/// Continues if the first register has this value.
pub(crate) fn is(value: &[u8]) -> Vec<u8> {
    compare(libc::NFT_CMP_EQ, value)
}

/// Continues if the first register has another value.
pub(crate) fn is_not(value: &[u8]) -> Vec<u8> {
    compare(libc::NFT_CMP_NEQ, value)
}

fn compare(how: libc::c_int, value: &[u8]) -> Vec<u8> {
    expression("cmp", &[number(1, REGISTER), number(2, how.cast_unsigned()), data(3, value)])
}

/// The register that these expressions use.
pub(crate) const REGISTER: u32 = libc::NFT_REG_1.cast_unsigned();

/// A message: `struct nlmsghdr`, `struct nfgenmsg`, body.
pub(crate) fn message(
    kind: u16,
    flags: libc::c_int,
    number: usize,
    family: libc::c_int,
    resource: u16,
    body: &[u8],
) -> Vec<u8> {
    let [high, low] = resource.to_be_bytes();
    let fixed = [u8::try_from(family).unwrap_or_default(), 0, high, low];
    netlink_message::message(kind, flags, number, &[&fixed, body].concat(), &[])
}

/// Number of the acknowledged request, and its error if it has one.
pub(crate) fn acknowledgement(answer: &[u8]) -> Option<(u32, io::Result<()>)> {
    let message = messages(answer).next()?.ok()?;
    Some((message.number, message.acknowledgement()?))
}
