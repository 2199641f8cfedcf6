//! Linux, and all of Longhaul's `unsafe`: sockets' own facts, namespaces, TUN
//! devices, sysctls, privileges, the clock.
//!
//! Every function here is one operation of the system with its error spelled
//! out; nothing here knows what it is used for.
#![expect(unsafe_code, reason = "this is the one room for system calls that no safe library wraps")]

pub mod background;
pub mod bulk;
pub mod calendar;
pub mod clock;
pub mod control;
pub mod cpu;
pub mod disk;
pub mod ethtool;
pub mod handshake;
pub mod identity;
pub mod join;
pub mod limits;
pub mod memory;
pub mod names;
pub mod nat;
pub mod netlink;
pub mod netns;
pub mod program;
pub mod random;
pub mod signals;
pub mod slice;
pub mod sock_diag;
pub mod socket;
pub mod stamps;
mod sys;
pub mod sysctl;
pub mod tcp_info;
pub mod terminal;
pub mod tun;
pub mod udp;
pub mod wait;
pub mod wifi;
pub mod world;
