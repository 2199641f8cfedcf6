//! A disk of a given rate.

use host::clock;
use host::slow_disk::SlowDisk;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use units::{BitRate, ByteCount};

/// Reads take no less than the device's time, and the end of the disk is an error.
pub(crate) fn role() -> i32 {
    // Covered in this sandbox only.
    let directory = Path::new("/mnt");
    let rate = BitRate::from_bps(80_000_000);
    let disk = SlowDisk::mount(directory, rate).unwrap();
    assert_eq!(std::fs::metadata(directory.join("other")).unwrap_err().raw_os_error(), Some(2));
    let mut file = File::open(disk.file()).unwrap();
    let mut bytes = vec![1; 2 << 20];
    let began = clock::now();
    file.read_exact(&mut bytes).unwrap();
    assert!(began.elapsed() >= rate.time_for(ByteCount::from_bytes(2 << 20)));
    assert!(bytes.iter().all(|byte| *byte == 0));
    assert!(File::create(directory.join("file")).is_err(), "it is read-only");
    drop(disk);
    assert!(file.read_exact(&mut bytes).is_err());
    assert!(std::fs::metadata(directory.join("file")).is_err(), "it is not unmounted");
    0
}
