//! Policy routing that hands TCP connections which arrive at a device, wherever they are going, to
//! this host's sockets (ip-rule(8)); a transparent listener accepts them
//! ([`transparent::listen`](crate::transparent::listen)).
//!
//! Rules and routes outlive the process, so they carry a mark of ours by which they are found:
//! rules a protocol number (`PROTOCOL`), routes a table (`TABLE`).

use crate::netlink::{Change, Netlink, family};
use crate::netlink_message::{attribute, find, text, u32_at};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

/// The protocol number of our rules: none that iproute2 names (rt_protos).
const PROTOCOL: u8 = 149;

/// The routing table in which every address is local, and the priority of the rules.
const TABLE: u32 = 7425;

/// The mark of packets that nf_tables diverts.
pub const MARK: u32 = 0x1d01;

// Attributes of linux/fib_rules.h.
const FRA_IIFNAME: u16 = 3;
const FRA_PRIORITY: u16 = 6;
const FRA_FWMARK: u16 = 10;
const FRA_TABLE: u16 = 15;
const FRA_PROTOCOL: u16 = 21;
const FRA_IP_PROTO: u16 = 22;
const FRA_DPORT_RANGE: u16 = 24;
const FR_ACT_TO_TBL: u8 = 1;
/// Length of `struct fib_rule_hdr`, bytes.
const RULE: usize = 12;

/// Connections that are diverted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Diverted {
    /// To these ports, arriving at a device.
    Ports {
        /// The device.
        device: String,
        /// The ports.
        ports: Vec<RangeInclusive<u16>>,
    },
    /// With [`MARK`], by [`Tproxy`](crate::tproxy::Tproxy).
    Marked,
}

impl Netlink {
    /// Diverts connections of both families from here on; [`Netlink::end_diversion`] ends it.
    ///
    /// # Errors
    /// The system error; `AlreadyExists` if there is a diversion.
    pub fn divert(&self, what: &Diverted) -> io::Result<()> {
        let loopback = self.index("lo")?;
        for any in families() {
            self.request(Change::new(libc::RTM_NEWROUTE, local_route(any), table(loopback)))?;
            for condition in conditions(what) {
                let fixed = rule_header(family(any)).to_vec();
                let attributes = [condition, common()].concat();
                self.request(Change::new(libc::RTM_NEWRULE, fixed, attributes))?;
            }
        }
        Ok(())
    }

    /// Removes rules and routes of a diversion, whoever made it; returns how many rules there were.
    ///
    /// # Errors
    /// The system error.
    pub fn end_diversion(&self) -> io::Result<usize> {
        let mut rules = Vec::new();
        self.dump(libc::RTM_GETRULE, |message| {
            let attributes = message.body.get(RULE..).unwrap_or_default();
            let is_ours = find(attributes, FRA_PROTOCOL) == Some(&[PROTOCOL])
                && find(attributes, FRA_TABLE).and_then(|table| u32_at(table, 0)) == Some(TABLE);
            if is_ours {
                rules.push(message.body.to_vec());
            }
        })?;
        let count = rules.len();
        for rule in rules {
            self.request(Change::new(libc::RTM_DELRULE, rule, Vec::new()))?;
        }
        let loopback = self.index("lo")?;
        for any in families() {
            let route = Change::new(libc::RTM_DELROUTE, local_route(any), table(loopback));
            match self.request(route) {
                Err(error) if !is_absent(&error) => return Err(error),
                _ => {}
            }
        }
        Ok(count)
    }
}

/// There is no such route, or no such table or family.
fn is_absent(error: &io::Error) -> bool {
    let absent = [libc::ESRCH, libc::ENOENT, libc::EAFNOSUPPORT, libc::EOPNOTSUPP];
    error.raw_os_error().is_some_and(|code| absent.contains(&code))
}

fn families() -> impl Iterator<Item = IpAddr> {
    let has_ipv6 =
        crate::sysctl::read("net.ipv6.conf.all.disable_ipv6").is_ok_and(|off| off == "0");
    let v6: Option<IpAddr> = has_ipv6.then_some(Ipv6Addr::UNSPECIFIED.into());
    [Ipv4Addr::UNSPECIFIED.into()].into_iter().chain(v6)
}

/// `struct rtmsg` of a default route that is local.
fn local_route(any: IpAddr) -> Vec<u8> {
    let (origin, scope) = (libc::RTPROT_STATIC, libc::RT_SCOPE_HOST);
    let table = libc::RT_TABLE_UNSPEC;
    vec![family(any), 0, 0, 0, table, origin, scope, libc::RTN_LOCAL, 0, 0, 0, 0]
}

fn table(loopback: u32) -> Vec<Vec<u8>> {
    vec![
        attribute(libc::RTA_OIF, &loopback.to_ne_bytes()),
        attribute(libc::RTA_TABLE, &TABLE.to_ne_bytes()),
    ]
}

const fn rule_header(family: u8) -> [u8; RULE] {
    [family, 0, 0, 0, 0, 0, 0, FR_ACT_TO_TBL, 0, 0, 0, 0]
}

/// The attributes of a rule for each condition.
fn conditions(what: &Diverted) -> Vec<Vec<Vec<u8>>> {
    match what {
        Diverted::Ports { device, ports } => ports
            .iter()
            .map(|ports| {
                let range = [ports.start().to_ne_bytes(), ports.end().to_ne_bytes()].concat();
                vec![
                    text(FRA_IIFNAME, device),
                    attribute(FRA_IP_PROTO, &[libc::IPPROTO_TCP as u8]),
                    attribute(FRA_DPORT_RANGE, &range),
                ]
            })
            .collect(),
        Diverted::Marked => vec![vec![attribute(FRA_FWMARK, &MARK.to_ne_bytes())]],
    }
}

/// Attributes of every rule.
fn common() -> Vec<Vec<u8>> {
    vec![
        attribute(FRA_PRIORITY, &TABLE.to_ne_bytes()),
        attribute(FRA_TABLE, &TABLE.to_ne_bytes()),
        attribute(FRA_PROTOCOL, &[PROTOCOL]),
    ]
}
