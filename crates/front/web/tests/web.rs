//! The server as a page and as attackers use it, over the loopback.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "in a test an unwrap is an assertion")]

#[path = "web/attacks.rs"]
mod attacks;
#[path = "web/datagrams.rs"]
mod datagrams;
#[path = "web/families.rs"]
mod families;
#[path = "web/floods.rs"]
mod floods;
#[path = "web/history.rs"]
mod history;
#[path = "web/legs.rs"]
mod legs;
#[path = "web/page.rs"]
mod page;
#[path = "web/runs.rs"]
mod runs;
#[path = "web/session.rs"]
mod session;
