//! From tests to instructions, from the last one to the first: jumps of classic BPF go forward
//! only, so where they lead to is known by then.

use crate::FilterError;
use crate::condition::{Comparison, Condition, Field, Width};

/// Most instructions that the kernel accepts (BPF_MAXINSNS of linux/bpf_common.h).
pub const MAX_INSTRUCTIONS: usize = 4096;

/// An instruction of classic BPF (`struct sock_filter` of linux/filter.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Instruction {
    /// Operation.
    pub code: u16,
    /// Instructions to skip if a comparison holds.
    pub if_true: u8,
    /// Instructions to skip otherwise.
    pub if_false: u8,
    /// Operand.
    pub value: u32,
}

/// Operations (linux/bpf_common.h).
const LOAD_WORD: u16 = 0x20;
const LOAD_HALF: u16 = 0x28;
const LOAD_BYTE: u16 = 0x30;
const LOAD_LENGTH: u16 = 0x80;
/// X = 4 x the lower four bits of the byte: the length of an IPv4 header.
const LOAD_IPV4_LENGTH: u16 = 0xb1;
/// A half-word at X and an offset.
const LOAD_HALF_INDEXED: u16 = 0x48;
const AND: u16 = 0x54;
const JUMP: u16 = 0x05;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_GREATER: u16 = 0x25;
const JUMP_GREATER_OR_EQUAL: u16 = 0x35;
const JUMP_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

/// What the offsets of the kernel's metadata are added to (SKF_AD_OFF).
const METADATA: u32 = 0u32.wrapping_sub(0x1000);

/// Farthest target of a conditional jump. One less than its 8 bits hold: an unconditional jump
/// may come between.
const NEAR: usize = 254;

/// The end of a program.
pub(crate) fn returns(value: u32) -> Instruction {
    Instruction { code: RETURN, if_true: 0, if_false: 0, value }
}

/// A program that returns `snaplen` where a condition holds, and 0 elsewhere.
pub(crate) fn program(
    condition: &Condition,
    snaplen: u32,
) -> Result<Vec<Instruction>, FilterError> {
    let mut generator = Generator { reversed: vec![returns(0), returns(snaplen)] };
    let (rejected, accepted) = (Label(0), Label(1));
    let begins = generator.condition(condition, accepted, rejected)?;
    // Without a test, the first instruction is the verdict.
    generator.reversed.truncate(begins.0 + 1);
    generator.reversed.reverse();
    Ok(generator.reversed)
}

/// An instruction, by its number from the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Label(usize);

struct Generator {
    /// The program so far, its last instruction first.
    reversed: Vec<Instruction>,
}

impl Generator {
    /// Adds the instructions that lead to one of two labels, and returns where they begin.
    fn condition(
        &mut self,
        condition: &Condition,
        holds: Label,
        fails: Label,
    ) -> Result<Label, FilterError> {
        match condition {
            Condition::Not(inner) => self.condition(inner, fails, holds),
            Condition::All(parts) => {
                parts.iter().rev().try_fold(holds, |next, part| self.condition(part, next, fails))
            }
            Condition::Any(parts) => {
                parts.iter().rev().try_fold(fails, |next, part| self.condition(part, holds, next))
            }
            Condition::Test { field, mask, comparison, value } => {
                let code = match comparison {
                    Comparison::Equal => JUMP_EQUAL,
                    Comparison::Greater => JUMP_GREATER,
                    Comparison::GreaterOrEqual => JUMP_GREATER_OR_EQUAL,
                    Comparison::AnyBit => JUMP_ANY_BIT,
                };
                self.branch(code, *value, holds, fails)?;
                if *mask != u32::MAX {
                    self.add(AND, *mask)?;
                }
                self.load(*field)
            }
        }
    }

    fn load(&mut self, field: Field) -> Result<Label, FilterError> {
        match field {
            Field::At(width, offset) => {
                let code = match width {
                    Width::Byte => LOAD_BYTE,
                    Width::Half => LOAD_HALF,
                    Width::Word => LOAD_WORD,
                };
                self.add(code, offset)
            }
            Field::BehindIpv4(header, offset) => {
                self.add(LOAD_HALF_INDEXED, header + offset)?;
                self.add(LOAD_IPV4_LENGTH, header)
            }
            Field::Length => self.add(LOAD_LENGTH, 0),
            Field::Metadata(metadata) => {
                self.add(LOAD_WORD, METADATA.wrapping_add(metadata as u32))
            }
        }
    }

    fn branch(
        &mut self,
        code: u16,
        value: u32,
        holds: Label,
        fails: Label,
    ) -> Result<Label, FilterError> {
        let holds = self.near(holds)?;
        let fails = self.near(fails)?;
        let at = self.reversed.len();
        // At most 255: `near` has seen to it.
        let skip = |to: Label| u8::try_from(at - to.0 - 1).map_err(|_| FilterError::TooComplex);
        let (if_true, if_false) = (skip(holds)?, skip(fails)?);
        self.push(Instruction { code, if_true, if_false, value })
    }

    /// A label that a conditional jump reaches, by an unconditional one if need be.
    fn near(&mut self, to: Label) -> Result<Label, FilterError> {
        let distance = self.reversed.len() - to.0 - 1;
        if distance <= NEAR {
            return Ok(to);
        }
        let skip = u32::try_from(distance).map_err(|_| FilterError::TooComplex)?;
        self.add(JUMP, skip)
    }

    fn add(&mut self, code: u16, value: u32) -> Result<Label, FilterError> {
        self.push(Instruction { code, if_true: 0, if_false: 0, value })
    }

    fn push(&mut self, instruction: Instruction) -> Result<Label, FilterError> {
        if self.reversed.len() == MAX_INSTRUCTIONS {
            return Err(FilterError::TooComplex);
        }
        self.reversed.push(instruction);
        Ok(Label(self.reversed.len() - 1))
    }
}
