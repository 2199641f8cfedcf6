//! Addresses and names of content delivery networks: a test to one ends at its nearest site,
//! and its RTT says nothing of the place that the name suggests.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Domains of the names that CDNs give to their edges, canonical (CNAME) or reverse (PTR), as
/// their documentation has them.
const DOMAINS: [(&str, &str); 18] = [
    ("cdn.cloudflare.net", "Cloudflare"),
    ("cloudfront.net", "Amazon CloudFront"),
    ("akamai.net", "Akamai"),
    ("akamaiedge.net", "Akamai"),
    ("akamaized.net", "Akamai"),
    ("akamaitechnologies.com", "Akamai"),
    ("edgekey.net", "Akamai"),
    ("edgesuite.net", "Akamai"),
    ("fastly.net", "Fastly"),
    ("fastlylb.net", "Fastly"),
    ("azureedge.net", "Azure CDN"),
    ("azurefd.net", "Azure Front Door"),
    ("1e100.net", "Google"),
    ("googlehosted.com", "Google"),
    ("b-cdn.net", "bunny.net"),
    ("cdn77.org", "CDN77"),
    ("impervadns.net", "Imperva"),
    ("edgecastcdn.net", "Edgecast"),
];

/// IPv4 ranges: network, prefix length, CDN. Cloudflare: www.cloudflare.com/ips-v4; Fastly:
/// api.fastly.com/public-ip-list (as of October 2025).
const IPV4: [([u8; 4], u32, &str); 34] = [
    ([173, 245, 48, 0], 20, "Cloudflare"),
    ([103, 21, 244, 0], 22, "Cloudflare"),
    ([103, 22, 200, 0], 22, "Cloudflare"),
    ([103, 31, 4, 0], 22, "Cloudflare"),
    ([141, 101, 64, 0], 18, "Cloudflare"),
    ([108, 162, 192, 0], 18, "Cloudflare"),
    ([190, 93, 240, 0], 20, "Cloudflare"),
    ([188, 114, 96, 0], 20, "Cloudflare"),
    ([197, 234, 240, 0], 22, "Cloudflare"),
    ([198, 41, 128, 0], 17, "Cloudflare"),
    ([162, 158, 0, 0], 15, "Cloudflare"),
    ([104, 16, 0, 0], 13, "Cloudflare"),
    ([104, 24, 0, 0], 14, "Cloudflare"),
    ([172, 64, 0, 0], 13, "Cloudflare"),
    ([131, 0, 72, 0], 22, "Cloudflare"),
    ([23, 235, 32, 0], 20, "Fastly"),
    ([43, 249, 72, 0], 22, "Fastly"),
    ([103, 244, 50, 0], 24, "Fastly"),
    ([103, 245, 222, 0], 23, "Fastly"),
    ([103, 245, 224, 0], 24, "Fastly"),
    ([104, 156, 80, 0], 20, "Fastly"),
    ([140, 248, 64, 0], 18, "Fastly"),
    ([140, 248, 128, 0], 17, "Fastly"),
    ([146, 75, 0, 0], 17, "Fastly"),
    ([151, 101, 0, 0], 16, "Fastly"),
    ([157, 52, 64, 0], 18, "Fastly"),
    ([167, 82, 0, 0], 17, "Fastly"),
    ([167, 82, 128, 0], 20, "Fastly"),
    ([167, 82, 160, 0], 20, "Fastly"),
    ([167, 82, 224, 0], 20, "Fastly"),
    ([172, 111, 64, 0], 18, "Fastly"),
    ([185, 31, 16, 0], 22, "Fastly"),
    ([199, 27, 72, 0], 21, "Fastly"),
    ([199, 232, 0, 0], 16, "Fastly"),
];

/// IPv6 ranges: the first 32 bits of the network, prefix length, CDN; the same sources.
const IPV6: [(u32, u32, &str); 9] = [
    (0x2400_cb00, 32, "Cloudflare"),
    (0x2606_4700, 32, "Cloudflare"),
    (0x2803_f800, 32, "Cloudflare"),
    (0x2405_b500, 32, "Cloudflare"),
    (0x2405_8100, 32, "Cloudflare"),
    (0x2a06_98c0, 29, "Cloudflare"),
    (0x2c0f_f248, 32, "Cloudflare"),
    (0x2a04_4e40, 32, "Fastly"),
    (0x2a04_4e42, 32, "Fastly"),
];

/// The CDN of an address, or of one of its names, if it is a known one.
#[must_use]
pub fn content_network(address: IpAddr, names: &[String]) -> Option<&'static str> {
    of_address(address).or_else(|| names.iter().find_map(|name| of_name(name)))
}

fn of_address(address: IpAddr) -> Option<&'static str> {
    let within = |bits: u32, network: u32, length: u32| (bits ^ network) >> (32 - length) == 0;
    match address {
        IpAddr::V4(address) => {
            let bits = address.to_bits();
            let range = |(network, length, _): &&([u8; 4], u32, &str)| {
                within(bits, Ipv4Addr::from(*network).to_bits(), *length)
            };
            IPV4.iter().find(range).map(|range| range.2)
        }
        IpAddr::V6(address) => {
            let bits = (Ipv6Addr::to_bits(address) >> 96) as u32;
            IPV6.iter().find(|(network, length, _)| within(bits, *network, *length)).map(|r| r.2)
        }
    }
}

fn of_name(name: &str) -> Option<&'static str> {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let is_in = |domain: &str| name.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'));
    DOMAINS.iter().find(|(domain, _)| is_in(domain)).map(|(_, network)| *network)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_found_by_range_and_by_name() {
        let of = |address: &str, name: &str| {
            content_network(address.parse().unwrap(), &[name.to_owned()])
        };
        // www.ietf.org, in M3AAWG's training of 2025.
        assert_eq!(of("104.16.45.99", ""), Some("Cloudflare"));
        assert_eq!(of("104.23.255.255", ""), Some("Cloudflare"));
        assert_eq!(of("104.28.0.0", ""), None);
        assert_eq!(of("2a06:98c7::1", ""), Some("Cloudflare"));
        assert_eq!(of("2a06:98c8::1", ""), None);
        assert_eq!(of("2a04:4e42::347", ""), Some("Fastly"));
        assert_eq!(of("192.0.2.1", "d111111abcdef8.cloudfront.net."), Some("Amazon CloudFront"));
        assert_eq!(of("192.0.2.1", "E1234.DSCA.akamaiedge.net"), Some("Akamai"));
        for own in ["notcloudfront.net", "cloudfront.net", "cloudfront.net.example.org", ""] {
            assert_eq!(of("192.0.2.1", own), None, "{own}");
        }
    }
}
