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

use crate::netlink_message::{nest, text};
use crate::nfnetlink::{
    Nfnetlink, REGISTER, Request, data, expression, header, is, kind, meta, number,
};
use std::io;
use std::net::IpAddr;

/// Rules that exist as long as this value, and at most as long as the process.
#[derive(Debug)]
pub struct Masquerade {
    #[expect(dead_code, reason = "holding it is the use")]
    owner: Nfnetlink,
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
        let owner = Nfnetlink::open()?;
        let mut requests = vec![table(name), chain(name)];
        requests.extend(sources.iter().map(|source| rule(name, *source)));
        owner.commit(libc::NFPROTO_INET, requests)?;
        Ok(Masquerade { owner })
    }
}

/// `NFT_TABLE_F_OWNER`
const OWNED: u32 = 2;
const CHAIN: &str = "postrouting";

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
    let expressions = [
        meta(libc::NFT_META_NFPROTO),
        is(&[u8::try_from(family).unwrap_or_default()]),
        header(libc::NFT_PAYLOAD_NETWORK_HEADER, offset, size),
        expression(
            "bitwise",
            &[
                number(1, REGISTER),
                number(2, REGISTER),
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
