//! Programs that crash, hang, answer nonsense or leave something behind.

use crate::arrange::{misbehaving, misbehaving_at, run, start};
use host::clock;
use program_control::ControlProgram;
use std::path::Path;
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(100);

fn failure(program: ControlProgram) -> String {
    run(&[program]).unwrap_err().to_string()
}

pub(crate) fn modes() {
    for (mode, said) in [
        ("crash", "it ended (signal: 6 (SIGABRT)"),
        ("exit", "it ended (exit status: 0) instead of answering an acknowledgement at 0."),
        ("zero", "with a window of 0; it must be 1 to 4294967296"),
        ("absurd", "with a window of 1099511627777; it must be 1 to 4294967296"),
        ("garbage", "with flags 0xa5a5a5a5a5a5a5a5, of which 0xa5a5a5a5a5a5a5a0 are unknown"),
        ("twice", "more than once; answer each event once"),
    ] {
        let text = failure(misbehaving(mode));
        assert!(text.starts_with("congestion control 'misbehave' of flow 1: it "), "{text}");
        assert!(text.contains(said) && !text.contains('\n'), "{mode}: {text}");
    }
    let text = failure(misbehaving("crash"));
    assert!(text.ends_with("; it printed last: about to crash"), "{text}");
}

pub(crate) fn late() {
    for mode in ["hang", "unmap"] {
        let program = ControlProgram { answer_limit: SHORT, ..misbehaving(mode) };
        let text = failure(program);
        assert!(text.contains(": no answer to an acknowledgement at 0."), "{text}");
        assert!(text.contains(" within 100ms; every event needs one"), "{text}");
    }
    let program = ControlProgram { handshake_limit: SHORT, ..misbehaving_at("hang", 0) };
    let text = start(&program, 7).unwrap_err().to_string();
    let said = "congestion control 'misbehave' of flow 7: no answer to the start of the flow \
                within 100ms; every event needs one";
    assert_eq!(text, said);
}

pub(crate) fn version() {
    let text = start(&misbehaving("version"), 1).unwrap_err().to_string();
    assert!(
        text.contains("it speaks version 2 of longhaul_control.h, and this longhaul version 1")
    );
}

pub(crate) fn harmless() {
    let good = run(&[misbehaving_at("behave", u64::MAX)]).unwrap();
    assert!(good.read[0] > 700, "{} of 833 packets", good.read[0]);
    for (mode, event) in [("close", 100), ("chatter", 0), ("truncate", 0), ("ignore-stop", 0)] {
        let other = run(&[misbehaving_at(mode, event)]).unwrap();
        assert_eq!(other.truth, good.truth, "{mode}");
    }
}

pub(crate) fn left() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("child");
    let forking = |event| {
        let mut program = misbehaving_at("fork", event);
        program.arguments.push(file.clone().into());
        ControlProgram { answer_limit: SHORT, ..program }
    };
    run(&[forking(u64::MAX)]).unwrap();
    assert_ended(&file);
    let text = failure(forking(100));
    assert!(text.contains("no answer"), "{text}");
    assert_ended(&file);
    // Of a simulation that never began.
    drop(start(&forking(u64::MAX), 1).unwrap());
    assert_ended(&file);
}

/// The process whose number is in the file ends: it was killed.
fn assert_ended(file: &Path) {
    let number = std::fs::read_to_string(file).unwrap();
    let runs = || {
        // One that nobody waits for is a zombie: no address space, no files.
        let stat = std::fs::read_to_string(format!("/proc/{number}/stat"));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    };
    let since = clock::now();
    while runs() {
        assert!(since.elapsed() < Duration::from_secs(20), "process {number} still runs");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::fs::remove_file(file).unwrap();
}

pub(crate) fn others() {
    let good = misbehaving_at("behave", u64::MAX);
    let alone = run(std::slice::from_ref(&good)).unwrap();
    let beside = {
        let good = good.clone();
        std::thread::spawn(move || run(&[good]).unwrap())
    };
    let failed = run(&[good.clone(), misbehaving("crash"), good]).unwrap_err();
    assert_eq!((failed.connection, failed.name.as_str()), (1, "misbehave"));
    assert_eq!(beside.join().unwrap().truth, alone.truth);
}

pub(crate) fn no_controller() {
    let with = |path: &str, arguments: &[&str]| {
        let arguments = arguments.iter().map(Into::into).collect();
        ControlProgram { arguments, ..ControlProgram::new(path) }
    };
    let text = |program: &ControlProgram| start(program, 1).unwrap_err().to_string();
    let missing = "congestion control 'nowhere' of flow 1: cannot start it: No such file or \
                   directory (os error 2); name an executable file";
    assert_eq!(text(&with("/etc/nowhere", &[])), missing);
    assert!(text(&with("/etc/passwd", &[])).contains("Permission denied"));
    let ended = text(&with("sh", &["-c", "echo '\n usage: of a sort \n'; exit 3"]));
    let said = "it ended (exit status: 3) instead of answering the start of the flow; it printed \
                last: usage: of a sort";
    assert!(ended.ends_with(said), "{ended}");
    let silent = ControlProgram { handshake_limit: SHORT, ..with("sleep", &["1000"]) };
    assert!(text(&silent).contains("no answer to the start of the flow within 100ms"));
}
