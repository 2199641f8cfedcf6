//! Rules that hold forwarded packets in queues of user space
//! ([`PacketQueue`](crate::packet_queue::PacketQueue)), and give them back the hop that
//! forwarding takes.
//!
//! nf_tables has no expression that adds to a hop limit, so the rules use targets of x_tables
//! (`TTL`, `HL`, `NFQUEUE`) through `nft_compat`, without the programs of iptables.

use crate::nfnetlink::{Nfnetlink, Request, attribute, data, expression, kind, nest, number, text};
use std::io;

/// `TTL` and `HL` accept this table alone (`xt_HL.c`).
const TABLE: &str = "mangle";
const HOPS: &str = "hops";
const QUEUES: &str = "queues";

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
    let of = |target| {
        let mut requests = vec![
            (kind::TABLE, libc::NLM_F_EXCL, text(1, TABLE)),
            chain(HOPS, libc::NF_INET_PRE_ROUTING, libc::NF_IP_PRI_MANGLE),
            chain(QUEUES, libc::NF_INET_FORWARD, libc::NF_IP_PRI_FILTER),
            rule(HOPS, &[x_target(target, &ADD_ONE)]),
        ];
        requests.extend(queues.iter().map(|(device, queue)| {
            let info = [&queue.to_ne_bytes()[..], &[0; 6]].concat();
            let [name, compare] = arrived_at(device);
            rule(QUEUES, &[name, compare, x_target("NFQUEUE", &info)])
        }));
        requests
    };
    socket.commit(libc::NFPROTO_IPV4, of("TTL"))?;
    if crate::sysctl::read("net.ipv6.conf.all.forwarding").is_ok() {
        socket.commit(libc::NFPROTO_IPV6, of("HL"))?;
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
    let register = libc::NFT_REG_1.cast_unsigned();
    let mut name = device.as_bytes().to_vec();
    name.resize(NAME_SIZE, 0);
    let equal = number(2, libc::NFT_CMP_EQ.cast_unsigned());
    [
        expression(
            "meta",
            &[number(1, register), number(2, libc::NFT_META_IIFNAME.cast_unsigned())],
        ),
        expression("cmp", &[number(1, register), equal, data(3, &name)]),
    ]
}

/// A target of x_tables, revision 0 (linux/netfilter/nf_tables_compat.h).
fn x_target(name: &str, info: &[u8]) -> Vec<u8> {
    expression("target", &[text(1, name), number(2, 0), attribute(3, info)])
}
