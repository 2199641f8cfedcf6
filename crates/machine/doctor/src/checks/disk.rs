//! The disk that a file is read from or written to.

use super::{check, pass_or};
use crate::facts::{DiskFacts, Fact, Facts};
use crate::target::Target;
use record::{Area, Check, Verdict};
use units::BitRate;

const SOURCE: &str = "measured, 4 MiB at a time";

pub(super) fn checks(facts: &Facts, target: &Target) -> Vec<Check> {
    match &facts.disk {
        None => Vec::new(),
        Some(Fact::Seen(disk)) => {
            vec![
                one("disk.write", disk, disk.write_bps, target),
                one("disk.read", disk, disk.read_bps, target),
            ]
        }
        Some(none) => {
            vec![super::unread(Area::Disk, "disk.write", none, &target.rate.to_string(), SOURCE)]
        }
    }
}

fn one(id: &str, disk: &DiskFacts, rate: BitRate, target: &Target) -> Check {
    let (what, whose) = match id {
        "disk.write" => ("writes", "the receiver waits for it and closes its window"),
        _ => ("reads", "the sender is application-limited"),
    };
    let bytes = rate.bps() / 8;
    let seen = format!(
        "{rate} ({}/s), {} in {}",
        units::ByteCount::from_bytes(bytes),
        disk.bytes,
        disk.folder
    );
    if disk.is_memory {
        return check(Area::Disk, id, Verdict::Unknown)
            .seen(seen)
            .needs(target.rate.to_string())
            .why("this directory is in memory: name one on the disk that holds the file")
            .source(SOURCE);
    }
    check(Area::Disk, id, pass_or(rate >= target.rate, Verdict::Fail))
        .seen(seen)
        .needs(target.rate.to_string())
        .why(format!("if the disk {what} slower than the target rate, {whose}; {}", disk.method))
        .remedy("use a faster disk, several disks, or several files at once")
        .source(SOURCE)
}
