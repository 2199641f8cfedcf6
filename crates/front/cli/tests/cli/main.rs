//! The command line, from outside: what it prints, and what it answers to
//! what is wrong. Nothing here needs privileges; the network is the loopback.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod bad_input;
mod boost;
mod calc;
mod captures;
mod conversation;
mod copy;
mod corpus;
mod doctor;
mod edge;
mod escapes;
mod figures;
mod formats;
mod hosts;
mod install;
mod iperf3;
mod large_files;
mod log_floods;
mod missing_features;
mod mistakes;
mod ordinary_traffic;
mod other_tools;
mod peer;
mod private;
mod program;
mod random_numbers;
mod results;
mod samples;
mod server;
mod speed_tests;
mod study;
mod tokens;
mod tools;
mod tune;
mod version;
mod watch;
