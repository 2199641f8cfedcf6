//! The TCP payload of a packet.

use units::BitRate;

/// Ethernet overhead per packet in bytes: preamble and SFD 8, header 14, FCS 4,
/// inter-frame gap 12 (IEEE 802.3).
pub const ETHERNET_FRAMING: u32 = 8 + 14 + 4 + 12;

/// VLAN tag in bytes (IEEE 802.1Q).
pub const VLAN_TAG: u32 = 4;

/// TCP header without options (RFC 9293, section 3.1).
const TCP_HEADER: u32 = 20;

/// Timestamps as Linux sends them: 10 bytes and two of padding (RFC 7323, appendix A).
const TIMESTAMPS: u32 = 12;

/// The IP version.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IpVersion {
    /// 20 bytes of header (RFC 791).
    Ipv4,
    /// 40 bytes of header (RFC 8200).
    Ipv6,
}

impl IpVersion {
    /// Header length in bytes without options or extensions.
    #[must_use]
    pub const fn header(self) -> u32 {
        match self {
            IpVersion::Ipv4 => 20,
            IpVersion::Ipv6 => 40,
        }
    }
}

/// The composition of a full-sized segment.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Payload {
    /// Largest IP packet, in bytes.
    pub mtu: u32,
    /// The IP version.
    pub ip: IpVersion,
    /// Whether every segment carries timestamps, as in Linux.
    pub timestamps: bool,
    /// SACK blocks in every segment: 0 in the data of a one-way transfer, at most 3
    /// with timestamps and 4 without (RFC 2018, section 3).
    pub sack_blocks: u32,
    /// Framing bytes per packet: 0 if the rate counts IP packets only,
    /// [`ETHERNET_FRAMING`] on Ethernet.
    pub framing: u32,
}

impl Payload {
    /// As the lab counts: IP bytes only, IPv4 with timestamps.
    #[must_use]
    pub const fn of_ip(mtu: u32) -> Self {
        Payload { mtu, ip: IpVersion::Ipv4, timestamps: true, sack_blocks: 0, framing: 0 }
    }

    /// On Ethernet, with timestamps.
    #[must_use]
    pub const fn on_ethernet(mtu: u32, ip: IpVersion) -> Self {
        Payload { mtu, ip, timestamps: true, sack_blocks: 0, framing: ETHERNET_FRAMING }
    }

    /// The same with this number of SACK blocks in every segment.
    #[must_use]
    pub const fn with_sack_blocks(self, sack_blocks: u32) -> Self {
        Payload { sack_blocks, ..self }
    }

    /// Bytes of TCP options in a data segment with padding, at most 40 (RFC 9293, section
    /// 3.1).
    #[must_use]
    pub fn options(&self) -> u32 {
        let timestamps = if self.timestamps { TIMESTAMPS } else { 0 };
        // Kind, length and two bytes of padding, then 8 bytes per block.
        let sack = if self.sack_blocks > 0 { 4 + 8 * self.sack_blocks.min(4) } else { 0 };
        (timestamps + sack).min(40)
    }

    /// Payload of a full segment in bytes: the kernel's `snd_mss`. `None` if the headers
    /// leave no room.
    #[must_use]
    pub fn mss(&self) -> Option<u32> {
        self.mtu
            .checked_sub(self.ip.header() + TCP_HEADER + self.options())
            .filter(|&payload| payload > 0)
    }

    /// Bytes of a full segment on the wire.
    #[must_use]
    pub const fn wire_bytes(&self) -> u64 {
        self.mtu as u64 + self.framing as u64
    }

    /// The payload share of the link rate: 1448/1538 on Ethernet.
    #[must_use]
    pub fn payload_share(&self) -> Option<f64> {
        self.mss().map(|mss| f64::from(mss) / self.wire_bytes() as f64)
    }

    /// The payload rate of a link of `rate`.
    #[must_use]
    pub fn goodput(&self, rate: BitRate) -> Option<BitRate> {
        self.payload_share().map(|share| rate.scaled(share))
    }
}

/// `payload / wire`; `None` if that is not within 0 to 1.
#[must_use]
pub fn share_of(payload: u32, wire: u32) -> Option<f64> {
    (payload > 0 && payload <= wire).then(|| f64::from(payload) / f64::from(wire))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIBRE: BitRate = BitRate::from_bps(2_500_000_000);

    fn gbit(payload: Payload) -> f64 {
        payload.goodput(FIBRE).unwrap().as_f64() / 1e9
    }

    #[test]
    fn ip_bytes_only_as_the_lab_counts() {
        let payload = Payload::of_ip(1500);
        assert_eq!((payload.mss(), payload.wire_bytes()), (Some(1448), 1500));
        let rate = payload.goodput(BitRate::from_bps(100_000_000)).unwrap();
        assert_eq!(rate.to_string(), "96.5 Mbit/s");
    }

    #[test]
    fn ethernet_ipv4_one_way_with_timestamps() {
        let payload = Payload::on_ethernet(1500, IpVersion::Ipv4);
        assert!((payload.payload_share().unwrap() - 0.9415).abs() < 5e-5);
        assert!((gbit(payload) - 2.354).abs() < 5e-4);
    }

    #[test]
    fn ethernet_ipv4_with_timestamps_and_three_sack_blocks() {
        let payload = Payload::on_ethernet(1500, IpVersion::Ipv4).with_sack_blocks(3);
        assert_eq!(payload.mss(), Some(1420));
        assert!((gbit(payload) - 2.308).abs() < 5e-4);
    }

    #[test]
    fn home_fibre_source_counts_36_bytes_of_options() {
        // Timestamps 12 and three SACK blocks 24, without the blocks' own
        // header and padding: 4 bytes fewer than a packet really holds.
        let wire = 12 + 8 + 14 + 1500 + 4;
        let ipv4 = FIBRE.scaled(share_of(1424, wire).unwrap()).as_f64() / 1e9;
        let ipv6 = FIBRE.scaled(share_of(1404, wire).unwrap()).as_f64() / 1e9;
        assert!((2.314..2.315).contains(&ipv4), "{ipv4}");
        assert!((2.282..2.283).contains(&ipv6), "{ipv6}");
    }

    #[test]
    fn jumbo_frames() {
        let jumbo = Payload::on_ethernet(9000, IpVersion::Ipv6);
        assert_eq!(jumbo.mss(), Some(8928));
        assert!(jumbo.payload_share().unwrap() > 0.987);
    }

    #[test]
    fn headers_alone_carry_nothing() {
        assert_eq!(Payload::of_ip(52).payload_share(), None);
        assert_eq!(Payload::of_ip(53).mss(), Some(1));
        assert_eq!(share_of(1, 0), None);
        assert_eq!(share_of(1501, 1500), None);
    }

    #[test]
    fn options_never_pass_forty_bytes() {
        assert_eq!(Payload::of_ip(1500).with_sack_blocks(4).options(), 40);
        assert_eq!(Payload::of_ip(1500).with_sack_blocks(u32::MAX).options(), 40);
        let plain = Payload { timestamps: false, ..Payload::of_ip(1500) };
        assert_eq!(plain.mss(), Some(1460));
    }
}
