//! Progress while captures are read.

use crate::console::Console;
use longhaul::pcap::{ReadEvent, ReadProgress};
use std::ops::ControlFlow;
use std::time::Duration;
use units::{BitRate, ByteCount};

/// Shows progress on the console.
pub(crate) fn progress(console: &mut Console) -> impl FnMut(ReadEvent<'_>) -> ControlFlow<()> {
    move |event| {
        match event {
            ReadEvent::Progress(progress) => show(progress, console),
            ReadEvent::Comparing => console.live("comparing packets"),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// One line on how far a file has been read.
fn show(progress: &ReadProgress, console: &mut Console) {
    let read = ByteCount::from_bytes(progress.bytes);
    let of = progress.size_bytes.filter(|size| *size > 0).map_or(String::new(), |size| {
        let share = read.as_f64() / size as f64;
        format!(
            " of {} ({})",
            ByteCount::from_bytes(size).decimal(),
            units::percent_with(share.min(1.0), 2)
        )
    });
    let rate = BitRate::of(read, Duration::from_secs_f64(progress.seconds));
    console.live(&format!("reading {}: {}{of}, {rate}", progress.file, read.decimal()));
}
