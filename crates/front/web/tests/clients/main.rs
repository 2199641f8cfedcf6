//! The clients that people have, and attackers who look like them: their exchanges, replayed over
//! the loopback.

mod attacks;
mod cloudflare;
mod http;
mod librespeed;
mod ndt7;
mod ndt7_attacks;
mod own;
mod relay;
mod responsiveness;
mod server;
