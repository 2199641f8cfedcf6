//! No message takes more than four times its length in memory, whatever is in
//! it. The allocator counts, so this test has a program of its own; every case
//! runs in one thread.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]
#![expect(unsafe_code, reason = "an allocator is unsafe to implement; this one only counts")]

use iperf3_proto::{
    Decoder, Params, Results,
    framing::{CLIENT_RESULTS_LIMIT, MEMORY_PER_BYTE, PARAMS_LIMIT, RESULTS_LIMIT},
};
use serde::de::DeserializeOwned;
use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn grow(bytes: usize) {
    PEAK.fetch_max(HELD.fetch_add(bytes, Relaxed) + bytes, Relaxed);
}

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller's promises are those that are asked for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: likewise.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        grow(size);
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: likewise.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Peak of the memory that reading a message takes, in bytes.
fn peak<T: DeserializeOwned>(body: &[u8], mut decoder: Decoder) -> usize {
    let before = HELD.load(Relaxed);
    PEAK.store(before, Relaxed);
    decoder.take(&u32::try_from(body.len()).unwrap().to_be_bytes()).unwrap();
    let whole = body.chunks(16 * 1024).all(|piece| decoder.take(piece).is_ok());
    if whole {
        let _ = decoder.finish::<T>();
    }
    PEAK.load(Relaxed) - before
}

/// Messages that take much more as trees than as text.
fn bombs(length: usize) -> Vec<(&'static str, Vec<u8>)> {
    let fill = |before: &str, piece: &str, last: &str, after: &str| {
        let count = (length - before.len() - last.len() - after.len()) / piece.len();
        format!("{before}{}{last}{after}", piece.repeat(count)).into_bytes()
    };
    vec![
        ("objects in a number", fill("{\"cpu_util_total\":[", "{\"\":0},", "0", "]}")),
        ("arrays in a number", fill("{\"time\":[", "[],", "0", "]}")),
        ("nested arrays", fill("{\"num\":", "[", "", "")),
        ("nested objects", fill("{\"longhaul\":", "{\"a\":", "", "")),
        ("unknown keys", fill("{", "\"\":{\"\":0},", "\"\":0", "}")),
        ("streams", fill("{\"streams\":[", "{},", "{}", "]}")),
        ("streams as lists", fill("{\"streams\":[", "[],", "{}", "]}")),
        ("a document", fill("{\"server_output_json\":[", "{\"\":0},", "0", "]}")),
        ("a deep document", fill("{\"server_output_json\":", "[", "", "")),
        ("a text", fill("{\"server_output_text\":\"", "x\\n", "", "\"}")),
        (
            "a text of pages",
            fill("{\"server_output_text\":\"", &format!("{}\\n", "x".repeat(78)), "", "\"}"),
        ),
        ("another text", fill("{\"congestion_used\":\"", "\\u00e9", "", "\"}")),
        ("an extension", fill("{\"longhaul\":{\"version\":[", "{\"\":0},", "0", "]}}")),
        ("an extra", fill("{\"longhaul\":{\"streams\":[", "{\"sender\":{\"\":[0]}},", "0", "]}}")),
        ("a token", fill("{\"longhaul\":{\"token\":{\"mac\":[", "{\"\":0},", "0", "]}}}")),
    ]
}

#[test]
fn no_message_takes_more_than_four_times_its_length() {
    // What does not grow with a message: 256 streams, and the scanner's own.
    const FIXED: usize = 64 * 1024;
    let factor = usize::try_from(MEMORY_PER_BYTE).unwrap();
    let check = |kind: &str, name: &str, length: usize, limit: usize, peak: usize| {
        let most = factor * length.min(limit) + FIXED;
        assert!(peak <= most, "{kind}, {name}: {length} bytes took {peak}");
    };
    for (name, body) in bombs(PARAMS_LIMIT as usize) {
        let peak = peak::<Params>(&body, Decoder::new(PARAMS_LIMIT));
        check("parameters", name, body.len(), body.len(), peak);
    }
    for (name, body) in bombs(CLIENT_RESULTS_LIMIT as usize) {
        let peak = peak::<Results>(&body, Decoder::new(CLIENT_RESULTS_LIMIT));
        check("a client's results", name, body.len(), body.len(), peak);
    }
    let limit = RESULTS_LIMIT as usize;
    for length in [limit, 3 * limit] {
        for (name, body) in bombs(length) {
            let peak = peak::<Results>(&body, Decoder::for_results());
            check("a server's results", name, body.len(), limit, peak);
        }
    }
}
