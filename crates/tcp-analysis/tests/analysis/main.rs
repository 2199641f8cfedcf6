//! The rules from both sides: what is just flagged, and what just is not.

mod any;
mod exchange;
mod kinds;
mod wireshark;
