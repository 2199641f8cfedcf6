//! Linux: `TCP_INFO`, namespaces, TUN devices, netlink, sysctl, signals, the
//! clock. All of Longhaul's `unsafe` is in this crate.
//!
//! Each function is one operation of the system with precise errors, independent
//! of what it is used for.
#![expect(unsafe_code, reason = "the only crate with system calls that no safe library wraps")]

pub mod address;
pub mod address_key;
pub mod background;
pub mod bulk;
pub mod calendar;
pub mod capture_file;
pub mod clock;
pub mod confined;
pub mod control;
pub mod cpu;
pub mod directory;
pub mod disk;
pub mod ethtool;
pub mod facts;
pub mod file;
mod frame_ring;
pub mod fuzz;
pub mod handshake;
pub mod identity;
pub mod interfaces;
pub mod join;
pub mod kernel_route;
pub mod limits;
mod link_layer;
pub mod listener_congestion;
pub mod lock;
pub mod log_limit;
pub mod memory;
pub mod names;
pub mod nat;
pub mod netlink;
mod netlink_message;
pub mod netns;
mod nfnetlink;
pub mod output_file;
pub mod packet_info;
pub mod packet_queue;
pub mod packet_sender;
pub mod packet_socket;
pub mod pid_file;
pub mod privileges;
pub mod program;
pub mod queue_rules;
pub mod random;
pub mod recvmsg;
pub mod reexec;
pub mod remedy;
pub mod resolve;
pub mod route_table;
pub mod sandbox;
pub mod seccomp;
pub mod signals;
pub mod slice;
pub mod slow_disk;
pub mod sock_diag;
pub mod socket;
pub mod stop;
mod sys;
pub mod sysctl;
pub mod tcp_info;
pub mod terminal;
pub mod train_sizes;
pub mod transmit_times;
pub mod tun;
pub mod udp;
pub mod veth;
pub mod wait;
pub mod wifi;
