//! `longhaul copy`: copies files to or from another host.

use crate::console::Console;
use crate::failure::{DONE, FAILED, Failure, Outcome};
use crate::{console, stop, token};
use ::copy::{MAX_TARGET, MIN_TARGET};
use clap::{Args, ValueEnum};
use control::Algorithm;
use host::clock;
use longhaul::copy::{self, Choice, CopyEnd, CopyEvent, CopyRequest, Notice, PORT, Transport};
use report::untrusted;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use units::BitRate;

/// Copy files to or from another host, verified and resumable
///
/// Either SRC or DST is HOST:PATH, as with scp. The far end is started over ssh, so longhaul
/// must be in the search path there; with --token-file, it is a running "longhaul server
/// --root". Directories are copied recursively, with permissions, times, symbolic links and
/// holes. The data goes over UDT (encrypted, UDP), or over parallel TCP connections with TLS
/// where UDP is blocked. Each file's BLAKE3 hash is verified before the file gets its final
/// name. To continue an interrupted copy, repeat the command.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CopyArgs {
    /// Files or directories to copy, or HOST:PATH with wildcards
    #[arg(value_name = "SRC", required = true)]
    sources: Vec<OsString>,
    /// Destination directory or name: PATH or HOST:PATH
    #[arg(value_name = "DST")]
    destination: OsString,
    /// Transport [default: udt, or tcp where UDP is blocked]
    #[arg(long, value_enum, value_name = "NAME", hide_possible_values = true)]
    #[arg(help = "Transport: auto, udt, tcp", default_value = "auto")]
    transport: TransportName,
    /// Parallel TCP connections
    #[arg(long, short = 'P', value_name = "N", default_value_t = 8)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=64))]
    streams: u32,
    /// Congestion control of UDT: bbr, cubic, reno
    #[arg(long, short = 'C', value_name = "NAME", default_value = "bbr", value_parser = algorithm)]
    #[arg(visible_alias = "cc")]
    congestion: String,
    /// Maximum rate of file data: 100mbit
    #[arg(long, value_name = "RATE")]
    limit: Option<BitRate>,
    /// Send at RATE despite losses; unfair to others
    ///
    /// For a path whose capacity is reserved or otherwise unused. Without --target, the copy
    /// shares a bottleneck with other traffic. If more than half the packets are lost, the rate
    /// falls to what the path delivers. Over TCP, RATE is only a limit.
    #[arg(long, value_name = "RATE", conflicts_with_all = ["limit", "congestion"])]
    #[arg(value_parser = target)]
    target: Option<BitRate>,
    /// Connect to longhaul server --root with the token in FILE
    ///
    /// "-" reads the token from standard input. Both ends derive their keys from it.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Port of the running server
    #[arg(long, short, value_name = "PORT", default_value_t = PORT)]
    port: u16,
    /// ssh command, with its options
    #[arg(long, value_name = "COMMAND", default_value = "ssh")]
    ssh: String,
    /// Program to run on the other host
    #[arg(long, value_name = "PROGRAM", default_value = "longhaul")]
    far_program: String,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Print errors only
    #[arg(long, short)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  longhaul copy data.tar HOST:backup/
  longhaul copy HOST:results .
  longhaul copy 'HOST:logs/*.gz' logs/
  longhaul copy --ssh 'ssh -p 2222' results user@HOST:
  longhaul copy --limit 200mbit --json images HOST:/srv
  longhaul copy --target 900mbit data.tar HOST:
  longhaul copy --token-file token.txt data.tar HOST:incoming/";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TransportName {
    Auto,
    Udt,
    Tcp,
}

fn algorithm(text: &str) -> Result<String, String> {
    let known = Algorithm::for_native(text).map(|_| text.to_owned());
    known.ok_or_else(|| "use bbr, cubic or reno".to_owned())
}

fn target(text: &str) -> Result<BitRate, String> {
    let rate: BitRate = text.parse().map_err(|error: units::ParseError| error.to_string())?;
    let valid = (MIN_TARGET..=MAX_TARGET).contains(&rate);
    valid.then_some(rate).ok_or_else(|| format!("give a rate from {MIN_TARGET} to {MAX_TARGET}"))
}

pub(crate) fn run(args: &CopyArgs, console: &mut Console) -> Outcome {
    let request = request(args, console)?;
    let stop = stop::on_signals();
    let mut transport = None;
    let mut line = copy::ProgressLine::new(clock::now());
    let mut on_event = |event| match event {
        CopyEvent::Notice(notice) => say(args, notice, &mut transport, console),
        CopyEvent::Progress(figures) => {
            let text = line.next(clock::now(), &figures, console.err.width);
            if let Some(text) = text.filter(|_| !args.quiet) {
                console.live(&text);
            }
        }
        CopyEvent::NotCopied(problem) => {
            console.clear();
            console.say(&untrusted::line(&format!("not copied: {problem}"), false));
        }
    };
    let result = copy::run(&request, &mut on_event, &stop);
    console.clear();
    let document = result?;
    if args.json {
        console.print(&console::json(&document)?);
    } else if !args.quiet {
        let limit = request.limit.map(|limit| format!("--limit {limit}"));
        console.print(&copy::text(&document, limit.as_deref()));
    }
    Ok(if document.failed == 0 { DONE } else { FAILED })
}

/// Says which transport was chosen, and why, where that is not the usual one.
fn say(args: &CopyArgs, notice: Notice, before: &mut Option<Transport>, console: &mut Console) {
    let is_auto = args.transport == TransportName::Auto;
    let text = match notice {
        Notice::Connected(now) => {
            let is_new = before.replace(now) != Some(now);
            if now != Transport::Tcp || !is_new || !is_auto {
                return;
            }
            let limit = args.target.map_or("", |_| "; --target is only a limit there");
            format!("UDP is blocked: copying over TCP with TLS{limit}")
        }
        Notice::SmallerPackets(mtu) => {
            let range = match mtu.drops {
                Some(drops) => format!("from {} to {}", mtu.carries, drops.saturating_sub(1)),
                None => format!("{} or more", mtu.carries),
            };
            format!(
                "full-size packets vanish on the path without an ICMP message: its MTU is {range} \
                 bytes; copying in smaller packets"
            )
        }
        Notice::TryingTcp { loss } => {
            let loss = units::percent(loss);
            format!("UDP loses {loss} of its packets and may be policed: trying TCP with TLS")
        }
        Notice::TriedTcp { udt, tcp, kept } => {
            *before = Some(kept);
            let kept = match kept {
                Transport::UdtNative => "UDT",
                Transport::Tcp => "TCP",
            };
            format!("UDT carried {udt}, TCP carried {tcp}: continuing over {kept}")
        }
    };
    if !args.quiet {
        console.say(&text);
    }
}

fn request(args: &CopyArgs, console: &mut Console) -> Result<CopyRequest, Failure> {
    let sources = args.sources.iter().map(end).collect::<Result<Vec<_>, _>>()?;
    Ok(CopyRequest {
        sources,
        destination: end(&args.destination)?,
        token: args.token_file.as_deref().map(|file| token::of_file(file, console)).transpose()?,
        port: args.port,
        ssh: args.ssh.split_whitespace().map(str::to_owned).collect(),
        far_program: args.far_program.clone(),
        transport: match args.transport {
            TransportName::Auto => Choice::Auto,
            TransportName::Udt => Choice::Only(Transport::UdtNative),
            TransportName::Tcp => Choice::Only(Transport::Tcp),
        },
        streams: args.streams,
        congestion: args.congestion.clone(),
        limit: args.limit,
        target: args.target,
    })
}

/// As for scp: a colon before any slash ends a host, which may be an IPv6 address in
/// brackets.
fn end(text: &OsString) -> Result<CopyEnd, Failure> {
    let bytes = text.as_bytes();
    if bytes.is_empty() {
        return Err(Failure::usage("a path is empty; use . for the current directory"));
    }
    let colon = match bytes.iter().position(|byte| *byte == b'[') {
        Some(bracket) if !bytes[..bracket].contains(&b'/') && !bytes[..bracket].contains(&b':') => {
            bytes.windows(2).position(|pair| pair == b"]:").map(|at| at + 1)
        }
        _ => bytes.iter().position(|byte| matches!(byte, b':' | b'/')),
    };
    let Some(colon) = colon.filter(|at| bytes[*at] == b':') else {
        return Ok(CopyEnd::Local(text.into()));
    };
    let host = std::str::from_utf8(&bytes[..colon])
        .map_err(|_| Failure::usage("the host name is not UTF-8"))?;
    let host = host.replace(['[', ']'], "");
    remote::check_host(&host).map_err(|error| {
        Failure::usage(format!("{host}: {error}; for a file name with a colon, use ./FILE"))
    })?;
    Ok(CopyEnd::Remote { host, path: OsStr::from_bytes(&bytes[colon + 1..]).into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_end_with_a_colon_as_for_scp() {
        let parsed = |text: &str| end(&OsString::from(text)).unwrap();
        let remote =
            |host: &str, path: &str| CopyEnd::Remote { host: host.into(), path: path.into() };
        assert_eq!(parsed("host:a/b"), remote("host", "a/b"));
        assert_eq!(parsed("user@host:"), remote("user@host", ""));
        assert_eq!(parsed("[2001:db8::1]:/x"), remote("2001:db8::1", "/x"));
        assert_eq!(parsed("user@[::1]:x"), remote("user@::1", "x"));
        for local in ["a", "./a:b", "/a:b", "a/b:c", "a[1]", "./[x]:y"] {
            assert_eq!(parsed(local), CopyEnd::Local(local.into()), "{local}");
        }
        for wrong in ["", ":x", "-oX:y", "a b:c"] {
            assert!(end(&OsString::from(wrong)).is_err(), "{wrong}");
        }
    }
}
