//! What filters mean, and how wrong ones are refused.

use super::*;
use crate::MAX_LENGTH;

fn parsed(filter: &str) -> Result<Expression, FilterError> {
    parse(filter, &mut |name| match name {
        "server" => vec![Ipv4Addr::new(10, 0, 0, 2).into(), "fd00::2".parse().unwrap()],
        _ => Vec::new(),
    })
}

#[track_caller]
fn same(filter: &str, other: &str) {
    assert_eq!(parsed(filter).unwrap(), parsed(other).unwrap(), "{filter} and {other}");
}

#[track_caller]
fn refused(filter: &str) -> String {
    let error = parsed(filter).unwrap_err().to_string();
    assert!(!error.contains('\n'), "{error}");
    error
}

#[test]
fn precedence_is_that_of_tcpdump() {
    same("tcp or udp and port 5", "(tcp or udp) and port 5");
    same("tcp and udp or port 5", "(tcp and udp) or port 5");
    same("not tcp and udp", "(not tcp) and udp");
    same("! tcp && udp || icmp", "((not tcp) and udp) or icmp");
}

#[test]
fn an_identifier_alone_has_the_qualifiers_before() {
    same("port 80 or 443", "port 80 or port 443");
    same("tcp src port 80 or 443", "tcp src port 80 or tcp src port 443");
    same("not host 10.0.0.1 and 10.0.0.2", "(not host 10.0.0.1) and host 10.0.0.2");
    same("src 10.0.0.1", "src host 10.0.0.1");
    same("10.0.0.1", "host 10.0.0.1");
    same("src or dst port 5", "port 5");
    same("src port 5 or dst port 6", "(src port 5) or (dst port 6)");
}

#[test]
fn networks_have_short_forms() {
    same("net 10", "net 10.0.0.0/8");
    same("net 192.168", "net 192.168.0.0/16");
    same("net 10.0.0.0", "net 10.0.0.0/32");
    same("ip proto \\tcp", "ip proto 6");
    same("proto gre", "proto 47");
}

#[test]
fn names_are_resolved() {
    same("host server", "host 10.0.0.2 or host fd00::2");
    same("ip6 host server", "ip6 host fd00::2");
    assert!(refused("host nowhere").contains("cannot resolve 'nowhere'"));
}

#[test]
fn wrong_filters_say_what_is_accepted() {
    for (filter, part) in [
        ("wlan", "'wlan' in the filter is not supported; accepted: [src|dst] host"),
        ("tcp and ether host 1", "'ether' in the filter is not supported"),
        ("tcp[13] & 2 != 0", "'tcp[13]' in the filter: comparisons of bytes"),
        ("tcp host 10.0.0.1", "'tcp' before 'host'"),
        ("ip port 5", "'ip' before 'port'"),
        ("arp proto 5", "'arp' before 'proto'"),
        ("port http", "a port number"),
        ("port 65536", "a port number"),
        ("portrange 5-", "a range of ports"),
        ("net 10.0.0.1/8", "bits set beyond"),
        ("net 10.0.0.0/33", "a network such as"),
        ("host 10.0.0.0/8", "net has a prefix length"),
        ("ip host fd00::1", "an address of that protocol"),
        ("(tcp", "its end where ')'"),
        ("tcp)", "')' where 'and', 'or' or the end"),
        ("tcp udp", "'udp' where"),
        ("tcp and", "its end where an expression"),
        ("not", "its end"),
        ("src", "its end where an address"),
        ("less", "a number of bytes"),
        ("vlan 4096", "a VLAN identifier"),
        ("and", "'and' where"),
    ] {
        let error = refused(filter);
        assert!(error.contains(part), "{filter}: {error}");
    }
}

#[test]
fn nesting_is_bounded() {
    let nested = |levels: usize| format!("{}tcp{}", "(".repeat(levels), ")".repeat(levels));
    assert!(parsed(&nested(MAX_NESTING)).is_ok());
    assert_eq!(parsed(&nested(MAX_NESTING + 1)), Err(FilterError::TooDeep));
    assert_eq!(parsed(&"!".repeat(MAX_LENGTH)), Err(FilterError::TooDeep));
    assert_eq!(parsed(&"(".repeat(MAX_LENGTH)), Err(FilterError::TooDeep));
}
