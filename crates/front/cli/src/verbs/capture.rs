//! `longhaul capture`: packets of an interface into a file.

mod output;
mod summary;

use super::in_lab;
use super::probe_args::time;
use crate::console::{self, Console};
use crate::failure::{DONE, Failure, Outcome};
use crate::output_path::OutputPath;
use crate::stop;
use clap::{Args, ValueEnum};
use host::signals;
use longhaul::StopFlag;
use longhaul::capture::{
    self, CaptureEvent, CaptureFormat, CaptureRequest, DEFAULT_SNAPLEN, MAX_SNAPLEN, Output,
};
use output::Ring;
use report::terminal;
use std::time::Duration;
use units::ByteCount;

/// Capture packets to a file, headers only by default
///
/// Without IFACE, lists the interfaces with their addresses and traffic. Needs CAP_NET_RAW.
/// The socket and the files are opened first; then all privileges are dropped, and root
/// becomes the user who called sudo, or nobody. Files are created with that user's rights.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CaptureArgs {
    /// Interface, or any for all [default: list them]
    #[arg(value_name = "IFACE")]
    interface: Option<String>,
    /// Capture filter, in tcpdump's syntax
    ///
    /// [src|dst] host, net, port, portrange; ip, ip6, arp, rarp, tcp, udp, sctp, icmp, icmp6, igmp,
    /// proto; vlan, less, greater, inbound, outbound; and, or, not, parentheses.
    #[arg(value_name = "FILTER")]
    filter: Vec<String>,
    /// Output file, mode 0600; - for standard output
    #[arg(long, short, value_name = "FILE")]
    write: Option<OutputPath>,
    /// Bytes to keep of each packet; 0 for all
    ///
    /// The default keeps the headers up to and including all TCP options, even inside a VXLAN
    /// tunnel over IPv6.
    #[arg(long, short, value_name = "BYTES", default_value_t = DEFAULT_SNAPLEN)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=i64::from(MAX_SNAPLEN)))]
    snaplen: u32,
    /// Stop after N packets
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Stop after this time, in seconds or with a unit
    #[arg(long, short, value_name = "TIME", value_parser = time)]
    time: Option<Duration>,
    /// Rotate through FILES files of SIZE each: 10:100MB
    ///
    /// The files are FILE-1 to FILE-N. When the last one is full, the first one is overwritten.
    /// All of them are created at the start.
    #[arg(long, value_name = "FILES:SIZE", value_parser = Ring::parse)]
    ring: Option<Ring>,
    /// File format [default: by extension, else pcapng]
    ///
    /// pcap, the default for FILE.pcap, stores no drop statistics. Both formats have nanosecond
    /// timestamps.
    #[arg(long, value_enum, value_name = "FORMAT", hide_possible_values = true)]
    format: Option<Format>,
    /// Timestamps: software (the kernel's), hardware
    ///
    /// Hardware timestamps come from the adapter's own clock and cover received packets only;
    /// sent packets always have kernel timestamps.
    #[arg(long, value_enum, value_name = "SOURCE", hide_possible_values = true)]
    #[arg(default_value = "software")]
    timestamps: Timestamps,
    /// Memory for packets waiting to be written
    #[arg(long, short = 'B', value_name = "SIZE", default_value = "64MiB", value_parser = buffer)]
    buffer: ByteCount,
    /// Also receive packets addressed to other hosts
    #[arg(long)]
    promiscuous: bool,
    /// Print only errors
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,
    /// Print the result as JSON
    #[arg(long, short = 'J')]
    json: bool,
    /// Capture on a host of a running lab
    #[arg(long, value_name = "[LAB:]HOST")]
    in_lab: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  longhaul capture                                 list the interfaces
  sudo longhaul capture eth0 -w trace.pcapng       headers, until Ctrl-C
  sudo longhaul capture eth0 -w t.pcap -t 5 tcp port 5201
  sudo longhaul capture eth0 -w day.pcapng --ring 10:100MB 'not (port 22 or arp)'
  sudo longhaul capture any -s 0 -w - icmp | tshark -r -
  longhaul capture lab0 --in-lab client -w lab.pcapng -t 10
  longhaul pcap streams trace.pcapng               its TCP streams

Exit codes: 0 complete, 1 the disk is full or the interface was removed (the
file is complete up to that point), 2 usage error or missing privileges.";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// With interface names, statistics and directions
    Pcapng,
    /// For programs that cannot read pcapng
    Pcap,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Timestamps {
    /// Kernel timestamps
    Software,
    /// Adapter timestamps, for received packets only
    Hardware,
}

fn buffer(text: &str) -> Result<ByteCount, String> {
    let size: ByteCount = text.parse().map_err(|error: units::ParseError| error.to_string())?;
    let range = ByteCount::from_bytes(2 << 20)..=ByteCount::from_bytes(1 << 30);
    if range.contains(&size) { Ok(size) } else { Err("give 2MiB to 1GiB".to_owned()) }
}

pub(crate) fn run(args: &CaptureArgs, console: &mut Console) -> Outcome {
    if let Some(host) = &args.in_lab {
        return in_lab::run(&in_lab::find(host)?, &[]);
    }
    let Some(interface) = &args.interface else {
        return list(args.json, console);
    };
    let Some(write) = &args.write else {
        return Err(Failure::usage("give an output file: -w FILE, or -w - to write to a pipe"));
    };
    let is_pipe = write.as_os_str() == "-";
    if is_pipe && args.json {
        return Err(Failure::usage("--json and -w - both need standard output"));
    }
    let request = CaptureRequest {
        interface: interface.clone(),
        filter: args.filter.join(" "),
        snaplen: args.snaplen,
        buffer: args.buffer,
        hardware_timestamps: args.timestamps == Timestamps::Hardware,
        promiscuous: args.promiscuous,
        output: output::of(write, args.ring),
        format: args.format.map(|format| match format {
            Format::Pcapng => CaptureFormat::Pcapng,
            Format::Pcap => CaptureFormat::Pcap,
        }),
        packets: args.count,
        duration: args.time,
    };
    if let Some(note) = permission_note(args, interface, capture::may_need_permission) {
        console.say(&note);
    }
    // Until the capture can be ended in good order, signals wait.
    signals::block();
    let stop = StopFlag::new();
    let mut on_event = |event: CaptureEvent| match event {
        CaptureEvent::Started { snaplen, buffer } => {
            // Its thread starts without privileges.
            stop::raise_on_signals(&stop);
            if !args.quiet {
                console.say(&introduction(&request, snaplen, buffer));
            }
        }
        CaptureEvent::Progress(_) if args.quiet => {}
        CaptureEvent::Progress(progress) => console.live(&summary::line(&progress)),
        CaptureEvent::Down => {
            console.say(&format!("{interface} is down; its packets are captured once it is up"));
        }
    };
    let captured = if is_pipe {
        let output = Output::Pipe(output::pipe(args.ring)?);
        capture::run_to(&request, output, &mut on_event, &stop)
    } else {
        capture::run(&request, &mut on_event, &stop)
    };
    console.clear();
    let document = captured?;
    if args.json {
        console.print(&console::json(&document)?);
    } else if !args.quiet {
        console.say(&summary::result(&document.report));
    }
    document.problem.map_or(Ok(DONE), |problem| Err(problem.into()))
}

/// What to say before packets are captured that may be other people's.
fn permission_note(
    args: &CaptureArgs,
    interface: &str,
    may_need_permission: impl FnOnce(&str) -> bool,
) -> Option<String> {
    let is_wanted = !args.json && !args.quiet && may_need_permission(interface);
    let where_to = if interface == "any" { "an interface" } else { interface };
    is_wanted.then(|| {
        format!(
            "note: the default route leads through {where_to}, so the capture may contain other \
             people's traffic; capture only where you are authorized to"
        )
    })
}

/// The interfaces that can be captured on, and their traffic.
fn list(json: bool, console: &mut Console) -> Outcome {
    console.live("measuring traffic for 1 s");
    let interfaces = capture::interfaces();
    console.clear();
    let interfaces = interfaces?;
    let text = if json {
        console::json(&interfaces)?
    } else {
        terminal::interfaces(&interfaces, &console.out)
            + "\nto capture one of them, or any for all: longhaul capture IFACE -w FILE\n"
    };
    console.print(&text);
    Ok(DONE)
}

fn introduction(request: &CaptureRequest, snaplen: u32, buffer: ByteCount) -> String {
    let kept = match snaplen {
        MAX_SNAPLEN => "whole packets".to_owned(),
        bytes => format!("{bytes} bytes of each packet"),
    };
    let timestamps = if request.hardware_timestamps {
        "adapter timestamps of received packets"
    } else {
        "software timestamps"
    };
    let interface = &request.interface;
    format!("capturing on {interface}: {kept}, {timestamps}, buffer {buffer}; Ctrl-C ends")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: CaptureArgs,
    }

    fn note(words: &str, may_need_permission: bool) -> Option<String> {
        let args = Command::parse_from(words.split_whitespace()).args;
        let interface = args.interface.clone().unwrap();
        permission_note(&args, &interface, |asked| {
            assert_eq!(asked, interface);
            may_need_permission
        })
    }

    #[test]
    fn the_note_on_permission_is_for_people_and_only_where_it_applies() {
        let said = note("capture eth0 -w a.pcap", true).unwrap();
        assert!(said.contains("through eth0") && said.contains("authorized"), "{said}");
        assert!(note("capture any -w -", true).unwrap().contains("an interface"));
        assert_eq!(note("capture eth0 -w a.pcap", false), None);
        assert_eq!(note("capture eth0 -w a.pcap --json", true), None);
        assert_eq!(note("capture eth0 -w a.pcap --quiet", true), None);
    }
}
