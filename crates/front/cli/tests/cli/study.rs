//! `longhaul study check`: what a plan comes to, and what is wrong with one.

use crate::program::run;
use serde_json::Value;
use std::fs;
use std::process::Output;

const PLAN: &str = r#"question = "Does throughput follow window over round trip?"
[path]
rate = "100mbit"
rtt = "50ms"
[factors]
window = "64KiB..256KiB"
streams = [1, 2]
[traffic]
duration = "5s"
[repeats]
count = 2
"#;

/// The plan, changed, and what is printed of it.
fn check(from: &str, to: &str, more: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plan.toml");
    assert!(PLAN.contains(from));
    fs::write(&file, PLAN.replace(from, to)).unwrap();
    run(&[&["study", "check", file.to_str().unwrap()], more].concat())
}

#[test]
fn a_plan_is_checked_before_anything_runs() {
    let output = check("", "", &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    for part in ["64KiB", "12 (6 cells x 2 repeats)", "order random"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let output = check("", "", &["--json"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["schema"], "longhaul.study-plan/1");
    assert_eq!((found["cells"].as_u64(), found["tests"].as_u64()), (Some(6), Some(12)));
    assert_eq!(found["factors"][0]["values"], serde_json::json!(["64KiB", "128KiB", "256KiB"]));
    let seconds = found["estimated_s"].as_f64().unwrap();
    // Two at once.
    assert!((30.0..35.0).contains(&seconds), "{seconds}");
}

#[test]
fn a_mistake_is_one_line_with_its_line_and_column() {
    for (from, to, expected) in [
        ("window =", "widnow =", "line 6, column 1: no setting 'widnow'"),
        ("64KiB..", "1MiB..", "line 6, column 10: the range"),
        ("[1, 2]", "[1, 0]", "streams = 0"),
        ("[repeats]", "[repeats", "line 10"),
        ("100mbit", "100 apples", "'100 apples'"),
        ("[traffic]", "[traffic]\nprotocol = \"udp\"", "udp"),
    ] {
        let output = check(from, to, &[]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(expected) && error.lines().count() == 1, "{expected}: {error}");
    }
    assert_eq!(run(&["study", "check", "/nowhere/plan.toml"]).status.code(), Some(2));
}

#[test]
fn built_in_studies_are_listed_and_checked() {
    let names = String::from_utf8(run(&["study", "list", "--names"]).stdout).unwrap();
    assert_eq!(names.lines().count(), 7, "{names}");
    for name in names.lines() {
        let output = run(&["study", "run", name, "--quick", "--dry-run"]);
        assert!(output.status.success(), "{name}");
        assert!(String::from_utf8(output.stdout).unwrap().contains("question"), "{name}");
    }
    let planned = |form: &[&str]| {
        let output = run(&[&["study", "run", "netherlight", "--dry-run"], form].concat());
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(planned(&["--full"]).contains("3600s") && !planned(&["--quick"]).contains("3600s"));
    assert_eq!(planned(&["--full"]), planned(&[]));
    let shard =
        run(&["study", "run", "zoo", "--dry-run", "--in", "sim", "--shard", "1/2", "--json"]);
    let shard = String::from_utf8(shard.stdout).unwrap();
    let documents = serde_json::Deserializer::from_str(&shard).into_iter::<serde_json::Value>();
    let documents: Vec<serde_json::Value> = documents.map(Result::unwrap).collect();
    assert!(!documents.is_empty(), "{shard}");
    for document in documents {
        let (cells, run) = (document["cells"].as_u64().unwrap(), &document["run"]);
        assert_eq!((&run["is_simulated"], &run["shard"]["name"]), (&true.into(), &"1/2".into()));
        let of_shard = run["shard"]["cells"].as_array().unwrap().len() as u64;
        assert!(of_shard <= cells.div_ceil(2), "{run}");
    }
    for (arguments, expected) in [
        (&["study", "run", "edge-cloud", "--only", "nothing"][..], "it has window-64k"),
        (&["study", "run", "no-such-study"], "built-in studies are edge-cloud"),
        (&["study", "export", "/nowhere", "--csv"], "has no study"),
        (&["study", "report", "/nowhere"], "has no study"),
    ] {
        let output = run(arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(expected) && error.lines().count() == 1, "{expected}: {error}");
    }
}

const PROGRAM: &str = r#"question = "How fast is a program?"
[path]
rate = "100mbit"
rtt = "50ms"
[factors]
mtu = [1500]
[traffic]
program = "fetch"
duration = "1s"
[programs.fetch]
client = ["sh", "-c", "touch {dir}/\u001b[2J; echo 1"]
output = "number bit/s"
"#;

#[test]
fn programs_of_a_plan_are_shown_and_run_only_when_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plan.toml");
    fs::write(&file, PROGRAM).unwrap();
    let plan = file.to_str().unwrap();
    let checked = run(&["study", "check", plan]);
    let shown = String::from_utf8(checked.stdout).unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    assert!(shown.contains("sh -c") && !shown.contains('\u{1b}'), "{shown}");
    let results = folder.path().join("results");
    let refused = run(&["study", "run", plan, "--out", results.to_str().unwrap()]);
    let error = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{error}");
    assert!(error.contains("sh -c") && error.contains("use --allow-commands"), "{error}");
    assert!(!error.contains('\u{1b}') && !results.exists(), "{error}");
}

/// `longhaul study ARGS` in a directory, with its exit code, output and errors.
fn study(folder: &std::path::Path, args: &str) -> (Option<i32>, String, String) {
    let args: Vec<&str> = ["study"].into_iter().chain(args.split(' ')).collect();
    let output = crate::program::command(&args).current_dir(folder).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_simulator_runs_shards_without_privileges_and_they_are_merged() {
    let folder = tempfile::tempdir().unwrap();
    let plan = PLAN.replace("100mbit", "5mbit").replace("5s", "1s");
    fs::write(folder.path().join("plan.toml"), &plan).unwrap();
    let done = |args: &str| {
        let (code, text, error) = study(folder.path(), args);
        assert_eq!(code, Some(0), "{args}: {text}{error}");
        text + &error
    };
    assert!(done("run plan.toml --in sim --out one").contains("simulated in virtual time"));
    for shard in ["1/2", "2/2"] {
        done(&format!("run plan.toml --in sim --shard {shard}"));
    }
    let text = done("merge plan-sim-1of2.study plan-sim-2of2.study --into merged");
    assert!(text.contains("12 of 12 done") && text.contains("2 directories merged"), "{text}");
    let bytes = |name: &str| fs::read(folder.path().join(name).join("study.db")).unwrap();
    assert!(bytes("one") == bytes("merged"), "the same study.db as one process");
    let report: Value = serde_json::from_str(&done("report merged --json")).unwrap();
    assert_eq!(report["testbed"], "simulator");
}

#[test]
fn what_the_simulator_and_merge_cannot_do_is_one_line_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let plan = PLAN.replace("streams = [1, 2]", "congestion = [\"cubic\", \"no_such\"]");
    fs::write(folder.path().join("plan.toml"), &plan).unwrap();
    for (args, expected) in [
        ("run plan.toml --in sim", "3 of 6 cells (the first, window=64KiB congestion=no_such"),
        ("run plan.toml --in sim --skip-unsupported --shard 3/7", "at most 6 shards"),
        ("run plan.toml --shard 0/3", "write I/N"),
        ("run plan.toml --skip-unsupported", "only the simulator"),
        ("run plan.toml --in sim --skip-unsupported --pcap", "captures work in labs only"),
        ("merge one two --into three", "no study"),
        ("merge one two --into .", "exists"),
    ] {
        let (code, _, error) = study(folder.path(), args);
        assert_eq!(code, Some(2), "{args}: {error}");
        assert!(error.contains(expected), "{args}: {error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "{args}: nothing was written");
    }
}
