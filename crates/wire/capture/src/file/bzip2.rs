//! bzip2 (<https://sourceware.org/bzip2/>, as `bzip2 -d` reads it): blocks of at most 900 kB, each
//! run-length coded, sorted (Burrows-Wheeler), moved to front and Huffman coded.
//!
//! Memory is that of one block: 3.6 MB. Streams one after the other, as parallel compressors write
//! them, are one file.

use std::io::{self, BufRead, Read};

const BLOCK: u64 = 0x3141_5926_5359;
const END: u64 = 0x1772_4538_5090;

/// Bytes of a block for each level from 1 to 9.
const LEVEL_BYTES: usize = 100_000;
/// Symbols that one Huffman table codes, and the most tables' choices of a block.
const GROUP: usize = 50;
const MAX_SELECTORS: usize = 18_002;
const LONGEST_CODE: usize = 20;
const MAX_SYMBOLS: usize = 258;

/// CRC-32 of the polynomial 0x04c11db7, the highest bit first.
const CRC: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut value = (byte as u32) << 24;
        let mut bit = 0;
        while bit < 8 {
            value = if value >> 31 == 1 { value << 1 ^ 0x04c1_1db7 } else { value << 1 };
            bit += 1;
        }
        table[byte] = value;
        byte += 1;
    }
    table
};

/// What is wrong with the data.
fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the bzip2 data: {what}"))
}

/// Decompresses streams.
pub(super) struct Bzip2<R> {
    bits: Bits<R>,
    /// Bytes of a block of this stream; 0 before its header.
    block_bytes: usize,
    /// The sorted block: each byte, and above it the place of the byte that follows.
    sorted: Vec<u32>,
    place: u32,
    /// Bytes of the block that are not yet taken.
    left: usize,
    /// The last byte, how often it came in a row, and how often it is still to be repeated.
    last: u8,
    in_row: u8,
    repeats: u8,
    crc: u32,
    expected_crc: u32,
    stream_crc: u32,
    has_block: bool,
}

impl<R: BufRead> Bzip2<R> {
    pub(super) fn new(input: R) -> Self {
        Bzip2 {
            bits: Bits { input, value: 0, count: 0 },
            block_bytes: 0,
            sorted: Vec::new(),
            place: 0,
            left: 0,
            last: 0,
            in_row: 0,
            repeats: 0,
            crc: u32::MAX,
            expected_crc: 0,
            stream_crc: 0,
            has_block: false,
        }
    }

    /// Begins the next block, of the next stream if need be; `false` at the end.
    fn next_block(&mut self) -> io::Result<bool> {
        loop {
            if self.block_bytes == 0 {
                if self.bits.is_at_end()? {
                    return Ok(false);
                }
                let header = self.bits.take(32)?;
                let level = header & 0xff;
                if header >> 8 != 0x0042_5a68 || !(0x31..=0x39).contains(&level) {
                    return Err(invalid("a stream's header is wrong"));
                }
                self.block_bytes = (level - 0x30) as usize * LEVEL_BYTES;
                self.stream_crc = 0;
            }
            let magic = u64::from(self.bits.take(24)?) << 24 | u64::from(self.bits.take(24)?);
            let crc = self.bits.take(32)?;
            match magic {
                BLOCK => {
                    self.expected_crc = crc;
                    self.read_block()?;
                    return Ok(true);
                }
                END if crc == self.stream_crc => {
                    self.bits.align();
                    self.block_bytes = 0;
                }
                END => return Err(invalid("a stream's checksum is wrong")),
                _ => return Err(invalid("a block's header is wrong")),
            }
        }
    }

    fn read_block(&mut self) -> io::Result<()> {
        // Only versions before 1.0 made such blocks.
        if self.bits.take(1)? == 1 {
            return Err(invalid("a randomised block"));
        }
        let origin = self.bits.take(24)?;
        let mut counts = [0_u32; 256];
        self.sorted.clear();
        self.read_symbols(&mut counts)?;
        // Where the bytes of each value begin in sorted order.
        let mut sum = 0;
        for count in &mut counts {
            sum += std::mem::replace(count, sum);
        }
        for at in 0..self.sorted.len() {
            let slot = &mut counts[(self.sorted[at] & 0xff) as usize];
            // A block has fewer than 2^24 bytes.
            self.sorted[*slot as usize] |= (at as u32) << 8;
            *slot += 1;
        }
        let first = self.sorted.get(origin as usize).ok_or_else(|| invalid("a block's origin"))?;
        self.place = first >> 8;
        self.left = self.sorted.len();
        (self.in_row, self.repeats, self.crc, self.has_block) = (0, 0, u32::MAX, true);
        Ok(())
    }

    /// Reads the bytes of a block in sorted order, and counts each value.
    fn read_symbols(&mut self, counts: &mut [u32; 256]) -> io::Result<()> {
        let mut front = self.used_bytes()?;
        let symbols = front.len() + 2;
        let (selectors, codes) = self.codes(symbols)?;
        let end_of_block = symbols - 1;
        let (mut run, mut weight) = (0_usize, 1_usize);
        for number in 0.. {
            let selector = selectors.get(number / GROUP).copied();
            let code = selector.and_then(|which| codes.get(usize::from(which)));
            let symbol = code.ok_or_else(|| invalid("a block has too many symbols"))?;
            let symbol = symbol.read(&mut self.bits)?;
            if symbol <= 1 {
                // Digits of a run's length, 1 and 2, the lowest first.
                run += weight << symbol;
                weight <<= 1;
                if run > self.block_bytes {
                    return Err(invalid("a block is too long"));
                }
                continue;
            }
            if run > 0 {
                self.push(front.first().copied().unwrap_or(0), run, counts)?;
                (run, weight) = (0, 1);
            }
            if symbol == end_of_block {
                break;
            }
            let at = symbol - 1;
            front.get_mut(..=at).ok_or_else(|| invalid("a symbol"))?.rotate_right(1);
            self.push(front.first().copied().unwrap_or(0), 1, counts)?;
        }
        Ok(())
    }

    fn push(&mut self, byte: u8, times: usize, counts: &mut [u32; 256]) -> io::Result<()> {
        if self.sorted.len() + times > self.block_bytes {
            return Err(invalid("a block is too long"));
        }
        // A block has fewer than 2^24 bytes.
        counts[usize::from(byte)] += times as u32;
        self.sorted.resize(self.sorted.len() + times, u32::from(byte));
        Ok(())
    }

    /// The bytes that the block has, in order.
    fn used_bytes(&mut self) -> io::Result<Vec<u8>> {
        let groups = self.bits.take(16)?;
        let mut used = Vec::with_capacity(256);
        for group in (0..16_u8).filter(|group| groups >> (15 - group) & 1 == 1) {
            let bytes = self.bits.take(16)?;
            used.extend(
                (0..16).filter(|bit| bytes >> (15 - bit) & 1 == 1).map(|it| group << 4 | it),
            );
        }
        if used.is_empty() { Err(invalid("a block without bytes")) } else { Ok(used) }
    }

    /// Which code each group of symbols has, and the codes.
    fn codes(&mut self, symbols: usize) -> io::Result<(Vec<u8>, Vec<Code>)> {
        let tables = self.bits.take(3)? as usize;
        let count = self.bits.take(15)? as usize;
        if !(2..=6).contains(&tables) || count == 0 {
            return Err(invalid("a block's tables"));
        }
        let mut front = [0, 1, 2, 3, 4, 5_u8];
        let mut selectors = Vec::with_capacity(count.min(MAX_SELECTORS));
        for _ in 0..count {
            let mut at = 0;
            while self.bits.take(1)? == 1 {
                at += 1;
                if at >= tables {
                    return Err(invalid("a choice of tables"));
                }
            }
            front[..=at].rotate_right(1);
            // Some compressors write more than a block can use.
            if selectors.len() < MAX_SELECTORS {
                selectors.push(front[0]);
            }
        }
        let codes = (0..tables).map(|_| Code::lengths(&mut self.bits, symbols));
        Ok((selectors, codes.collect::<io::Result<_>>()?))
    }

    /// The next byte of the block; the caller checks that there is one.
    #[inline]
    fn next_byte(&mut self) -> u8 {
        if self.repeats > 0 {
            self.repeats -= 1;
            return self.last;
        }
        let mut byte = self.sorted_byte();
        if self.in_row == 4 {
            // After four equal bytes comes the count of further ones.
            self.in_row = 0;
            if byte > 0 {
                self.repeats = byte - 1;
                return self.last;
            }
            byte = self.sorted_byte();
        }
        self.in_row = if byte == self.last && self.in_row > 0 { self.in_row + 1 } else { 1 };
        self.last = byte;
        byte
    }

    #[inline]
    fn sorted_byte(&mut self) -> u8 {
        let entry = self.sorted.get(self.place as usize).copied().unwrap_or(0);
        self.place = entry >> 8;
        self.left = self.left.saturating_sub(1);
        (entry & 0xff) as u8
    }

    /// Whether the block has another byte: a count of none at its end gives none.
    #[inline]
    fn has_byte(&mut self) -> bool {
        if self.repeats > 0 {
            return true;
        }
        if self.in_row == 4 && self.left == 1 {
            let count = self.sorted.get(self.place as usize).copied().unwrap_or(0) & 0xff;
            if count == 0 {
                self.left = 0;
            }
        }
        self.left > 0
    }
}

impl<R: BufRead> Read for Bzip2<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if to.is_empty() {
            return Ok(0);
        }
        loop {
            let mut count = 0;
            for slot in to.iter_mut() {
                if !self.has_byte() {
                    break;
                }
                let byte = self.next_byte();
                self.crc = self.crc << 8 ^ CRC[(self.crc >> 24) as usize ^ usize::from(byte)];
                *slot = byte;
                count += 1;
            }
            if count > 0 {
                return Ok(count);
            }
            if std::mem::take(&mut self.has_block) {
                if !self.crc != self.expected_crc {
                    return Err(invalid("a block's checksum is wrong"));
                }
                self.stream_crc = self.stream_crc.rotate_left(1) ^ self.expected_crc;
            }
            if !self.next_block()? {
                return Ok(0);
            }
        }
    }
}

/// Bits of the input, the highest of each byte first.
struct Bits<R> {
    input: R,
    value: u64,
    /// Bits of `value` that were read and not taken: fewer than 8 between calls.
    count: u32,
}

impl<R: BufRead> Bits<R> {
    /// The next `count` bits, at most 32.
    #[inline]
    fn take(&mut self, count: u32) -> io::Result<u32> {
        while self.count < count {
            let byte = self.input.fill_buf()?.first().copied();
            let byte = byte.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
            self.input.consume(1);
            self.value = self.value << 8 | u64::from(byte);
            self.count += 8;
        }
        self.count -= count;
        // At most 32 bits are left by the mask.
        Ok((self.value >> self.count & ((1 << count) - 1)) as u32)
    }

    /// Leaves out what is left of a byte.
    fn align(&mut self) {
        self.count = 0;
    }

    fn is_at_end(&mut self) -> io::Result<bool> {
        Ok(self.input.fill_buf()?.is_empty())
    }
}

/// A canonical Huffman code.
struct Code {
    /// For each length, the first code that is longer, less what it is in the list of symbols.
    limits: [u32; LONGEST_CODE + 1],
    offsets: [u32; LONGEST_CODE + 1],
    symbols: Vec<u16>,
}

impl Code {
    /// Reads the lengths of the code of `count` symbols.
    fn lengths<R: BufRead>(bits: &mut Bits<R>, count: usize) -> io::Result<Self> {
        let mut lengths = [0_usize; MAX_SYMBOLS];
        let mut length = bits.take(5)? as usize;
        for slot in lengths.iter_mut().take(count) {
            while bits.take(1)? == 1 {
                length = if bits.take(1)? == 1 { length.wrapping_sub(1) } else { length + 1 };
                if !(1..=LONGEST_CODE).contains(&length) {
                    return Err(invalid("a code's length"));
                }
            }
            if !(1..=LONGEST_CODE).contains(&length) {
                return Err(invalid("a code's length"));
            }
            *slot = length;
        }
        let used = || (0_u16..).zip(&lengths).take(count);
        let mut code = Code {
            limits: [0; LONGEST_CODE + 1],
            offsets: [0; LONGEST_CODE + 1],
            symbols: Vec::new(),
        };
        let mut next = 0_u32;
        for length in 1..=LONGEST_CODE {
            code.offsets[length] = next.wrapping_sub(code.symbols.len() as u32);
            code.symbols.extend(used().filter(|it| *it.1 == length).map(|(symbol, _)| symbol));
            next = code.offsets[length].wrapping_add(code.symbols.len() as u32);
            code.limits[length] = next;
            next <<= 1;
        }
        Ok(code)
    }

    /// The next symbol.
    #[inline]
    fn read<R: BufRead>(&self, bits: &mut Bits<R>) -> io::Result<usize> {
        let mut code = 0;
        for length in 1..=LONGEST_CODE {
            code = code << 1 | bits.take(1)?;
            if code < self.limits[length] {
                let at = code.wrapping_sub(self.offsets[length]) as usize;
                let symbol = self.symbols.get(at).copied();
                return symbol.map(usize::from).ok_or_else(|| invalid("a code"));
            }
        }
        Err(invalid("a code"))
    }
}
