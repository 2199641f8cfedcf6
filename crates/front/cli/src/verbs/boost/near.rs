//! `longhaul boost near`: the box at the applications.

use super::run_box;
use super::settings::BoxArgs;
use crate::console::{self, Console};
use crate::failure::{Failure, Outcome};
use clap::Args;
use host::sandbox::Ended;
use host::supervisor;
use longhaul::boost::{
    self, ConnectionCount, Forward, GatewayPorts, GatewaySettings, NearRequest, ProxySettings,
};
use std::net::SocketAddr;
use std::path::PathBuf;
use units::BitRate;

/// Accept connections of applications and carry them to the far box
///
/// Connections to the far box are used again, so a new flow starts with the congestion window of
/// the last one. A flow whose target refuses is reset. On SIGTERM no more connections are
/// accepted, and the box exits when its flows have ended; Ctrl-C resets them.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct NearArgs {
    /// Far box
    #[arg(long, value_name = "HOST[:PORT]")]
    far: String,
    /// Forward a local port to a target behind the far box; repeatable
    ///
    /// PORT alone is on 127.0.0.1; an IPv6 address is in brackets.
    #[arg(long, short = 'L', value_name = "[ADDRESS:]PORT:HOST:PORT")]
    #[arg(required_unless_present_any = ["proxy", "transparent"])]
    forward: Vec<Forward>,
    /// Listen for SOCKS5 and HTTP CONNECT; repeatable
    ///
    /// PORT alone is on 127.0.0.1; another address needs --token-file. Names are resolved at far
    /// (socks5h://). UDP ASSOCIATE and BIND are refused.
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = host::address::parse_listen)]
    proxy: Vec<SocketAddr>,
    /// Token that clients of --proxy give as the password
    #[arg(long, value_name = "FILE", requires = "proxy")]
    token_file: Option<PathBuf>,
    /// Boost what arrives at --interface: ports, or all
    ///
    /// Needs root, and this host as the gateway of the others. Ports need policy routing only, `all`
    /// needs nf_tables. A port of a service of this host, such as sshd's 22, cannot be named. A parent
    /// process removes the rules when the box ends; if that is killed, the next start removes them.
    #[arg(long, value_name = "PORT,…", requires = "interface")]
    transparent: Option<GatewayPorts>,
    /// Device of the hosts for --transparent
    #[arg(long, value_name = "DEVICE", requires = "transparent")]
    interface: Option<String>,
    /// Lanes (connections to the far box) to keep ready
    #[arg(long, value_name = "N", default_value_t = NearRequest::default().lanes)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1024))]
    #[arg(help_heading = "Between the boxes")]
    lanes: u32,
    /// Carry all flows over one session, resumed if connections break
    ///
    /// Without it, a flow is reset when its connection between the boxes breaks. Compression,
    /// encryption and relaying use one core.
    #[arg(long, help_heading = "Between the boxes")]
    mux: bool,
    /// Connections of --mux [default: auto: more if buffers are capped]
    ///
    /// 1 to 16. `auto` opens up to 8 where the kernel of a box grants less than --buffer.
    #[arg(long, value_name = "N", requires = "mux", help_heading = "Between the boxes")]
    connections: Option<ConnectionCount>,
    /// Carry it over UDT, if UDP reaches the far box
    ///
    /// With bbr (the default) or cubic of its own, to a port of far's --udt-ports. Where UDP does not
    /// arrive, TCP carries the flows, and UDP is tried again after ten minutes.
    #[arg(long, requires = "mux", help_heading = "Between the boxes")]
    udt: bool,
    /// Goodput without the boxes, for the time saved in boost status
    ///
    /// As boost plan or verify printed it. Without it, only round trips of slow start are counted.
    #[arg(long, value_name = "RATE", help_heading = "Output")]
    direct_rate: Option<BitRate>,
    #[command(flatten)]
    common: BoxArgs,
}

const EXAMPLES: &str = "\
Examples:
  longhaul boost near --far far.example --key-file near.key --forward 8080:origin.example:80
  longhaul boost near --far far.example --key-file near.key -L 2222:nas:22 -C bbr
  longhaul boost near --far far.example --key-file near.key --proxy 1080
  longhaul boost near --far far.example --key-file near.key --transparent all --interface eth1
  longhaul boost near --far 10.1.0.2 --insecure --lanes 16 -L 0.0.0.0:5201:10.2.0.2:5201";

pub(super) fn run(args: &NearArgs, console: &mut Console) -> Outcome {
    let request = NearRequest {
        far: args.far.clone(),
        forwards: args.forward.clone(),
        proxy: ProxySettings { listen: args.proxy.clone(), token_file: args.token_file.clone() },
        gateway: args
            .transparent
            .clone()
            .zip(args.interface.clone())
            .map(|(ports, interface)| GatewaySettings { interface, ports: ports.0 }),
        lanes: args.lanes,
        mux: args.mux,
        udt: args.udt,
        direct_rate: args.direct_rate,
        connections: args.connections.and_then(ConnectionCount::number),
        settings: args.common.settings(),
    };
    request.check()?;
    let mut serve = || {
        run_box(args.common.json, console, |on_event, stop, drain| {
            boost::near(&request, on_event, stop, drain)
        })
    };
    if request.gateway.is_some() { supervised(serve) } else { serve() }
}

/// Runs a gateway in a child process; however that ends, its rules are removed here, unless another
/// gateway runs by then.
fn supervised(serve: impl FnOnce() -> Outcome) -> Outcome {
    let work = || {
        serve().unwrap_or_else(|failure| {
            console::complain(&failure.to_string());
            failure.code
        })
    };
    let clean_up = || {
        if let Err(error) = boost::end_gateway() {
            console::complain(&format!("cannot remove the rules of routing: {error}"));
        }
    };
    match supervisor::run(work, clean_up).map_err(Failure::work)? {
        Ended::Code(code) => Ok(code),
        Ended::Signal(signal) => {
            Err(Failure::work(format!("the box was killed by signal {signal}")))
        }
    }
}
