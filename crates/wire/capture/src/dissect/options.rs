//! TCP options: MSS, window scale and SACK (RFC 9293, 7323, 2018), timestamps
//! (RFC 7323), fast open (RFC 7413), MPTCP (RFC 8684).

/// The options that an analysis of a flow uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpOptions {
    /// Timestamp value and echo reply.
    pub timestamps: Option<(u32, u32)>,
    /// Maximum segment size, in bytes.
    pub mss: Option<u16>,
    /// Shift of the window, as sent; values above 14 count as 14 (RFC 7323, 2.3).
    pub window_scale: Option<u8>,
    /// Whether SACK is permitted.
    pub sack_permitted: bool,
    /// SACK blocks: left and right edge, in the order they were sent.
    pub sack: [(u32, u32); 4],
    /// How many of `sack` are valid.
    pub sack_count: u8,
    /// Length of the fast open cookie in bytes; 0 asks for one.
    pub fast_open: Option<u8>,
    /// Subtype of the first MPTCP option.
    pub mptcp: Option<u8>,
    /// Whether an MPTCP option says more than which data arrived: any but DSS, or a DSS that ends
    /// the data.
    pub mptcp_signals: bool,
    /// The data-level acknowledgement of a DSS option, its lower 32 bits.
    pub mptcp_data_ack: Option<u32>,
}

impl TcpOptions {
    /// Decodes `bytes`; what is malformed or not captured ends the list.
    #[must_use]
    #[inline]
    pub fn parse(bytes: &[u8]) -> Self {
        // What nearly every segment of a transfer has: NOP, NOP, timestamps.
        if let [1, 1, 8, 10, a, b, c, d, e, f, g, h] = *bytes {
            let timestamps =
                Some((u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])));
            return TcpOptions { timestamps, ..TcpOptions::default() };
        }
        let mut options = TcpOptions::default();
        for option in OptionIter::new(bytes) {
            options.add(option);
        }
        options
    }

    fn add(&mut self, option: TcpOption<'_>) {
        match (option.kind, option.data) {
            (2, [a, b]) => self.mss = Some(u16::from_be_bytes([*a, *b])),
            (3, [shift]) => self.window_scale = Some(*shift),
            (4, []) => self.sack_permitted = true,
            (5, data) => {
                for block in data.as_chunks::<8>().0.iter().take(4) {
                    let [a, b, c, d, e, f, g, h] = *block;
                    let edges =
                        (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
                    if let Some(slot) = self.sack.get_mut(usize::from(self.sack_count)) {
                        *slot = edges;
                        self.sack_count += 1;
                    }
                }
            }
            (8, &[a, b, c, d, e, f, g, h]) => {
                self.timestamps =
                    Some((u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])));
            }
            (30, data) => self.add_mptcp(data),
            // An option has at most 253 bytes of data.
            (34, data) => self.fast_open = Some(data.len() as u8),
            // The experimental option of RFC 6994 with fast open's magic number.
            (254, [0xf9, 0x89, cookie @ ..]) => self.fast_open = Some(cookie.len() as u8),
            _ => {}
        }
    }

    /// RFC 8684, section 3.3: DSS has flags in its second byte, and then the acknowledgement, of 4
    /// or 8 bytes.
    #[cold]
    fn add_mptcp(&mut self, data: &[u8]) {
        const DSS: u8 = 2;
        const DATA_FIN: u8 = 0x10;
        const EIGHT_BYTES: u8 = 0x02;
        const HAS_ACK: u8 = 0x01;
        let Some(first) = data.first() else { return };
        self.mptcp.get_or_insert(first >> 4);
        let flags = data.get(1).copied().unwrap_or(0);
        self.mptcp_signals |= first >> 4 != DSS || flags & DATA_FIN != 0;
        if first >> 4 == DSS && flags & HAS_ACK != 0 {
            let at = if flags & EIGHT_BYTES != 0 { 6 } else { 2 };
            let ack = data.get(at..).and_then(<[u8]>::first_chunk);
            self.mptcp_data_ack = ack.map(|ack| u32::from_be_bytes(*ack)).or(self.mptcp_data_ack);
        }
    }

    /// The SACK blocks.
    #[must_use]
    #[inline]
    pub fn sack_blocks(&self) -> &[(u32, u32)] {
        &self.sack[..usize::from(self.sack_count).min(self.sack.len())]
    }
}

/// One option as sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpOption<'a> {
    /// Its kind, by IANA's registry.
    pub kind: u8,
    /// What follows the kind and the length.
    pub data: &'a [u8],
}

impl TcpOption<'_> {
    /// The option's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self.kind {
            0 => "end of options",
            1 => "no-operation",
            2 => "MSS",
            3 => "window scale",
            4 => "SACK permitted",
            5 => "SACK",
            8 => "timestamps",
            19 => "MD5 signature",
            28 => "user timeout",
            29 => "TCP-AO",
            30 => self.data.first().map_or("MPTCP", |first| mptcp_name(first >> 4)),
            34 => "fast open cookie",
            69 => "encryption negotiation",
            172 => "accurate ECN, order 0",
            174 => "accurate ECN, order 1",
            253 | 254 => "experimental",
            _ => "unknown",
        }
    }
}

/// Name of a subtype of the MPTCP option (RFC 8684, table 2).
#[must_use]
pub fn mptcp_name(subtype: u8) -> &'static str {
    match subtype {
        0 => "MP_CAPABLE",
        1 => "MP_JOIN",
        2 => "DSS",
        3 => "ADD_ADDR",
        4 => "REMOVE_ADDR",
        5 => "MP_PRIO",
        6 => "MP_FAIL",
        7 => "MP_FASTCLOSE",
        8 => "MP_TCPRST",
        _ => "MPTCP",
    }
}

/// The options of a segment in order; ends at the end-of-options mark, or where an
/// option is malformed or was not captured.
#[derive(Debug, Clone)]
pub struct OptionIter<'a> {
    rest: &'a [u8],
}

impl<'a> OptionIter<'a> {
    pub(crate) fn new(rest: &'a [u8]) -> Self {
        OptionIter { rest }
    }
}

impl<'a> Iterator for OptionIter<'a> {
    type Item = TcpOption<'a>;

    fn next(&mut self) -> Option<TcpOption<'a>> {
        match *self.rest {
            [] | [0, ..] => None,
            [1, ref rest @ ..] => {
                self.rest = rest;
                Some(TcpOption { kind: 1, data: &[] })
            }
            [kind, length, ref rest @ ..] => {
                let length = usize::from(length).checked_sub(2)?;
                let (data, rest) = rest.split_at_checked(length)?;
                self.rest = rest;
                Some(TcpOption { kind, data })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_a_syn() {
        let bytes =
            [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0, 1, 3, 3, 7, 34, 2, 30, 4, 0x01, 0];
        let options = TcpOptions::parse(&bytes);
        assert_eq!(options.mss, Some(1460));
        assert_eq!(options.window_scale, Some(7));
        assert!(options.sack_permitted);
        assert_eq!(options.timestamps, Some((9, 0)));
        assert_eq!(options.fast_open, Some(0));
        assert_eq!(options.mptcp, Some(0));
        let names: Vec<&str> = OptionIter::new(&bytes).map(|option| option.name()).collect();
        assert_eq!(names[5..], ["fast open cookie", "MP_CAPABLE"]);
    }

    #[test]
    fn sack_blocks_with_timestamps() {
        let mut bytes = vec![1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 1, 5, 18];
        bytes.extend([0, 0, 0, 10, 0, 0, 0, 20, 0, 0, 0, 30, 0, 0, 0, 40]);
        let options = TcpOptions::parse(&bytes);
        assert_eq!(options.sack_blocks(), [(10, 20), (30, 40)]);
        assert_eq!(options.timestamps, Some((1, 2)));
        // Cut inside of the blocks: what is complete stays.
        assert_eq!(TcpOptions::parse(&bytes[..20]).sack_count, 0);
        assert_eq!(TcpOptions::parse(&bytes[..20]).timestamps, Some((1, 2)));
    }

    #[test]
    fn malformed_lengths_end_the_list() {
        for bytes in [&[8, 0][..], &[8, 1, 1], &[2, 9, 1], &[3], &[0, 8, 10]] {
            assert_eq!(TcpOptions::parse(bytes), TcpOptions::default());
        }
    }
}
