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
    /// [`diversion::MARK`](crate::diversion::MARK), by which they are routed to this host.
    At(&'a str),
}

impl Tproxy {
    /// Hands TCP connections that arrive in the calling thread's network namespace to the transparent
    /// listener at `port` ([`transparent::listen`](crate::transparent::listen)).
    ///
    /// # Errors
    /// `PermissionDenied` without `CAP_NET_ADMIN`; `NotFound` if the kernel lacks nf_tables or its
    /// `tproxy`.
    pub fn start(name: &str, port: u16, arriving: Arriving<'_>) -> io::Result<Self> {
        let owner = Nfnetlink::open()?;
        let mut requests = vec![table(name), chain(name)];
        requests.extend(match arriving {
            Arriving::Anywhere { except } => anywhere(name, port, except),
            Arriving::At(device) => vec![rule(name, &at_device(device, port))],
        });
        owner.commit(libc::NFPROTO_INET, requests)?;
        Ok(Tproxy { owner })
    }
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

/// `meta iifname DEVICE meta l4proto tcp fib daddr type != local tproxy to :PORT
/// meta mark set MARK`
fn at_device(device: &str, port: u16) -> Vec<Vec<u8>> {
    // `NFT_FIB_RESULT_ADDRTYPE` and `NFTA_FIB_F_DADDR`.
    const ADDRESS_TYPE: u32 = 3;
    const OF_DESTINATION: u32 = 2;
    let mut name = device.as_bytes().to_vec();
    name.resize(libc::IFNAMSIZ, 0);
    let kind = [number(1, REGISTER), number(2, ADDRESS_TYPE), number(3, OF_DESTINATION)];
    // NFTA_META_KEY, NFTA_META_SREG.
    let set = [number(2, libc::NFT_META_MARK.cast_unsigned()), number(3, REGISTER)];
    [
        vec![meta(libc::NFT_META_IIFNAME), is(&name)],
        tcp().to_vec(),
        vec![expression("fib", &kind), is_not(&u32::from(libc::RTN_LOCAL).to_ne_bytes())],
        tproxy(libc::NFPROTO_UNSPEC, port).to_vec(),
        vec![immediate(&MARK.to_ne_bytes()), expression("meta", &set)],
    ]
    .concat()
}
