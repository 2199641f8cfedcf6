//! Big-endian 32-bit fields at fixed offsets.

/// Reads 32 bits at byte `at`; zero past the end, the value of all fields that older
/// versions do not send.
pub(crate) fn read(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).map_or(0, u32::from_be_bytes)
}

/// Writes 32 bits at byte `at`, if they fit.
pub(crate) fn write(bytes: &mut [u8], at: usize, value: u32) {
    if let Some(field) = bytes.get_mut(at..at + 4) {
        field.copy_from_slice(&value.to_be_bytes());
    }
}

/// The low 32 bits.
pub(crate) fn low(value: u64) -> u32 {
    u32::try_from(value & u64::from(u32::MAX)).unwrap_or_default()
}

/// The high 32 bits.
pub(crate) fn high(value: u64) -> u32 {
    low(value >> 32)
}

/// Two words as one number.
pub(crate) fn join(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}
