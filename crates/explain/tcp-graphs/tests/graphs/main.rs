//! Levels of detail: no peak, no count and no event disappears, and the limits hold.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod columns;
mod exchange;
mod levels;
mod packets;
