//! `longhaul boost far`: the box at the targets.

use super::run_box;
use super::settings::BoxArgs;
use crate::console::Console;
use crate::failure::Outcome;
use crate::host_port;
use clap::Args;
use longhaul::boost::{self, FarRequest};
use std::net::SocketAddr;
use std::ops::RangeInclusive;

/// Accept flows of near boxes and connect them to their targets
///
/// The far box decides where it connects. One that other hosts reach needs keys and a list of
/// targets. On SIGTERM no more lanes are accepted, and the box exits when its flows have ended.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct FarArgs {
    /// Address and port to listen on: PORT alone is on 127.0.0.1
    #[arg(long, short, value_name = "[ADDRESS:]PORT", value_parser = host::address::parse_listen)]
    #[arg(default_value_t = FarRequest::default().listen)]
    listen: SocketAddr,
    /// Target that near boxes may reach; repeatable
    ///
    /// HOST:PORT, or NETWORK/LENGTH:PORT such as 10.0.0.0/8:443. Names are resolved here, and
    /// each address is checked. Without --allow, a box on 127.0.0.1 connects to public addresses.
    #[arg(long, value_name = "HOST:PORT")]
    allow: Vec<String>,
    /// UDP ports for boost near --udt [default: any that is free]
    ///
    /// Each near box takes one. Open them in the firewall.
    #[arg(long, value_name = "FIRST-LAST", value_parser = host_port::ports)]
    #[arg(help_heading = "Between the boxes")]
    udt_ports: Option<RangeInclusive<u16>>,
    #[command(flatten)]
    common: BoxArgs,
}

const EXAMPLES: &str = "\
Examples:
  longhaul boost far --listen 0.0.0.0:7425 --key-file far.key --allow origin.example:80
  longhaul boost far -l [::]:7425 --key-file far.key --allow 10.2.0.0/16:22 -C bbr
  longhaul boost far -l 0.0.0.0:7425 --insecure --allow 10.2.0.2:5201";

pub(super) fn run(args: &FarArgs, console: &mut Console) -> Outcome {
    let request = FarRequest {
        listen: args.listen,
        allow: args.allow.clone(),
        udt_ports: args.udt_ports.clone(),
        settings: args.common.settings(),
    };
    request.check()?;
    run_box(args.common.json, console, |on_event, stop, drain| {
        boost::far(&request, on_event, stop, drain)
    })
}
