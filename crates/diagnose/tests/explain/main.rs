//! One synthetic measurement for each limit, pairs that lie on either side of
//! a threshold, and what no file should hold.

mod build;
mod clocks;
mod degenerate;
mod network;
mod remedies;
