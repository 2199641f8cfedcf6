//! Programs of a plan that the simulator understands: iperf3 and longhaul's own.

use super::flow_group::{FlowGroup, MAX_FLOWS};
use control::Algorithm;
use std::time::Duration;

/// Length of a test without `-t`, s.
const DEFAULT_S: f64 = 10.0;

/// Characters that a shell gives a meaning of its own.
const SHELL: &[char] =
    &['|', '&', ';', '<', '>', '(', ')', '$', '`', '\\', '"', '\'', '*', '?', '#', '~'];

/// Flags of a client that have a value.
const WITH_VALUE: &[&str] = &[
    "-c",
    "--client",
    "-t",
    "--time",
    "-P",
    "--parallel",
    "-C",
    "--congestion",
    "-b",
    "--bitrate",
    "--fq-rate",
    "-w",
    "--window",
    "-n",
    "--bytes",
    "-p",
    "--port",
    "-i",
    "--interval",
    "--save",
    "--html",
];

/// A program's part in the traffic.
#[derive(Debug)]
pub(super) enum Program {
    /// It waits for others.
    Server,
    /// It sends to a host; `stop` of its flows counts from its start.
    Client { host: String, flows: FlowGroup },
}

/// Reads a command line; `congestion` is its host's.
///
/// # Errors
/// Why the simulator cannot run it: a clause.
pub(super) fn read(command: &str, congestion: &str) -> Result<Program, String> {
    if command.contains(SHELL) {
        return Err("it needs a shell".to_owned());
    }
    let words: Vec<&str> = command.split_whitespace().collect();
    match words.as_slice() {
        ["iperf3", rest @ ..] | ["longhaul", "iperf3", rest @ ..] if is_server(rest) => {
            Ok(Program::Server)
        }
        ["longhaul", "server", ..] => Ok(Program::Server),
        ["longhaul", "iperf3", rest @ ..] | ["iperf3", rest @ ..] => client(rest, congestion),
        ["longhaul", "test", rest @ ..] => client(rest, congestion),
        _ => Err("it is neither iperf3 nor longhaul test".to_owned()),
    }
}

fn is_server(words: &[&str]) -> bool {
    words.iter().any(|word| matches!(*word, "-s" | "--server"))
}

fn client(words: &[&str], congestion: &str) -> Result<Program, String> {
    let mut control = congestion.to_owned();
    let (mut host, mut seconds, mut count) = (None, Some(DEFAULT_S), 1u32);
    let mut flows = FlowGroup::bulk(Algorithm::default());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let (flag, attached) = word.split_once('=').map_or((*word, None), |(f, v)| (f, Some(v)));
        if !flag.starts_with('-') {
            host = Some((*word).to_owned());
            continue;
        }
        if matches!(flag, "-J" | "--json" | "-4" | "-6" | "--one-off") {
            continue;
        }
        if !WITH_VALUE.contains(&flag) {
            return Err(format!("the simulator does not have its flag {flag}"));
        }
        let value = attached.or_else(|| words.next().copied());
        let value = value.ok_or_else(|| format!("{flag} has no value"))?;
        let wrong = || format!("{flag} {value} is not valid");
        match flag {
            "-c" | "--client" => host = Some(value.to_owned()),
            "-t" | "--time" => seconds = Some(value.parse().map_err(|_| wrong())?),
            "-P" | "--parallel" => count = value.parse().map_err(|_| wrong())?,
            "-C" | "--congestion" => value.clone_into(&mut control),
            "-b" | "--bitrate" if value == "0" => flows.rate = None,
            "-b" | "--bitrate" => flows.rate = Some(value.parse().map_err(|_| wrong())?),
            "--fq-rate" => flows.pacing = Some(value.parse().map_err(|_| wrong())?),
            "-w" | "--window" => flows.window = Some(value.parse().map_err(|_| wrong())?),
            "-n" | "--bytes" => {
                (flows.bytes, seconds) = (Some(value.parse().map_err(|_| wrong())?), None);
            }
            // The others change nothing that is simulated.
            _ => {}
        }
    }
    let host = host.ok_or("it names no server")?;
    let Some(control) = Algorithm::by_name(&control) else {
        let names = Algorithm::ALL.map(Algorithm::name).join(", ");
        return Err(format!("its congestion control is {control}; the simulator has {names}"));
    };
    if !(1..=MAX_FLOWS).contains(&count) {
        return Err(format!("it has {count} connections; at most {MAX_FLOWS}"));
    }
    (flows.control, flows.count) = (Some(control.into()), count);
    flows.stop = match seconds.map(Duration::try_from_secs_f64) {
        None => None,
        Some(Ok(length)) if !length.is_zero() => Some(length),
        Some(_) => return Err("its time is not valid".to_owned()),
    };
    Ok(Program::Client { host, flows })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_iperf3_and_longhaul_take() {
        let Ok(Program::Client { host, flows }) =
            read("iperf3 -c b -n 10M -P 4 --congestion=bbr -w 64K --fq-rate 5M -J", "cubic")
        else {
            panic!("not a client")
        };
        assert_eq!((host.as_str(), flows.count, flows.control_name()), ("b", 4, "bbr"));
        assert_eq!((flows.bytes.unwrap().bytes(), flows.stop), (10 << 20, None));
        assert_eq!(flows.window.unwrap().bytes(), 65_536);
        assert!(matches!(read("longhaul server --one-off", "cubic"), Ok(Program::Server)));
        assert!(matches!(read("iperf3 -s -p 5202", "cubic"), Ok(Program::Server)));
    }

    #[test]
    fn says_why_a_program_cannot_run() {
        for (command, part) in [
            ("curl http://b/", "neither"),
            ("iperf3 -c b -u", "does not have its flag -u"),
            ("iperf3 -c b -R", "does not have its flag -R"),
            ("longhaul test b --udp", "does not have its flag --udp"),
            ("iperf3 -c b -t x", "-t x"),
            ("iperf3 -c b -t -1", "time"),
            ("iperf3 -t 5", "no server"),
            ("iperf3 -c b -C lola", "lola"),
            ("iperf3 -c b -P 2000", "at most"),
            ("iperf3 -c b -t", "no value"),
        ] {
            let why = read(command, "cubic").unwrap_err();
            assert!(why.contains(part), "{command}: {why}");
        }
    }
}
