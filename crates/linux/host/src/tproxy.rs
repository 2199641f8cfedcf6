//! Transparent proxying by nf_tables (`tproxy`, Documentation/networking/tproxy.rst): connections to
//! any address and port are accepted by one listener, whose sockets have the address that was
//! connected to.
//!
//! As in [`nat`](crate::nat) the rules are in a table owned by a socket, which the kernel removes with
//! the process.

use crate::diversion::MARK;
use crate::netlink_message::{nest, text};
use crate::nfnetlink::{
    Nfnetlink, REGISTER, Request, data, expression, header, is, is_not, kind, meta, number,
};
use std::io;
use std::net::Ipv6Addr;

/// Rules that exist as long as this value, and at most as long as the process.
#[derive(Debug)]
pub struct Tproxy {
    #[expect(dead_code, reason = "holding it is the use")]
    owner: Nfnetlink,
}

/// The connections that are handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arriving<'a> {
    /// All but those to loopback addresses and to this port. Routes deliver them to this host
    /// already.
    Anywhere {
        /// The port.
        except: u16,
    },
    /// At this device, but for those to this host's own addresses. They get
    /// [`diversion::MARK`](crate::diversion::MARK), by which they are routed to this host. Answers of
    /// servers behind the device to connections that the host forwards pass.
    At(&'a str),
}

impl Tproxy {
    /// Hands TCP connections that arrive in the calling thread's network namespace to the transparent
    /// listener at `port` ([`transparent::listen`](crate::transparent::listen)).
    ///
    /// # Errors
    /// `PermissionDenied` without `CAP_NET_ADMIN`; for a kernel without nf_tables, `tproxy` or
    /// `socket` see [`is_unsupported`].
    pub fn start(name: &str, port: u16, arriving: Arriving<'_>) -> io::Result<Self> {
        let owner = Nfnetlink::open()?;
        let mut requests = vec![table(name), chain(name)];
        requests.extend(match arriving {
            Arriving::Anywhere { except } => anywhere(name, port, except),
            Arriving::At(device) => at_device(name, device, port),
        });
        owner.commit(libc::NFPROTO_INET, requests)?;
        Ok(Tproxy { owner })
    }
}

/// Returns true if [`Tproxy::start`] has failed because the kernel lacks a module, or owners of tables
/// (before Linux 5.12).
#[must_use]
pub fn is_unsupported(error: &io::Error) -> bool {
    let absent = [libc::ENOENT, libc::EOPNOTSUPP, libc::EPROTONOSUPPORT];
    error.raw_os_error().is_some_and(|code| absent.contains(&code))
}

/// `NFT_TABLE_F_OWNER`
const OWNED: u32 = 2;
const CHAIN: &str = "prerouting";

fn table(name: &str) -> Request {
    (kind::TABLE, libc::NLM_F_EXCL, [text(1, name), number(2, OWNED)].concat())
}

fn chain(name: &str) -> Request {
    let hook = [
        number(1, libc::NF_INET_PRE_ROUTING.cast_unsigned()),
        number(2, libc::NF_IP_PRI_MANGLE.cast_unsigned()),
    ];
    let body = [text(1, name), text(3, CHAIN), nest(4, &hook), text(7, "filter")].concat();
    (kind::CHAIN, libc::NLM_F_EXCL, body)
}

fn rule(name: &str, expressions: &[Vec<u8>]) -> Request {
    let body = [text(1, name), text(2, CHAIN), nest(4, expressions)].concat();
    (kind::RULE, libc::NLM_F_APPEND, body)
}

/// `meta l4proto tcp`
fn tcp() -> [Vec<u8>; 2] {
    [meta(libc::NFT_META_L4PROTO), is(&[libc::IPPROTO_TCP as u8])]
}

/// `tproxy to :PORT`, for `family` (`NFPROTO_*`).
fn tproxy(family: libc::c_int, port: u16) -> [Vec<u8>; 2] {
    // NFTA_TPROXY_FAMILY, NFTA_TPROXY_REG_PORT.
    let to = [number(1, family.cast_unsigned()), number(3, REGISTER)];
    [immediate(&port.to_be_bytes()), expression("tproxy", &to)]
}

fn immediate(value: &[u8]) -> Vec<u8> {
    expression("immediate", &[number(1, REGISTER), data(2, value)])
}

/// `meta nfproto FAMILY meta l4proto tcp FAMILY daddr != LOOPBACK tcp dport != EXCEPT
/// tproxy to :PORT`, for both families.
fn anywhere(name: &str, port: u16, except: u16) -> Vec<Request> {
    // 127.0.0.0/8 by its first byte. Destination addresses are at 16 and 24 (RFC 791; RFC 8200,
    // section 3).
    let loopback = Ipv6Addr::LOCALHOST.octets();
    let of = |family: libc::c_int, offset, loopback: &[u8]| {
        let expressions = [
            vec![meta(libc::NFT_META_NFPROTO), is(&[family as u8])],
            tcp().to_vec(),
            vec![
                header(libc::NFT_PAYLOAD_NETWORK_HEADER, offset, loopback.len() as u32),
                is_not(loopback),
            ],
            vec![header(libc::NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2), is_not(&except.to_be_bytes())],
            tproxy(family, port).to_vec(),
        ];
        rule(name, &expressions.concat())
    };
    vec![of(libc::NFPROTO_IPV4, 16, &[127]), of(libc::NFPROTO_IPV6, 24, &loopback)]
}

/// For segments of accepted connections, and for those that begin one:
///
/// ```text
/// meta iifname DEVICE meta l4proto tcp fib daddr type != local \
///   socket transparent 1 meta mark set MARK
/// meta iifname DEVICE meta l4proto tcp fib daddr type != local \
///   tcp flags & (syn | ack) == syn tproxy to :PORT meta mark set MARK
/// ```
///
/// Both apply to a SYN that uses the ports of a connection in TIME-WAIT again.
fn at_device(name: &str, device: &str, port: u16) -> Vec<Request> {
    let begins = begins_connection().to_vec();
    let begins = [begins, tproxy(libc::NFPROTO_UNSPEC, port).to_vec()].concat();
    [has_transparent_socket().to_vec(), begins]
        .map(|condition| rule(name, &[arrives_at(device), condition, mark().to_vec()].concat()))
        .into()
}

/// `socket transparent 1`
fn has_transparent_socket() -> [Vec<u8>; 2] {
    // NFTA_SOCKET_KEY: NFT_SOCKET_TRANSPARENT; NFTA_SOCKET_DREG.
    [expression("socket", &[number(1, 0), number(2, REGISTER)]), is(&[1])]
}

/// `tcp flags & (syn | ack) == syn`
fn begins_connection() -> [Vec<u8>; 3] {
    // RFC 9293, section 3.1.
    const FLAGS: u32 = 13;
    const SYN: u8 = 0x02;
    const ACK: u8 = 0x10;
    let mask = [number(1, REGISTER), number(2, REGISTER), number(3, 1)];
    let mask = [&mask[..], &[data(4, &[SYN | ACK]), data(5, &[0])]].concat();
    let flags = header(libc::NFT_PAYLOAD_TRANSPORT_HEADER, FLAGS, 1);
    [flags, expression("bitwise", &mask), is(&[SYN])]
}

/// `meta mark set MARK`
fn mark() -> [Vec<u8>; 2] {
    // NFTA_META_KEY, NFTA_META_SREG.
    let set = [number(2, libc::NFT_META_MARK.cast_unsigned()), number(3, REGISTER)];
    [immediate(&MARK.to_ne_bytes()), expression("meta", &set)]
}

/// `meta iifname DEVICE meta l4proto tcp fib daddr type != local`
fn arrives_at(device: &str) -> Vec<Vec<u8>> {
    // `NFT_FIB_RESULT_ADDRTYPE` and `NFTA_FIB_F_DADDR`.
    const ADDRESS_TYPE: u32 = 3;
    const OF_DESTINATION: u32 = 2;
    let mut name = device.as_bytes().to_vec();
    name.resize(libc::IFNAMSIZ, 0);
    let kind = [number(1, REGISTER), number(2, ADDRESS_TYPE), number(3, OF_DESTINATION)];
    [
        vec![meta(libc::NFT_META_IIFNAME), is(&name)],
        tcp().to_vec(),
        vec![expression("fib", &kind), is_not(&u32::from(libc::RTN_LOCAL).to_ne_bytes())],
    ]
    .concat()
}
