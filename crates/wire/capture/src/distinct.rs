//! How many different things there were, of which none was kept.

/// Registers; the standard error is 1.04 / sqrt(REGISTERS), 1.6 %.
const REGISTERS: usize = 1 << 12;

/// An estimate of the number of different hashes in 4 KiB: HyperLogLog (Flajolet et al., AofA
/// 2007).
#[derive(Debug, Clone, Default)]
pub(crate) struct Distinct {
    /// The most leading zeros, plus one, of the hashes of each register; empty without any.
    registers: Vec<u8>,
}

impl Distinct {
    pub(crate) fn add(&mut self, hash: u64) {
        if self.registers.is_empty() {
            self.registers = vec![0; REGISTERS];
        }
        // Hashes of tables are weak in places; this spreads them (SplitMix64's finaliser).
        let mixed = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let mixed = mixed ^ (mixed >> 31);
        let rank = (mixed | (REGISTERS as u64 - 1)).leading_zeros() as u8 + 1;
        if let Some(register) = self.registers.get_mut(mixed as usize % REGISTERS) {
            *register = rank.max(*register);
        }
    }

    /// The estimate; 0 only if none was added.
    pub(crate) fn count(&self) -> u64 {
        if self.registers.is_empty() {
            return 0;
        }
        let registers = REGISTERS as f64;
        let sum: f64 = self.registers.iter().map(|rank| 0.5_f64.powi(i32::from(*rank))).sum();
        let estimate = 0.7213 / (1.0 + 1.079 / registers) * registers * registers / sum;
        let empty = self.registers.iter().filter(|rank| **rank == 0).count();
        // Linear counting, where few registers are in use.
        let is_small = estimate <= 2.5 * registers && empty > 0;
        let count = if is_small { registers * (registers / empty as f64).ln() } else { estimate };
        (count.round() as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_are_within_five_standard_errors() {
        for count in [0_u64, 1, 10, 1000, 10_000, 20_000, 300_000] {
            let mut distinct = Distinct::default();
            for number in 0..count {
                let hash = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                distinct.add(hash);
                distinct.add(hash);
            }
            let error = distinct.count().abs_diff(count) as f64;
            assert!(error <= count as f64 * 0.08, "{count}: {}", distinct.count());
        }
    }
}
