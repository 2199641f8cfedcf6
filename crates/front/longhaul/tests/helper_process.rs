//! Labs through the helper process, from a process with threads: as a test, this program is its
//! own caller, and the helper as well.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use libtest_mimic::{Arguments, Trial};
use longhaul::capture::{CaptureEvent, CaptureRequest};
use longhaul::demo::{DemoEvent, DemoRequest, DemoRun};
use longhaul::lab::check::{LabCheckEvent, LabCheckRequest};
use longhaul::lab::running::{ExecRequest, SetRequest};
use longhaul::lab::{LabEvent, LabRequest};
use longhaul::study::{StudyEvent, StudyPlan, StudyRequest};
use longhaul::{Document, Event, Fault, Problem, Request, StopFlag};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The argument with which this program calls the library, and waits for its death.
const CALLER: &str = "--call-the-library";

const LINK: &str = "rate=100mbit,rtt=4ms";

/// Longest wait for anything.
const TIMEOUT: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    // Without it there is no helper; the first thing that is tested.
    let uninitialised = run(LabRequest::new(LINK, ["true"]), &mut |_| {}, &StopFlag::new());
    longhaul::init();
    let words: Vec<String> = std::env::args().collect();
    if let [_, first, seconds] = &words[..]
        && first == CALLER
    {
        let request = LabRequest::new(LINK, ["sleep", seconds]);
        let ended = run(request, &mut |event| println!("{event:?}"), &StopFlag::new());
        println!("ended: {ended:?}");
        return ExitCode::FAILURE;
    }
    let arguments = Arguments::from_args();
    let lab = arguments.list || {
        let probe = run(LabRequest::new(LINK, ["true"]), &mut |_| {}, &StopFlag::new());
        if let Err(problem) = &probe {
            eprintln!("no lab can be made here ({problem}): its tests are skipped");
        }
        probe.is_ok()
    };
    assert!(!stall_retry::required() || lab, "LONGHAUL_REQUIRE_PEERS=1 asks for a lab");
    let tests: [(&str, fn()); 11] = [
        ("output_and_exit_code_of_a_program", output_and_exit_code_of_a_program),
        ("a_program_on_a_host_of_a_running_lab", a_program_on_a_host_of_a_running_lab),
        ("a_path_is_checked", a_path_is_checked),
        ("a_demo_has_a_gain", a_demo_has_a_gain),
        ("a_stopped_study_resumes", a_stopped_study_resumes),
        ("a_capture_leaves_the_caller_its_privileges", a_capture_leaves_the_caller_its_privileges),
        ("several_labs_at_the_same_time", several_labs_at_the_same_time),
        ("a_raised_flag_ends_the_programs", a_raised_flag_ends_the_programs),
        ("a_killed_caller_leaves_nothing", a_killed_caller_leaves_nothing),
        ("a_caller_that_panics_leaves_nothing", a_caller_that_panics_leaves_nothing),
        ("the_example_sweeps_a_lab", the_example_sweeps_a_lab),
    ];
    let tests = tests.map(|(name, test)| stall_retry::trial(name, test).with_ignored_flag(!lab));
    let others = [
        Trial::test("init_is_asked_for", move || {
            let problem = uninitialised.as_ref().unwrap_err();
            assert_eq!(problem.fault, Fault::Internal);
            assert!(problem.message.contains("longhaul::init()"), "{problem}");
            Ok(())
        }),
        // Other tests have children that come and go.
        stall_retry::trial_alone("a_wrong_field_starts_nothing", || {
            let before = children();
            let problem = run(LabRequest::new("rate=", ["true"]), &mut |_| {}, &StopFlag::new());
            assert_eq!(problem.unwrap_err().remedy.unwrap().field, longhaul::Field::Link);
            assert_eq!(children(), before);
        }),
        stall_retry::trial("a_variable_of_somebody_else_is_ignored", || {
            let own = std::env::current_exe().unwrap();
            let mut command = Command::new(own);
            command.arg("--list").env("LONGHAUL_HELPER_SOCKET", "1");
            let output = command.output().unwrap();
            assert!(String::from_utf8_lossy(&output.stdout).contains("init_is_asked_for"));
        }),
    ];
    stall_retry::run(&arguments, tests.into_iter().chain(others).collect())
}

fn run(
    request: LabRequest,
    on_event: &mut dyn FnMut(LabEvent),
    stop: &StopFlag,
) -> Result<longhaul::lab::LabDocument, Problem> {
    let observe = &mut |event| match event {
        Event::Lab(event) => on_event(event),
        other => panic!("an event of another request: {other:?}"),
    };
    match longhaul::run(Request::Lab(request), observe, stop)? {
        Document::Lab(document) => Ok(document),
        other => panic!("a document of another request: {other:?}"),
    }
}

/// Processes whose command line contains a word.
fn processes(word: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap().map(Result::unwrap);
    let lines = entries.filter_map(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&line).replace('\0', " "))
    });
    lines.filter(|line| line.contains(word)).collect()
}

/// Child processes of this one.
fn children() -> Vec<String> {
    let own = std::process::id();
    let tasks = std::fs::read_dir(format!("/proc/{own}/task")).unwrap();
    tasks
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok())
        .flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

#[track_caller]
fn until(what: &str, holds: impl Fn() -> bool) {
    #[expect(clippy::disallowed_methods, reason = "a test waits on the system's clock")]
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < TIMEOUT, "not within {TIMEOUT:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Seconds that no other test sleeps, to find its process by.
fn unique_seconds() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("3{:09}.{number}", std::process::id())
}

fn output_and_exit_code_of_a_program() {
    let script = "echo $PPID of $LONGHAUL_HELPER_SOCKET, $KIND; ls -l /proc/self/fd | grep -c socket:; exit 3";
    let mut request = LabRequest::new(LINK, ["sh", "-c", script]);
    request.environment = vec![("KIND".to_owned(), "a test".to_owned())];
    let mut lines = Vec::new();
    let mut events = Vec::new();
    let document = run(
        request,
        &mut |event| match event {
            LabEvent::Line { line, .. } => lines.push(line),
            other => events.push(other),
        },
        &StopFlag::new(),
    );
    let document = document.unwrap();
    // Its parent is process 1 of the sandbox; the socket is not inherited.
    assert_eq!(lines[0], "1 of , a test");
    assert_eq!(lines[1..], ["0"], "{lines:?}");
    assert_eq!(document.programs[0].exit_code, Some(3));
    assert_eq!(document.programs[0].last_lines, lines);
    assert_eq!((document.schema.as_str(), document.links.len()), ("longhaul.lab/1", 1));
    assert!(document.links[0].path.asked.link.contains("100"), "{:?}", document.links[0]);
    assert!(matches!(events[0], LabEvent::Up { hosts: 2, links: 1, .. }), "{events:?}");
    assert!(events.iter().any(|event| matches!(event, LabEvent::Exited { code: 3, .. })));
}

/// While it runs, its link is changed as well.
fn a_program_on_a_host_of_a_running_lab() {
    let (name, stop) = (format!("helper-process-{}", std::process::id()), StopFlag::new());
    let mut request = LabRequest::new(LINK, ["sleep", "60"]);
    (request.name, request.changing) = (Some(name.clone()), true);
    let mut on_event = |event| {
        if !matches!(event, LabEvent::Begun) {
            return;
        }
        let ended = |request| longhaul::run(request, &mut |_| {}, &StopFlag::new()).unwrap();
        let (lab, host) = (Some(name.clone()), "server".to_owned());
        let command = ["sh", "-c", "echo a line for standard error; exit 7"].map(Into::into).into();
        let Document::LabExec(done) = ended(Request::LabExec(ExecRequest { lab, host, command }))
        else {
            panic!("another document")
        };
        assert_eq!((done.exit_code, done.on.as_str()), (7, "server"));
        let (lab, settings) = (Some(name.clone()), "loss=1%".to_owned());
        let Document::LabSet(set) =
            ended(Request::LabSet(SetRequest { lab, link: None, settings }))
        else {
            panic!("another document")
        };
        assert_eq!((set.link.as_str(), set.set.as_str()), ("path", "loss=1%"));
        stop.raise();
    };
    run(request, &mut on_event, &stop).unwrap();
}

fn a_path_is_checked() {
    let load = Duration::from_millis(300);
    let request = LabCheckRequest { load, ..LabCheckRequest::new("rate=10mbit,rtt=4ms") };
    let mut events = Vec::new();
    let mut on_event = |event| {
        let Event::LabCheck(event) = event else { panic!("another event: {event:?}") };
        events.push(event);
    };
    let document =
        longhaul::run(Request::LabCheck(request), &mut on_event, &StopFlag::new()).unwrap();
    let Document::LabCheck(report) = document else { panic!("another document") };
    assert_eq!(events, [LabCheckEvent::Idle, LabCheckEvent::Load { seconds: 0.3 }]);
    assert_eq!(report.rate_bps, Some("10mbit".parse().unwrap()));
    let idle = report.achieved.idle_rtt_ms.unwrap();
    assert!((3.9..8.0).contains(&idle), "{idle} ms");
}

fn a_demo_has_a_gain() {
    let request = DemoRequest {
        rate: "50mbit".parse().unwrap(),
        rtt: "50ms".parse().unwrap(),
        before_s: 2.0,
        after_s: 4.0,
        ..DemoRequest::default()
    };
    let mut begun = Vec::new();
    let mut on_event = |event| {
        if let Event::Demo(DemoEvent::Begins(run)) = event {
            begun.push(run);
        }
    };
    let document = longhaul::run(Request::Demo(request), &mut on_event, &StopFlag::new()).unwrap();
    let Document::Demo(report) = document else { panic!("another document") };
    assert_eq!(begun, [DemoRun::Before, DemoRun::After]);
    assert!(report.gain > 1.5 && !report.plan.is_empty(), "{report:?}");
}

/// Two cells: the flag is raised after the first, and the second one is measured later.
fn a_stopped_study_resumes() {
    let text = "question = \"Does it resume?\"\n[path]\nrate = \"10mbit\"\nrtt = \"4ms\"\n\
        [factors]\nstreams = [1, 2]\n[traffic]\nduration = \"500ms\"\n[repeats]\ncount = 1\n";
    let (name, file) = ("resumed".to_owned(), "resumed.toml".to_owned());
    let plan = StudyPlan::Text { name, file, text: text.to_owned() };
    let folder = tempfile::tempdir().unwrap();
    let request = StudyRequest { serial: true, ..StudyRequest::new(plan, folder.path()) };
    let measured = |stops: bool| {
        let (stop, mut runs) = (StopFlag::new(), Vec::new());
        let mut on_event = |event| {
            if let Event::Study(StudyEvent::Ended { run, .. }) = event {
                runs.push(run.cell);
                if stops {
                    stop.raise();
                }
            }
        };
        let ended = longhaul::run(Request::Study(request.clone()), &mut on_event, &stop);
        (ended, runs)
    };
    let (ended, runs) = measured(true);
    let problem = ended.unwrap_err();
    assert_eq!((problem.fault, runs.as_slice()), (Fault::Interrupted, &[0][..]), "{problem}");
    let (ended, runs) = measured(false);
    let Document::Study(report) = ended.unwrap() else { panic!("another document") };
    assert_eq!((report.done, runs.as_slice()), (2, &[1][..]));
    assert!(request.page().is_file());
}

/// Of this process, and of its threads.
fn privileges() -> Vec<String> {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let lines = status.lines().filter(|line| line.starts_with("Uid:") || line.starts_with("Cap"));
    lines.map(str::to_owned).collect()
}

fn a_capture_leaves_the_caller_its_privileges() {
    let (before, folder) = (privileges(), tempfile::tempdir().unwrap());
    let file = folder.path().join("lo.pcapng");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let request = CaptureRequest {
        filter: format!("udp port {}", address.port()),
        packets: Some(2),
        ..CaptureRequest::new("lo", &file)
    };
    let mut on_event = |event| {
        if let Event::Capture(CaptureEvent::Started { .. }) = event {
            for payload in [b"one", b"two"] {
                socket.send_to(payload, address).unwrap();
            }
        }
    };
    let document = longhaul::run(Request::Capture(request), &mut on_event, &StopFlag::new());
    match document {
        Ok(Document::Capture(document)) => assert_eq!(document.report.packets, 2),
        Err(problem) if problem.fault == Fault::Host => stall_retry::undecided(problem.message),
        other => panic!("{other:?}"),
    }
    assert!(std::fs::metadata(file).unwrap().len() > 100);
    assert_eq!(privileges(), before);
}

fn several_labs_at_the_same_time() {
    let threads = [0, 1, 2].map(|code| {
        std::thread::spawn(move || {
            let request = LabRequest::new(LINK, ["sh", "-c", &format!("exit {code}")]);
            run(request, &mut |_| {}, &StopFlag::new()).unwrap().programs[0].exit_code
        })
    });
    assert_eq!(threads.map(|thread| thread.join().unwrap()), [Some(0), Some(1), Some(2)]);
}

fn a_raised_flag_ends_the_programs() {
    let (seconds, stop) = (unique_seconds(), StopFlag::new());
    let mut on_event = |event| {
        if matches!(event, LabEvent::Started { .. }) {
            assert!(!processes(&seconds).is_empty(), "the program runs");
            stop.raise();
        }
    };
    let document = run(LabRequest::new(LINK, ["sleep", &seconds]), &mut on_event, &stop).unwrap();
    assert_eq!(document.programs[0].exit_code, Some(128 + 15), "ended by SIGTERM");
    assert_eq!(processes(&seconds), Vec::<String>::new());
}

fn a_killed_caller_leaves_nothing() {
    let seconds = unique_seconds();
    let sleeps = format!("sleep {seconds}");
    let mut caller = Command::new(std::env::current_exe().unwrap())
        .args([CALLER, &seconds])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    until("the program runs", || !processes(&sleeps).is_empty());
    caller.kill().unwrap();
    caller.wait().unwrap();
    until("nothing is left", || processes(&sleeps).is_empty());
}

fn a_caller_that_panics_leaves_nothing() {
    let seconds = unique_seconds();
    let sleeps = format!("sleep {seconds}");
    let request = LabRequest::new(LINK, ["sleep", &seconds]);
    let thread = std::thread::spawn(move || {
        run(
            request,
            &mut |event| {
                // Not with a message: it is expected.
                if matches!(event, LabEvent::Started { .. }) {
                    std::panic::resume_unwind(Box::new("as planned"));
                }
            },
            &StopFlag::new(),
        )
    });
    assert!(thread.join().is_err());
    until("nothing is left", || processes(&sleeps).is_empty());
}

/// The example that comes with the library; cargo builds it beside this test.
fn the_example_sweeps_a_lab() {
    let own = std::env::current_exe().unwrap();
    let example = own.parent().and_then(Path::parent).unwrap().join("examples/sweep_a_lab");
    let output = Command::new(example).args(["20mbit", "5ms", "40ms"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<Vec<&str>> =
        text.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
    let [short, long] = &rows[..] else {
        panic!("{text}{}", String::from_utf8_lossy(&output.stderr))
    };
    assert_eq!((short[0], long[0]), ("5ms", "40ms"));
    for row in [short, long] {
        let rate: f64 = row[1].parse().unwrap();
        assert!((10.0..20.0).contains(&rate), "{text}");
    }
}
