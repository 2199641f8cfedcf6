//! The machine's memory.

use units::ByteCount;

/// Memory that programs can still have without swapping (`MemAvailable`);
/// `None` where the system does not tell.
#[must_use]
pub fn available() -> Option<ByteCount> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(ByteCount::from_bytes(kibibytes.saturating_mul(1024)))
}
