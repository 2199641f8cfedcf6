//! One module for each verb of the command line.

pub(crate) mod agent;
pub(crate) mod baseline;
pub(crate) mod bdp;
pub(crate) mod boost;
pub(crate) mod calc;
pub(crate) mod capture;
pub(crate) mod copy;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod explain;
mod in_lab;
pub(crate) mod iperf2;
pub(crate) mod iperf3;
pub(crate) mod lab;
pub(crate) mod pcap;
pub(crate) mod ping;
mod probe_args;
pub(crate) mod server;
pub(crate) mod shell;
pub(crate) mod sim;
pub(crate) mod study;
pub(crate) mod test;
pub(crate) mod trace;
pub(crate) mod tune;
pub(crate) mod watch;
pub(crate) mod web;
