//! Programs built, and a path to run them over.

use control::CongestionControl;
use link::{Limit, LinkConfig, Queue, Rate};
use program_control::{ControlProgram, FlowParameters, ProgramController, StartError};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use twin::{ConnectionConfig, ControllerFailed, Outcome, Scenario};
use units::{BitRate, ByteCount};

pub(crate) const MSS: u32 = 1448;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// Builds a program with the header, once, below the target folder.
pub(crate) fn built(source: &Path) -> PathBuf {
    static BUILT: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let program = folder.join(source.file_stem().unwrap());
    if built.contains(&program) {
        return program;
    }
    // Under a name of its own first: another process may run the one of before.
    let fresh = program.with_extension(std::process::id().to_string());
    let output = Command::new("cc")
        .args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(root().join("include"))
        .arg("-o")
        .arg(&fresh)
        .arg(source)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::rename(fresh, &program).unwrap();
    built.push(program.clone());
    program
}

/// The program that misbehaves in a way, at its 100th event.
pub(crate) fn misbehaving(mode: &str) -> ControlProgram {
    misbehaving_at(mode, 100)
}

pub(crate) fn misbehaving_at(mode: &str, event: u64) -> ControlProgram {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/misbehave.c");
    let arguments = vec![mode.into(), event.to_string().into()];
    ControlProgram { arguments, ..ControlProgram::new(built(&source)) }
}

/// 10 Mbit/s, 20 ms and one BDP of queue, for 1 s.
pub(crate) fn scenario(flows: usize) -> Scenario {
    let rate = BitRate::from_bps(10_000_000);
    let delay = Duration::from_millis(10);
    let queue = Queue::drop_tail(Limit::Bytes(ByteCount::from_bytes(25_000)));
    let link = LinkConfig::new(Rate::Constant(rate), delay, queue);
    Scenario {
        connections: vec![ConnectionConfig { mss: MSS, ..ConnectionConfig::default() }; flows],
        ..Scenario::new(link.clone(), link, Duration::from_secs(1))
    }
}

pub(crate) fn start(program: &ControlProgram, flow: u64) -> Result<ProgramController, StartError> {
    ProgramController::start(
        program,
        FlowParameters { number: flow, mss: MSS, seed: flow },
        &|| false,
    )
}

/// Runs a scenario with a program for each flow.
pub(crate) fn run(programs: &[ControlProgram]) -> Result<Outcome, ControllerFailed> {
    let started = (1..).zip(programs).map(|(flow, program)| start(program, flow).unwrap());
    let mut controllers: Vec<_> = started.map(Some).collect();
    twin::run_with(&scenario(programs.len()), |index| {
        let own = controllers.get_mut(index)?.take()?;
        Some(Box::new(own) as Box<dyn CongestionControl + Send>)
    })
}
