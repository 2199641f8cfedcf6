//! What to do about a test's limit: a command, and where it runs.

use record::{
    Action, AlsoShows, Direction, Finding, Limit, NextCommand, Remedy, RemedyCommand, RemedyPlace,
    TestSpec,
};
use report::terminal::Fix;

/// The first remedy of the finding, or what there is to do without one.
#[must_use]
pub fn fix(finding: &Finding, spec: &TestSpec) -> Fix {
    if let Some(remedy) = finding.remedies.first() {
        return of_remedy(remedy, spec);
    }
    if finding.limit.is_some_and(Limit::is_saturated) {
        return Fix { text: "none: the bottleneck is saturated".to_owned(), command: None };
    }
    let next = finding.next.as_ref();
    Fix {
        text: next.map_or_else(|| "unknown".to_owned(), NextCommand::remark),
        command: next.map(|next| next.command.clone()),
    }
}

fn of_remedy(remedy: &Remedy, spec: &TestSpec) -> Fix {
    let expected = match remedy.expects_bps {
        Some(rate) => format!("; expected: {rate}"),
        None => String::new(),
    };
    let here = match remedy.place {
        RemedyPlace::Boxes => {
            let text = format!("with boxes on the path{expected}");
            return Fix { text, command: Some(remedy.command.to_string()) };
        }
        RemedyPlace::Call => None,
        RemedyPlace::Sender => Some(spec.direction != Direction::Reverse),
        RemedyPlace::Receiver => Some(spec.direction == Direction::Reverse),
    };
    let (place, command) = match here {
        None => ("in the options of the test", test_with(&remedy.command, spec)),
        Some(true) => ("on this host", format!("sudo {}", remedy.command)),
        Some(false) => ("on the server", format!("sudo {}", remedy.command)),
    };
    Fix { text: format!("{place}{expected}"), command: Some(command) }
}

/// The test with a remedy among its options.
fn test_with(remedy: &RemedyCommand, spec: &TestSpec) -> String {
    let with = spec.clone().with(remedy).unwrap_or_else(|| spec.clone());
    Action::Test(Box::new(with), AlsoShows::Nothing).command()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let without = test_with(&RemedyCommand::NoRateLimit, &spec(Direction::Forward));
        assert_eq!(without, "longhaul test '$(reboot)' -p 5202");
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
