use super::*;

fn begun() -> Begun {
    let entry = |key: &str| Entry {
        key: key.to_owned(),
        before: "4096 131072 6291456".to_owned(),
        planned: "4096 131072 17825792".to_owned(),
    };
    Begun {
        schema: SCHEMA.to_owned(),
        version: "0.1.0".to_owned(),
        at_s: 1_700_000_000,
        identity: Identity {
            machine: "abc".to_owned(),
            hostname: "here".to_owned(),
            boot: "def".to_owned(),
            network: 4_026_531_840,
            network_cookie: None,
        },
        goal: "100 Mbit/s over 173 ms".to_owned(),
        routes: Vec::new(),
        entries: vec![entry("net.ipv4.tcp_rmem"), entry("net.ipv4.tcp_wmem")],
    }
}

fn text() -> String {
    let set = Line::Set { key: "net.ipv4.tcp_rmem".into(), now: "4096 131072 17825792".into() };
    [Line::Begun(begun()), set, Line::Ended].iter().map(|line| line.text().unwrap()).collect()
}

fn parse(text: &str) -> Result<Journal, JournalError> {
    Journal::parse(Path::new("000001.journal"), text.as_bytes())
}

#[test]
fn a_journal_round_trips() {
    let journal = parse(&text()).unwrap();
    assert_eq!(journal.begun, begun());
    assert_eq!(journal.set["net.ipv4.tcp_rmem"], "4096 131072 17825792");
    assert!(journal.ended);
}

#[test]
fn a_truncated_journal_is_a_prefix_or_refused() {
    let text = text();
    let first = text.find('\n').unwrap();
    for length in 0..text.len() {
        let cut = parse(&text[..length]);
        if length <= first {
            // Without a complete first line it is unusable.
            assert!(matches!(cut, Err(JournalError::Damaged { .. })), "{length}");
        } else {
            // A torn last line: the run was interrupted.
            let cut = cut.unwrap();
            assert!(!cut.ended && cut.begun == begun(), "{length}");
        }
    }
}

#[test]
fn a_changed_byte_is_detected() {
    let text = text();
    for index in 0..text.len() {
        let mut bytes = text.clone().into_bytes();
        bytes[index] ^= 1;
        let changed = Journal::parse(Path::new("x"), &bytes);
        // The last newline: the line before it then counts as torn.
        if index + 1 == text.len() {
            assert!(changed.is_ok_and(|journal| !journal.ended));
            continue;
        }
        assert!(changed.is_err(), "{index}: {:?}", char::from(text.as_bytes()[index]));
    }
}

#[test]
fn another_version_and_another_target_are_refused() {
    let later = Begun { schema: "longhaul.tune-journal/3".into(), ..begun() };
    let error = parse(&Line::Begun(later).text().unwrap()).unwrap_err();
    assert!(matches!(error, JournalError::Version { .. }), "{error}");
    let mut elsewhere = begun();
    elsewhere.entries[1].key = "kernel.core_pattern".into();
    let error = parse(&Line::Begun(elsewhere).text().unwrap()).unwrap_err();
    assert!(error.to_string().contains("'kernel.core_pattern'"), "{error}");
}

#[test]
fn a_journal_applies_only_to_its_host_and_namespace() {
    let journal = parse(&text()).unwrap();
    let here = begun().identity;
    assert!(journal.check(&here).is_ok());
    let other = Identity { machine: "xyz".into(), ..here.clone() };
    assert!(matches!(journal.check(&other), Err(JournalError::OtherHost { .. })));
    let other = Identity { network: 1, ..here.clone() };
    assert!(matches!(journal.check(&other), Err(JournalError::OtherNetwork { .. })));
    // After a reboot the namespace's number has no meaning.
    let later = Identity { network: 1, boot: "later".into(), ..here };
    assert!(journal.check(&later).is_ok() && journal.is_of_earlier_boot(&later));
}
