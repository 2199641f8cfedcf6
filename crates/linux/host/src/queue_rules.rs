//! Rules that hold forwarded packets in queues of user space
//! ([`PacketQueue`](crate::packet_queue::PacketQueue)), give them back the hop that forwarding
//! takes, and write the length that a verdict asks for into their header.
//!
//! nf_tables has no expression that adds to a hop limit, so the rules use targets of x_tables
//! (`TTL`, `HL`, `NFQUEUE`) through `nft_compat`, without the programs of iptables.

use crate::netlink_message::{attribute, nest, text};
use crate::nfnetlink::{Nfnetlink, REGISTER, Request, expression, is, is_not, kind, meta, number};
use std::io;

/// `TTL` and `HL` accept this table alone (`xt_HL.c`).
const TABLE: &str = "mangle";
const HOPS: &str = "hops";
const QUEUES: &str = "queues";
const LENGTHS: &str = "lengths";

/// What the rules of the two versions of IP differ in.
struct Version {
    family: libc::c_int,
    /// The target that adds to the hop limit.
    hop_target: &'static str,
    /// Offsets in the header of the field that states a length, and of the checksum.
    length: u32,
    checksum: Option<u32>,
}

const IPV4: Version =
    Version { family: libc::NFPROTO_IPV4, hop_target: "TTL", length: 2, checksum: Some(10) };
const IPV6: Version =
    Version { family: libc::NFPROTO_IPV6, hop_target: "HL", length: 4, checksum: None };

/// `struct ipt_TTL_info` and `struct ip6t_HL_info`: add 1, padded to eight bytes.
const ADD_ONE: [u8; 8] = [1, 1, 0, 0, 0, 0, 0, 0];

/// Name that rules compare with: all of `IFNAMSIZ`.
const NAME_SIZE: usize = 16;

/// Queues forwarded packets by the device at which they arrived (device, queue), in the calling
/// thread's network namespace. IPv6 packets are not queued where the kernel has no IPv6.
///
/// # Errors
/// `NotFound` if the kernel lacks nf_tables, `nft_compat` or one of the targets;
/// `PermissionDenied` without `CAP_NET_ADMIN`.
pub fn install(queues: &[(String, u16)]) -> io::Result<()> {
    let socket = Nfnetlink::open()?;
    let of = |version: &Version| {
        let mut requests = vec![
            (kind::TABLE, libc::NLM_F_EXCL, text(1, TABLE)),
            chain(HOPS, libc::NF_INET_PRE_ROUTING, libc::NF_IP_PRI_MANGLE),
            chain(QUEUES, libc::NF_INET_FORWARD, libc::NF_IP_PRI_FILTER),
            chain(LENGTHS, libc::NF_INET_FORWARD, libc::NF_IP_PRI_FILTER + 1),
            rule(HOPS, &[x_target(version.hop_target, &ADD_ONE)]),
            rule(LENGTHS, &set_length(version)),
        ];
        requests.extend(queues.iter().map(|(device, queue)| {
            let info = [&queue.to_ne_bytes()[..], &[0; 6]].concat();
            let [name, compare] = arrived_at(device);
            rule(QUEUES, &[name, compare, x_target("NFQUEUE", &info)])
        }));
        requests
    };
    socket.commit(IPV4.family, of(&IPV4))?;
    if crate::sysctl::read("net.ipv6.conf.all.forwarding").is_ok() {
        socket.commit(IPV6.family, of(&IPV6))?;
    }
    Ok(())
}

fn chain(name: &str, hook: libc::c_int, priority: libc::c_int) -> Request {
    let hook = [number(1, hook.cast_unsigned()), number(2, priority.cast_unsigned())];
    let body = [text(1, TABLE), text(3, name), nest(4, &hook), text(7, "filter")].concat();
    (kind::CHAIN, libc::NLM_F_EXCL, body)
}

fn rule(chain: &str, expressions: &[Vec<u8>]) -> Request {
    let body = [text(1, TABLE), text(2, chain), nest(4, expressions)].concat();
    (kind::RULE, libc::NLM_F_APPEND, body)
}

/// `meta iifname DEVICE`: two expressions.
fn arrived_at(device: &str) -> [Vec<u8>; 2] {
    let mut name = device.as_bytes().to_vec();
    name.resize(NAME_SIZE, 0);
    [meta(libc::NFT_META_IIFNAME), is(&name)]
}

/// Writes the first two bytes of a packet's mark into the length field, unless the mark is 0:
/// three expressions.
fn set_length(version: &Version) -> [Vec<u8>; 3] {
    /// `NFT_PAYLOAD_L4CSUM_PSEUDOHDR`: the length is part of TCP's checksum, too.
    const PSEUDO_HEADER: u32 = 1;
    // `NFT_PAYLOAD_CSUM_INET` or `NFT_PAYLOAD_CSUM_NONE`.
    let checksum_kind = u32::from(version.checksum.is_some());
    let write = [
        number(2, libc::NFT_PAYLOAD_NETWORK_HEADER.cast_unsigned()),
        number(3, version.length),
        number(4, 2),
        number(5, REGISTER),
        number(6, checksum_kind),
        number(7, version.checksum.unwrap_or_default()),
        number(8, PSEUDO_HEADER),
    ];
    [meta(libc::NFT_META_MARK), is_not(&[0; 4]), expression("payload", &write)]
}

/// A target of x_tables, revision 0 (linux/netfilter/nf_tables_compat.h).
fn x_target(name: &str, info: &[u8]) -> Vec<u8> {
    expression("target", &[text(1, name), number(2, 0), attribute(3, info)])
}
