//! A speed test for browsers, and for the clients that people have, which says what limited it.
//!
//! ```text
//!    listener (TLS, limits) ─> Connection ─> router ─┬─> assets: the page
//!                                                    ├─> pages: calculators, glossary, pasted text
//!                                                    ├─> legs: Wi-Fi, line or far away?
//!                                                    ├─> run: conductor ─> flows ─> finding
//!                                                    └─> clients: ndt7, LibreSpeed, …
//! ```
//!
//! The design, and the protocol of the page, are in `docs/design/web.md`.

mod assets;
mod both;
mod clients;
pub mod connection;
mod counters;
mod datagrams;
mod event;
mod families;
mod guard;
mod history;
mod id;
mod legs;
mod limits;
mod listener;
mod pages;
mod peer;
mod proxy;
mod query;
mod request;
mod router;
mod run;
mod server;
mod tls;
pub mod websocket;

pub use both::{BothEvent, serve_both};
pub use connection::Connection;
pub use event::{TransferDirection, WEB_EVENT_SCHEMA, WebEvent, WebLine};
pub use peer::{Origin, Peer, Scheme};
pub use request::{Tls, WebLimits, WebRequest};
pub use server::serve;

pub(crate) use server::Shared;
