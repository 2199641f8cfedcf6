//! A machine for classic BPF, after "The BSD Packet Filter" (McCanne, Jacobson 1993) and
//! linux/filter.h.

use bpf::Instruction;

/// What the kernel knows besides the bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Metadata {
    pub(crate) ether_type: u16,
    pub(crate) packet_type: u32,
    pub(crate) vlan: Option<u16>,
}

/// Runs a program over a packet; a load beyond its end ends it with 0.
pub(crate) fn run(program: &[Instruction], packet: &[u8], metadata: Metadata) -> u32 {
    let (mut a, mut x, mut at) = (0_u32, 0_u32, 0_usize);
    loop {
        let Instruction { code, if_true, if_false, value } = program[at];
        at += 1;
        let load = |offset: u32, length: usize| -> Option<u32> {
            let bytes = packet.get(offset as usize..)?.get(..length)?;
            Some(bytes.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
        };
        let known = |offset: i32| match offset + 0x1000 {
            0 => u32::from(metadata.ether_type),
            4 => metadata.packet_type,
            44 => u32::from(metadata.vlan.unwrap_or(0)),
            48 => u32::from(metadata.vlan.is_some()),
            other => panic!("metadata {other}"),
        };
        let loaded = match code {
            0x20 | 0x28 | 0x30 if value.cast_signed() < 0 => Some(known(value.cast_signed())),
            0x20 => load(value, 4),
            0x28 => load(value, 2),
            0x30 => load(value, 1),
            0x40 => load(x + value, 4),
            0x48 => load(x + value, 2),
            0x50 => load(x + value, 1),
            0x80 => Some(packet.len() as u32),
            0xb1 => {
                let Some(byte) = load(value, 1) else { return 0 };
                x = 4 * (byte & 15);
                continue;
            }
            0x54 => Some(a & value),
            0x05 => {
                at += value as usize;
                continue;
            }
            0x15 | 0x25 | 0x35 | 0x45 => {
                let holds = match code {
                    0x15 => a == value,
                    0x25 => a > value,
                    0x35 => a >= value,
                    _ => a & value != 0,
                };
                at += usize::from(if holds { if_true } else { if_false });
                continue;
            }
            0x06 => return value,
            other => panic!("instruction {other:#x}"),
        };
        match loaded {
            Some(value) => a = value,
            None => return 0,
        }
    }
}
