use super::*;
use std::net::IpAddr;

fn destinations(rules: &[&str]) -> Destinations {
    let own = |address: SocketAddr| address.port() == 7070;
    Destinations::new(rules.iter().map(|rule| rule.parse().unwrap()).collect(), Box::new(own))
}

/// The addresses that may be connected to of a target that resolves so.
fn allowed(rules: &[&str], target: &str, resolved: &[&str]) -> Vec<String> {
    let policy = destinations(rules);
    let target: Target = target.parse().unwrap();
    let address = |text: &&str| SocketAddr::new(text.parse().unwrap(), target.port);
    let resolved: Vec<SocketAddr> = resolved.iter().map(address).collect();
    let checked =
        policy.before_resolving(&target).and_then(|()| policy.after_resolving(&target, &resolved));
    let addresses = checked.unwrap_or_default();
    addresses.iter().map(|address| address.ip().to_string()).collect()
}

fn class(text: &str) -> AddressClass {
    AddressClass::of(text.parse::<IpAddr>().unwrap())
}

#[test]
fn classes_of_addresses() {
    use AddressClass as C;
    let cases = [
        (C::Public, &["8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1", "2a00::1"][..]),
        (C::Private, &["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1"]),
        (C::Private, &["fd00::1", "fc00::1"]),
        (C::Loopback, &["127.0.0.1", "127.255.255.255", "::1"]),
        (C::Special, &["0.0.0.0", "169.254.1.1", "224.0.0.1", "255.255.255.255", "240.0.0.1"]),
        (C::Special, &["::", "fe80::1", "fec0::1", "ff02::1", "2001:db8::1", "2001::1", "4000::1"]),
        (C::Metadata, &["169.254.169.254", "fd00:ec2::254", "168.63.129.16", "100.100.100.200"]),
        (C::Metadata, &["fd00:ec2::23", "fd00:42::42"]),
        (C::Private, &["fd00:ec3::254", "fd00:42::41"]),
        // Addresses with an IPv4 address in them.
        (C::Loopback, &["::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::"]),
        (C::Loopback, &["::ffff:0:127.0.0.1", "64:ff9b:1::127.0.0.1", "2a00::5efe:127.0.0.1"]),
        (C::Metadata, &["::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1"]),
        (C::Private, &["::ffff:10.0.0.1", "2002:c0a8:101::1"]),
        (C::Public, &["::ffff:8.8.8.8", "64:ff9b::808:808"]),
    ];
    for (expected, addresses) in cases {
        for address in addresses {
            assert_eq!(class(address), expected, "{address}");
        }
    }
}

#[test]
fn without_a_list_public_addresses_are_allowed() {
    let names = ["8.8.8.8", "10.0.0.1", "127.0.0.1", "169.254.169.254", "::1", "2606:4700::1"];
    assert_eq!(allowed(&[], "example.com:443", &names), ["8.8.8.8", "2606:4700::1"]);
    assert!(allowed(&[], "rebound.example:80", &["169.254.169.254"]).is_empty());
    // A mapped address is connected to as what it is, once.
    let mapped = ["::ffff:8.8.8.8", "8.8.8.8", "::ffff:10.0.0.1"];
    assert_eq!(allowed(&[], "example.com:443", &mapped), ["8.8.8.8"]);
    // Our own ports.
    assert!(allowed(&[], "example.com:7070", &["8.8.8.8"]).is_empty());
    assert!(allowed(&["8.8.8.8:*"], "8.8.8.8:7070", &["8.8.8.8"]).is_empty());
}

#[test]
fn a_list_is_exclusive() {
    let list = ["nas.corp:445", "10.1.0.0/16:8000-8999", "*:443", "[fd00::/8]:*", "127.0.0.1:25"];
    let one = |target: &str, address: &str| allowed(&list, target, &[address]) == [address];
    assert!(one("NAS.corp:445", "192.168.1.9"));
    assert!(one("nas.corp:445", "8.8.8.8"));
    assert!(!one("nas.corp:446", "192.168.1.9"));
    assert!(!one("other.corp:445", "192.168.1.9"));
    assert!(one("10.1.255.1:8000", "10.1.255.1") && one("10.1.0.1:8999", "10.1.0.1"));
    assert!(!one("10.1.0.1:9000", "10.1.0.1") && !one("10.2.0.1:8000", "10.2.0.1"));
    // A name whose address is in a prefix of the list.
    assert!(one("app.corp:8080", "10.1.2.3") && !one("app.corp:8080", "10.2.2.3"));
    assert!(one("example.com:443", "8.8.8.8") && !one("example.com:443", "10.0.0.1"));
    assert!(!one("example.com:80", "8.8.8.8"));
    assert!(one("[fd12::1]:22", "fd12::1") && !one("[fe80::1]:22", "fe80::1"));
    assert!(one("127.0.0.1:25", "127.0.0.1") && !one("127.0.0.2:25", "127.0.0.2"));
}

#[test]
fn a_name_reaches_this_host_and_metadata_only_by_a_rule_with_the_address() {
    let by_name = ["svc.corp:80"];
    for address in ["127.0.0.1", "::1", "169.254.169.254", "fd00:ec2::254", "0.0.0.0", "fe80::1"] {
        assert!(allowed(&by_name, "svc.corp:80", &[address]).is_empty(), "{address}");
    }
    let by_address = ["svc.corp:80", "169.254.169.254:80"];
    assert_eq!(allowed(&by_address, "svc.corp:80", &["169.254.169.254"]), ["169.254.169.254"]);
    assert_eq!(allowed(&["localhost:80"], "LOCALHOST:80", &["127.0.0.1"]), ["127.0.0.1"]);
}

#[test]
fn name_servers_are_reached_at_their_port_alone() {
    let policy = destinations(&["nas.corp:445"]);
    let address = |text: &str| text.parse::<SocketAddr>().unwrap();
    assert_eq!(policy.before_resolving(&Target::NAME_SERVER), Ok(()));
    let found = ["10.0.0.53:53", "10.0.0.53:22", "127.0.0.53:53", "10.0.0.53:53"].map(address);
    let allowed = policy.after_resolving(&Target::NAME_SERVER, &found).unwrap();
    assert_eq!(allowed, ["10.0.0.53:53", "127.0.0.53:53"].map(address));
    let other = Target { host: TargetHost::NameServer, port: 22 };
    assert_eq!(policy.before_resolving(&other), Err(Refusal::NotAllowed));
    let found = ["10.0.0.53:22", "10.0.0.53:53"].map(address);
    assert_eq!(policy.after_resolving(&other, &found), Err(Refusal::NotAllowed));
    // A far box at port 53 of the address of a name server.
    let own = Destinations::new(Vec::new(), Box::new(|address| address.port() == 53));
    let found = ["10.0.0.53:53"].map(address);
    assert_eq!(own.after_resolving(&Target::NAME_SERVER, &found), Err(Refusal::NotAllowed));
}

#[test]
fn rules_are_checked() {
    use InvalidRule as I;
    let parse = |text: &str| text.parse::<AllowRule>().map(|rule| rule.to_string());
    let right = [
        "a:1",
        "*:*",
        "10.0.0.0/8:22",
        "192.0.2.1:80-81",
        "[2001:db8::/32]:8000-8999",
        "[::1]:80",
        "0.0.0.0/0:1",
    ];
    for rule in right {
        assert_eq!(parse(rule).as_deref(), Ok(rule));
    }
    let wrong = [
        ("a", I::Ports),
        ("a:", I::Ports),
        ("a:0", I::Ports),
        ("a:2-1", I::Ports),
        ("a:+1", I::Ports),
        ("a:65536", I::Ports),
        (":80", I::Hosts),
        ("::1:80", I::Hosts),
        ("[a]:80", I::Hosts),
        ("[::1:80", I::Hosts),
        ("a/8:80", I::Hosts),
        ("10.0.0.0/33:80", I::Hosts),
        ("10.0.0.0/x:80", I::Hosts),
        ("10.0.0.1/8:80", I::HostBits),
        ("[2001:db8::1/64]:80", I::HostBits),
    ];
    for (text, error) in wrong {
        assert_eq!(parse(text), Err(error), "{text}");
    }
}
