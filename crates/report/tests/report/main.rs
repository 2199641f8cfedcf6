//! What comes out, as people see it: blocks at two widths, the page, and
//! whatever a damaged file may hold.
//!
//! `LONGHAUL_BLESS=1` writes the golden files anew instead of comparing.

mod degenerate;
mod page;
mod reading;
mod sheets;
mod synthetic;
mod terminal;
mod watching;
