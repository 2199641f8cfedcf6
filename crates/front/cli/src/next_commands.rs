//! The command that each finding ends with: there is one for every limit, and for every finding
//! on the files that are kept for tests, and the program accepts it.

use crate::documented::{check, simple_commands};
use record::{
    CapturePoint, Decided, Direction, Finding, Limit, Measurement, PathReport, Protocol, Remedy,
    RemedyCommand, RemedyPlace, RequestedPath, Stream, TestSpec,
};
use std::path::Path;
use units::{BitRate, ByteCount, Rtt};

/// Fails unless the finding ends with a command line that the program accepts.
fn accepted(finding: &Finding) {
    let next = finding.next.as_ref().expect("a command");
    let commands = simple_commands(&next.to_string());
    assert_eq!(commands.len(), 1, "{next}");
    let mut wrong = Vec::new();
    let count = commands.iter().map(|words| check(words, &mut wrong)).sum::<usize>();
    assert!(wrong.is_empty() && count > 0, "{next}: {wrong:#?}");
}

/// The finding with another limit, and its command.
fn with_limit(m: &Measurement, limit: Option<Limit>, remedy: Option<RemedyCommand>) -> Finding {
    let why = String::new();
    let remedies = remedy.map(|command| Remedy {
        place: RemedyPlace::Call,
        command,
        setting: None,
        expects_bps: None,
        why,
    });
    let finding = Finding {
        limit,
        remedies: Vec::from_iter(remedies),
        throughput_bps: m.spec.rate_bps.unwrap_or(BitRate::from_bps(94_123_456)),
        min_rtt: Some(Rtt::from_micros(12_345)),
        ..diagnose::explain(m)
    };
    Finding { next: Some(diagnose::next_command(&finding, m, None)), ..finding }
}

/// Tests of each kind, of others' programs, and with names from a hostile file.
fn measurements() -> Vec<Measurement> {
    let kept = kept_files();
    let first = kept.first().expect("a kept file");
    let mut plain = Measurement { tool: None, ..first.clone() };
    plain.spec = TestSpec { target: "a.example".to_owned(), seconds: 10.0, ..TestSpec::default() };
    let changed = |change: fn(&mut Measurement)| {
        let mut m = plain.clone();
        change(&mut m);
        m
    };
    vec![
        plain.clone(),
        changed(|m| m.spec.direction = Direction::Reverse),
        changed(|m| m.spec.direction = Direction::Both),
        changed(|m| m.spec.protocol = Protocol::Udp),
        changed(|m| (m.spec.protocol, m.spec.native) = (Protocol::Udt, true)),
        changed(|m| m.spec.target = "--json".to_owned()),
        changed(|m| m.spec.target = "$(reboot); 'x'\n# ".to_owned()),
        changed(|m| m.spec.target = String::new()),
        changed(|m| (m.spec.streams, m.spec.port) = (1000, 65_535)),
        changed(|m| m.spec.congestion = Some("-x y".to_owned())),
        changed(|m| m.spec.seconds = f64::NAN),
        changed(|m| m.spec.seconds = 1e300),
        changed(|m| m.spec.window_bytes = Some(ByteCount::from_bytes(u64::MAX >> 10))),
        changed(|m| m.spec.rate_bps = Some(BitRate::from_bps(u64::MAX))),
        changed(|m| m.streams = vec![Stream { watched: true, ..Stream::default() }]),
        changed(|m| {
            let captured = Some(CapturePoint::Between);
            m.streams = vec![Stream { captured, ..Stream::default() }];
        }),
        changed(|m| {
            let link = "geo,loss=1%".to_owned();
            let asked = RequestedPath { link, ..RequestedPath::default() };
            m.path = Some(PathReport { asked, ..PathReport::default() });
        }),
        changed(|m| {
            m.spec.seconds = 60.0;
            m.decided = Some(Decided {
                between: Vec::new(),
                options: None,
                throughput_bps: None,
                limit: None,
                sentence: String::new(),
            });
        }),
    ]
}

/// The measurements of other programs' results that are kept for tests.
fn kept_files() -> Vec<Measurement> {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../explain/tool-results/tests/files");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let read = |path: &std::path::PathBuf| tool_results::read(&std::fs::read(path).unwrap()).ok();
    files.iter().filter_map(read).flatten().collect()
}

#[test]
fn every_limit_ends_with_a_command_that_the_program_accepts() {
    for m in measurements() {
        for limit in Limit::ALL.map(Some).into_iter().chain([None]) {
            accepted(&with_limit(&m, limit, None));
        }
        for text in ["-C bbr", "-w 9M", "-w 256K", "-P 8", "-t 40", "-b 47500kbit", "no -b", "x"] {
            accepted(&with_limit(&m, Some(Limit::Loss), Some(text.to_owned().into())));
        }
    }
}

#[test]
fn findings_on_kept_files_end_with_a_command() {
    let all = kept_files();
    assert!(all.len() > 20, "{}", all.len());
    for m in all {
        let finding = diagnose::explain(&m);
        accepted(&finding);
        let command = &finding.next.as_ref().unwrap().command;
        assert_eq!(command.contains("HOST"), m.spec.target.is_empty() && command.contains("HOST"));
        let is_unknown = finding.limit.is_none_or(|limit| limit == Limit::Unknown);
        if is_unknown && m.spec.protocol == Protocol::Tcp && m.spec.direction != Direction::Both {
            assert!(command.ends_with("--decide"), "{command}");
        }
    }
}
