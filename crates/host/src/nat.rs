//! Masquerading: packets that leave the host for a lab get the host's own source
//! address.
//!
//! The rules are in an nf_tables table *owned* by a socket
//! (`NFT_TABLE_F_OWNER`, linux/netfilter/nf_tables.h, since Linux 5.12): the
//! kernel removes it when the socket is closed, also when the process is
//! killed. Older kernels refuse the flag, and nothing is set.
//!
//! Masquerading only has an effect if the host forwards
//! (`net.ipv4.conf.DEVICE.forwarding` of both the lab's device and the uplink,
//! where the replies arrive); that setting is left to the host's administrator.

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_NETFILTER};
use std::io;
use std::net::IpAddr;

/// Rules that exist as long as this value, and at most as long as the process.
#[derive(Debug)]
pub struct Masquerade {
    #[expect(dead_code, reason = "holding it is the use")]
    owner: Socket,
}

impl Masquerade {
    /// Masquerades packets from `sources` (prefix and length) that leave the calling
    /// thread's network namespace, with a table called `name`.
    ///
    /// # Errors
    /// `PermissionDenied` without `CAP_NET_ADMIN`, or if a table of that name is
    /// owned by another socket; `AlreadyExists` if it has no owner; otherwise the
    /// system error: the kernel may lack nf_tables, masquerading or table owners.
    pub fn start(name: &str, sources: &[(IpAddr, u8)]) -> io::Result<Self> {
        let mut owner = Socket::new(NETLINK_NETFILTER)?;
        owner.bind_auto()?;
        owner.connect(&SocketAddr::new(0, 0))?;
        // The kernel answers within the send call: there is nothing to wait for.
        owner.set_non_blocking(true)?;
        let mut requests = vec![table(name), chain(name)];
        requests.extend(sources.iter().map(|source| rule(name, *source)));
        let last = requests.len();
        let mut batch = message(kind::BATCH_BEGIN, libc::NLM_F_REQUEST, 0, kind::NF_TABLES, &[]);
        for (number, (kind, flags, body)) in (1..).zip(requests) {
            let ack = if number == last { libc::NLM_F_ACK } else { 0 };
            let flags = libc::NLM_F_REQUEST | libc::NLM_F_CREATE | flags | ack;
            batch.extend(message((kind::NF_TABLES << 8) | kind, flags, number, 0, &body));
        }
        batch.extend(message(kind::BATCH_END, libc::NLM_F_REQUEST, last + 1, kind::NF_TABLES, &[]));
        owner.send(&batch, 0)?;
        loop {
            let (answer, _) = owner.recv_from_full()?;
            if let Some((number, code)) = acknowledgement(&answer) {
                if code != 0 {
                    return Err(io::Error::from_raw_os_error(-code));
                }
                if usize::try_from(number) == Ok(last) {
                    return Ok(Masquerade { owner });
                }
            }
        }
    }
}

/// Message types (linux/netfilter/nfnetlink.h).
mod kind {
    pub(super) const NF_TABLES: u16 = libc::NFNL_SUBSYS_NFTABLES as u16;
    pub(super) const BATCH_BEGIN: u16 = libc::NFNL_MSG_BATCH_BEGIN as u16;
    pub(super) const BATCH_END: u16 = libc::NFNL_MSG_BATCH_END as u16;
    pub(super) const TABLE: u16 = libc::NFT_MSG_NEWTABLE as u16;
    pub(super) const CHAIN: u16 = libc::NFT_MSG_NEWCHAIN as u16;
    pub(super) const RULE: u16 = libc::NFT_MSG_NEWRULE as u16;
}

/// `NFT_TABLE_F_OWNER`
const OWNED: u32 = 2;
const CHAIN: &str = "postrouting";

/// Type, flags and body of a request. Attribute numbers are those of
/// linux/netfilter/nf_tables.h.
type Request = (u16, libc::c_int, Vec<u8>);

fn table(name: &str) -> Request {
    let body = [text(1, name), number(2, OWNED)].concat();
    (kind::TABLE, libc::NLM_F_EXCL, body)
}

fn chain(name: &str) -> Request {
    let hook = [
        number(1, libc::NF_INET_POST_ROUTING.cast_unsigned()),
        number(2, libc::NF_IP_PRI_NAT_SRC.cast_unsigned()),
    ];
    let body = [text(1, name), text(3, CHAIN), nest(4, &hook), text(7, "nat")].concat();
    (kind::CHAIN, libc::NLM_F_EXCL, body)
}

/// `meta nfproto FAMILY FAMILY saddr PREFIX/LENGTH masquerade`
fn rule(name: &str, (prefix, length): (IpAddr, u8)) -> Request {
    // Offset of the source address in the header: RFC 791 and RFC 8200, section 3.
    let (family, offset, address) = match prefix {
        IpAddr::V4(address) => (libc::NFPROTO_IPV4, 12, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::NFPROTO_IPV6, 8, address.octets().to_vec()),
    };
    let bits = (0u8..).zip(&address).map(|(byte, _)| length.saturating_sub(8 * byte).min(8));
    let mask: Vec<u8> = bits.map(|bits| !0xff_u8.checked_shr(bits.into()).unwrap_or(0)).collect();
    let wanted: Vec<u8> = address.iter().zip(&mask).map(|(byte, mask)| byte & mask).collect();
    let size = u32::from(if prefix.is_ipv4() { 4u8 } else { 16 });
    let register = libc::NFT_REG_1.cast_unsigned();
    let is = |wanted: &[u8]| {
        let equal = number(2, libc::NFT_CMP_EQ.cast_unsigned());
        expression("cmp", &[number(1, register), equal, data(3, wanted)])
    };
    let expressions = [
        expression(
            "meta",
            &[number(1, register), number(2, libc::NFT_META_NFPROTO.cast_unsigned())],
        ),
        is(&[u8::try_from(family).unwrap_or_default()]),
        expression(
            "payload",
            &[
                number(1, register),
                number(2, libc::NFT_PAYLOAD_NETWORK_HEADER.cast_unsigned()),
                number(3, offset),
                number(4, size),
            ],
        ),
        expression(
            "bitwise",
            &[
                number(1, register),
                number(2, register),
                number(3, size),
                data(4, &mask),
                data(5, &vec![0; mask.len()]),
            ],
        ),
        is(&wanted),
        expression("masq", &[]),
    ];
    let body = [text(1, name), text(2, CHAIN), nest(4, &expressions)].concat();
    (kind::RULE, libc::NLM_F_APPEND, body)
}

/// An element of a rule's list of expressions.
fn expression(name: &str, attributes: &[Vec<u8>]) -> Vec<u8> {
    nest(1, &[text(1, name), nest(2, attributes)])
}

fn text(kind: u16, text: &str) -> Vec<u8> {
    attribute(kind, &[text.as_bytes(), b"\0"].concat())
}

fn number(kind: u16, number: u32) -> Vec<u8> {
    attribute(kind, &number.to_be_bytes())
}

fn data(kind: u16, value: &[u8]) -> Vec<u8> {
    nest(kind, &[attribute(1, value)])
}

fn nest(kind: u16, attributes: &[Vec<u8>]) -> Vec<u8> {
    const NESTED: u16 = 1 << 15;
    attribute(kind | NESTED, &attributes.concat())
}

/// An attribute (netlink(7)): length, type, value, aligned to four bytes. All
/// are far shorter than 64 KiB.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
    let mut bytes = [&length.to_ne_bytes(), &kind.to_ne_bytes(), value].concat();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// A message: `struct nlmsghdr`, `struct nfgenmsg` of the inet family, body.
fn message(kind: u16, flags: libc::c_int, number: usize, resource: u16, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(20 + body.len()).unwrap_or(u32::MAX);
    let flags = u16::try_from(flags).unwrap_or_default();
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    let family = u8::try_from(libc::NFPROTO_INET).unwrap_or_default();
    [
        &length.to_ne_bytes()[..],
        &kind.to_ne_bytes(),
        &flags.to_ne_bytes(),
        &number.to_ne_bytes(),
        &[0; 4],
        &[family, 0],
        &resource.to_be_bytes(),
        body,
    ]
    .concat()
}

/// Number of the acknowledged request, and zero or a negative error number.
pub(crate) fn acknowledgement(answer: &[u8]) -> Option<(u32, i32)> {
    let bytes = |at: usize| answer.get(at..at + 4)?.try_into().ok();
    let error = answer.get(4..6)? == (libc::NLMSG_ERROR as u16).to_ne_bytes();
    let (number, code) = (u32::from_ne_bytes(bytes(8)?), i32::from_ne_bytes(bytes(16)?));
    error.then_some((number, code))
}
