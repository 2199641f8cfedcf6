//! `--brief`: the result on one screen, with the fix as a command where the finding has a remedy.

use super::TestArgs;
use crate::console::Console;
use crate::failure::Code;
use crate::test_report::{self, Added};
use record::{Direction, Finding, Limit, Measurement, Remedy, RemedyPlace, TestSpec};
use report::terminal::{self, Fix};

/// Says what runs, as there are no interval reports.
pub(super) fn announce(args: &TestArgs, console: &mut Console) {
    if args.modes.brief {
        console.live(&format!("Measuring throughput and RTT to {}", args.host));
    }
}

/// Prints the result of a test.
pub(super) fn print(
    console: &mut Console,
    m: &Measurement,
    added: &Added<'_>,
    notes: &[String],
) -> Code {
    let finding = diagnose::explain(m);
    let fix = fix(&finding, &m.spec);
    let compared = added.comparison.map(|found| found.sentence.clone());
    let notes: Vec<String> = compared.into_iter().chain(notes.iter().cloned()).collect();
    console.print(&terminal::brief(m, &finding, &fix, &notes, &console.out));
    test_report::code(m)
}

/// The first remedy of the finding, or what there is to do without one.
fn fix(finding: &Finding, spec: &TestSpec) -> Fix {
    if let Some(remedy) = finding.remedies.first() {
        return of_remedy(remedy, spec);
    }
    match finding.limit {
        None | Some(Limit::Unknown) => Fix {
            text: "not known; the test that decides between causes:".to_owned(),
            command: Some(format!("longhaul test {} --decide", server(spec))),
        },
        Some(limit) if limit.is_saturated() => {
            Fix { text: "none: the bottleneck is saturated".to_owned(), command: None }
        }
        Some(_) => Fix {
            text: "none that a setting makes; all that was measured:".to_owned(),
            command: Some(format!("longhaul test {} --latency", server(spec))),
        },
    }
}

fn of_remedy(remedy: &Remedy, spec: &TestSpec) -> Fix {
    let here = match remedy.place {
        RemedyPlace::Call => None,
        RemedyPlace::Sender => Some(spec.direction != Direction::Reverse),
        RemedyPlace::Receiver => Some(spec.direction == Direction::Reverse),
    };
    let (place, command) = match here {
        None => {
            let test = format!("longhaul test {} {}", server(spec), remedy.command);
            ("in the options of the test", test)
        }
        Some(true) => ("on this host", format!("sudo {}", remedy.command)),
        Some(false) => ("on the server", format!("sudo {}", remedy.command)),
    };
    let expected = match remedy.expects_bps {
        Some(rate) => format!("; expected: {rate}"),
        None => String::new(),
    };
    Fix { text: format!("{place}{expected}"), command: Some(command) }
}

/// The server, its port and the direction, as options of a test.
fn server(spec: &TestSpec) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-:%".contains(c);
    let target = match spec.target.as_str() {
        target if !target.is_empty() && target.chars().all(is_plain) => target.to_owned(),
        other => format!("'{}'", other.replace('\'', "'\\''")),
    };
    let port = if spec.port == 5201 { String::new() } else { format!(" -p {}", spec.port) };
    let reverse = if spec.direction == Direction::Reverse { " -R" } else { "" };
    format!("{target}{port}{reverse}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::RemedyCommand;

    #[test]
    fn a_remedy_is_a_command_for_the_place_it_is_for() {
        let spec = |direction| TestSpec {
            target: "$(reboot)".to_owned(),
            port: 5202,
            direction,
            ..TestSpec::default()
        };
        let remedy = |place, command| Remedy {
            place,
            command,
            setting: None,
            expects_bps: None,
            why: String::new(),
        };
        let bbr = remedy(RemedyPlace::Call, RemedyCommand::CongestionControl("bbr".to_owned()));
        let found = of_remedy(&bbr, &spec(Direction::Reverse));
        let command = "longhaul test '$(reboot)' -p 5202 -R -C bbr";
        assert_eq!(found.command.as_deref(), Some(command));
        let key = "net.ipv4.tcp_rmem".to_owned();
        let sysctl = RemedyCommand::Sysctl { key, value: "1 2 3".to_owned() };
        for (place, direction, text) in [
            (RemedyPlace::Sender, Direction::Forward, "on this host"),
            (RemedyPlace::Receiver, Direction::Forward, "on the server"),
            (RemedyPlace::Sender, Direction::Reverse, "on the server"),
            (RemedyPlace::Receiver, Direction::Reverse, "on this host"),
        ] {
            let found = of_remedy(&remedy(place, sysctl.clone()), &spec(direction));
            assert_eq!(found.text, text);
            assert_eq!(
                found.command.as_deref(),
                Some("sudo sysctl -w net.ipv4.tcp_rmem=\"1 2 3\"")
            );
        }
    }
}
