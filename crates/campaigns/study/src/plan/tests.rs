//! Plans that are read, and plans that are refused.

use super::*;
use crate::setting::Side;
use proptest::prelude::*;
use units::ByteCount;

const MINIMAL: &str = r#"question = "Does throughput follow window over round trip?"
[path]
rate = "100mbit"
rtt = "50ms"
[factors]
window = ["64KiB", "128KiB", "256KiB"]
streams = [1, 2, 4]
[traffic]
protocol = "tcp"
duration = "5s"
[repeats]
count = 3
"#;

fn refused(from: &str, to: &str) -> PlanError {
    let text = MINIMAL.replace(from, to);
    assert_ne!(text, MINIMAL, "nothing was replaced");
    Plan::parse(&text).unwrap_err()
}

#[test]
fn a_minimal_plan_is_a_cross_product() {
    let plan = Plan::parse(MINIMAL).unwrap();
    assert_eq!((plan.cells(), plan.repeats.count), (9, 3));
    let test = plan.test(&plan.cell(5)).unwrap();
    assert_eq!((test.window, test.flows[0].streams), (Some(ByteCount::from_bytes(131_072)), 4));
    assert_eq!(plan.label(&plan.cell(5)), "window=128KiB streams=4");
    // 27 tests of 5 s, and what each takes beside it: two at once, as 100 Mbit/s are light.
    let seconds = plan.estimate().as_secs_f64();
    assert!((67.5..80.0).contains(&seconds), "{seconds}");
    let fast = Plan::parse(&MINIMAL.replace("100mbit", "1gbit").replace("1, 2, 4", "16"));
    let seconds = fast.unwrap().estimate().as_secs_f64();
    assert!((45.0..54.0).contains(&seconds), "9 tests alone: {seconds}");
}

#[test]
fn what_is_wrong_is_shown_with_its_line_and_column() {
    let error = refused("window = [", "widnow = [");
    assert_eq!(error.at, Some((6, 1)), "{error}");
    let error = refused("\"128KiB\"", "\"128 apples\"");
    assert_eq!(error.at, Some((6, 20)), "{error}");
    assert_eq!(refused("streams = [1, 2, 4]", "streams = []").at, Some((7, 11)));
    assert_eq!(refused("count = 3", "count = 0").at, Some((12, 9)));
    assert_eq!(refused("[repeats]", "[repeat]").at, Some((11, 2)));
    assert_eq!(refused("duration = \"5s\"", "duration = \"5 apples\"").at, Some((10, 12)));
    assert!(refused("rate = ", "window = ").problem.contains("[traffic]"));
    assert!(
        refused("rate = \"100mbit\"", "rate = \"1mbit\"\nseed = 3").problem.contains("[repeats]")
    );
    assert!(refused("protocol = ", "queue = ").problem.contains("[path]"));
    assert!(refused("[1, 2, 4]", "[1, 2, 1]").problem.contains("twice"));
}

#[test]
fn the_short_form_replaces_settings_and_has_one_repeat() {
    let text = format!("{MINIMAL}[quick]\nduration = \"1s\"\nstreams = [1, 4]\n");
    let (full, quick) = (Plan::parse(&text).unwrap(), Plan::parse_quick(&text).unwrap());
    assert_eq!((full.cells(), full.repeats.count), (9, 3));
    assert_eq!((quick.cells(), quick.repeats.count), (6, 1));
    let test = quick.test(&quick.cell(0)).unwrap();
    assert_eq!(test.flows[0].duration, Duration::from_secs(1));
    // An error in it is an error in both forms.
    for wrong in ["bitrate = \"1mbit\"", "duration = [\"1s\", \"2s\"]", "streams = []"] {
        assert!(Plan::parse(&format!("{MINIMAL}[quick]\n{wrong}\n")).is_err(), "{wrong}");
    }
}

#[test]
fn an_impossible_product_is_refused_before_any_cell_is_looked_at() {
    let many: Vec<String> = (1..=1_000).map(|n| n.to_string()).collect();
    let three = format!("streams = [{0}]\nblock = [{0}]\nmtu = [{0}]", many.join(","));
    let error = refused("streams = [1, 2, 4]", &three);
    assert!(error.problem.contains("3 x 1000 x 1000 x 1000 cells"), "{error}");
}

#[test]
fn a_list_has_a_thousand_values_at_most() {
    let many: Vec<String> = (1..=500_000).map(|n| n.to_string()).collect();
    let error = refused("[1, 2, 4]", &format!("[{}]", many.join(",")));
    assert!(error.problem.contains("500000 values; at most 1000"), "{error}");
}

#[test]
fn a_cell_that_cannot_run_is_named() {
    let error =
        refused("window = [\"64KiB\", \"128KiB\", \"256KiB\"]", "protocol = [\"tcp\", \"sctp\"]");
    assert!(error.problem.contains("protocol=sctp"), "{error}");
}

#[test]
fn windows_in_bdp_follow_the_path_of_their_cell() {
    let text = MINIMAL.replace("streams = [1, 2, 4]", "rtt = [\"50ms\", \"100ms\"]");
    let text = text.replace("[\"64KiB\", \"128KiB\", \"256KiB\"]", "\"0.5..1 bdp\"");
    let plan = Plan::parse(&text).unwrap();
    let window = |cell| plan.test(&plan.cell(cell)).unwrap().window.unwrap().bytes();
    assert_eq!([0, 1, 2, 3].map(window), [312_500, 625_000, 625_000, 1_250_000]);
}

const TWO_FLOWS: &str = r#"question = "What does UDP leave to TCP?"
[path]
rate = "100mbit"
rtt = "50ms"
[traffic]
duration = "5s"
[flows.tcp]
[flows.udp]
protocol = "udp"
start = "2s"
bitrate = "1mbit"
[factors]
udp.bitrate = ["10mbit", "110mbit"]
window = ["64KiB"]
"#;

#[test]
fn flows_have_settings_of_their_own() {
    let plan = Plan::parse(TWO_FLOWS).unwrap();
    let test = plan.test(&plan.cell(1)).unwrap();
    let names: Vec<&str> = test.flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!((names, plan.cells()), (vec!["tcp", "udp"], 2));
    assert_eq!(test.flows[0].bitrate, None);
    assert_eq!(test.flows[1].bitrate.map(units::BitRate::bps), Some(110_000_000));
    assert_eq!(test.planned(), Duration::from_secs(7));
    assert_eq!(plan.label(&plan.cell(1)), "udp.bitrate=110mbit window=64KiB");
}

#[test]
fn a_flow_that_cannot_be_is_refused() {
    let refused =
        |from: &str, to: &str| Plan::parse(&TWO_FLOWS.replace(from, to)).unwrap_err().problem;
    assert!(refused("[flows.tcp]", "[flows.window]").contains("name of a setting"));
    assert!(refused("[flows.tcp]", "[flows.\"a b\"]").contains("32 letters"));
    assert!(refused("start = ", "rtt = ").contains("not a setting of a flow"));
    assert!(refused("bitrate = \"1mbit\"\n[f", "omit = \"0.5s\"\n[f").contains("whole seconds"));
    let many: String = (0..17).map(|n| format!("[flows.f{n}]\n")).collect();
    assert!(refused("[flows.tcp]\n", &many).contains("at most 16"));
}

const PROGRAMS: &str = r#"question = "Which program is faster?"
[path]
rate = "100mbit"
rtt = "50ms"
[traffic]
duration = "5s"
congestion = "reno"
[factors]
program = ["fetch", "http", "longhaul"]
"client.net.ipv4.tcp_rmem" = ["4096 131072 262144"]
[optional]
"net.core.rmem_max" = "1000000"
[programs.fetch]
server = ["serve", "{port}"]
client = ["get", "{server}:{port}"]
output = "number Mbit/s"
sends = "server"
files.data = { size = "1GB" }
"#;

#[test]
fn programs_are_those_of_the_plan_and_those_that_come_with_longhaul() {
    let plan = Plan::parse(PROGRAMS).unwrap();
    let names: Vec<String> = plan.programs_run().iter().map(|one| one.name.clone()).collect();
    assert_eq!(names, ["fetch", "http"]);
    let test = |cell| plan.test(&plan.cell(cell)).unwrap();
    let fetch = test(0).flows[0].program.clone().unwrap();
    assert!(fetch.server_sends && !fetch.built_in && !fetch.privileged && fetch.has_port());
    assert!(test(1).flows[0].program.as_ref().unwrap().built_in);
    assert_eq!(test(2).flows[0].program, None);
    let sysctls = test(0).sysctls;
    let sysctls: Vec<_> = sysctls.iter().map(|one| (one.side, one.optional)).collect();
    assert_eq!(sysctls, [(Side::Both, true), (Side::Clients, false)]);
}

#[test]
fn a_program_that_cannot_be_is_refused_where_it_is_written() {
    let refused = |from: &str, to: &str| {
        let text = PROGRAMS.replace(from, to);
        assert_ne!(text, PROGRAMS, "nothing was replaced");
        Plan::parse(&text).unwrap_err()
    };
    let error = refused("output = \"number Mbit/s\"\n", "");
    assert_eq!(error.at, Some((15, 10)), "{error}");
    assert!(error.problem.contains("'fetch' has no output"), "{error}");
    assert_eq!(refused("\"number Mbit/s\"", "\"number of apples\"").at, Some((16, 10)));
    assert_eq!(refused("[\"get\", \"{server}:{port}\"]", "[]").at, Some((15, 10)));
    assert!(refused("\"http\"", "\"ftp\"").problem.contains("programs are longhaul, fetch, edge"));
    assert!(refused("[programs.fetch]", "[programs.http]").problem.contains("comes with longhaul"));
    assert!(refused("files.data", "files.\"../data\"").problem.contains("a file's name"));
    assert!(refused("\"1GB\"", "\"1PB\"").problem.contains("a size up to"));
    assert!(refused("sends = \"server\"", "sends = \"both\"").problem.contains("client or server"));
    // Settings that its command lines have no place for.
    assert!(refused("duration", "streams = 2\nduration").problem.contains("no {streams}"));
    assert!(
        refused("duration", "protocol = \"udp\"\nduration")
            .problem
            .contains("protocol does not apply")
    );
    // Other flows beside it, whose connections nothing would tell from its own.
    let two = "[flows.a]\n[flows.b]\nprogram = \"longhaul\"\n[programs.fetch]";
    let text = PROGRAMS.replace("[programs.fetch]", two);
    Plan::parse(&text).unwrap();
    let error = Plan::parse(&text.replace("{port}", "80")).unwrap_err();
    assert!(error.problem.contains("no {port}"), "{error}");
    let two = "[flows.a]\n[flows.b]\ncongestion = \"cubic\"\n[programs.fetch]";
    let error = refused("[programs.fetch]", two);
    assert!(error.problem.contains("the same for all programs"), "{error}");
}

#[test]
fn paired_factors_vary_together() {
    let text = MINIMAL.replace(
        "[traffic]",
        "[paired]\nrate = [\"10mbit\", \"1gbit\"]\n\
        rtt = [\"600ms\", \"10ms\"]\n[traffic]",
    );
    let plan = Plan::parse(&text).unwrap();
    assert_eq!(plan.cells(), 3 * 3 * 2);
    assert_eq!(plan.label(&plan.cell(0)), "window=64KiB streams=1 rate=10mbit");
    assert_eq!(plan.label(&plan.cell(3)), "window=64KiB streams=2 rate=1gbit");
    assert_eq!(plan.label(&plan.cell(17)), "window=256KiB streams=4 rate=1gbit");
    assert!(plan.test(&plan.cell(17)).unwrap().path.contains("rtt=10ms"));
    let paired: Vec<bool> = plan.report().factors.iter().map(|factor| factor.paired).collect();
    assert_eq!(paired, [false, false, false, true]);
    let refused = |from: &str, to: &str| Plan::parse(&text.replace(from, to)).unwrap_err().problem;
    assert!(refused("\"600ms\", ", "").contains("rate has 2 values and rtt has 1"));
    assert!(refused("\"1gbit\"", "\"10mbit\"").contains("twice"));
    assert!(
        refused("rtt = [\"600ms\", \"10ms\"]", "window = [\"1MiB\", \"2MiB\"]").contains("as well")
    );
    // They can be all that varies, and the short form keeps them together.
    let only =
        text.replace("window = [\"64KiB\", \"128KiB\", \"256KiB\"]\nstreams = [1, 2, 4]\n", "");
    assert_eq!(Plan::parse(&only).unwrap().cells(), 2);
    let quick = |rate: &str, rtt: &str| {
        Plan::parse_quick(&format!("{only}[quick]\nrate = [{rate}]\nrtt = [{rtt}]\n"))
    };
    assert_eq!(quick("\"1mbit\"", "\"1s\"").unwrap().cells(), 1);
    assert!(quick("\"1mbit\"", "\"1s\", \"2s\"").is_err());
}

#[test]
fn tests_are_added_to_cells_whose_interval_is_wide() {
    let text = MINIMAL.replace("count = 3", "count = 2\nuntil = \"5%\"\nmost = 6");
    let plan = Plan::parse(&text).unwrap();
    assert_eq!(plan.report().until.map(|until| until.most), Some(6));
    let run = |cell, repeat, rate: f64| record::StudyRun {
        cell,
        repeat,
        status: record::RunStatus::Valid,
        attempts: 1,
        started_unix_s: 0,
        took_s: 6.0,
        test_s: 5.5,
        reason: String::new(),
        start_skew: None,
        flows: vec![record::FlowFigures { throughput_bps: rate, ..record::FlowFigures::default() }],
    };
    let stored = [run(0, 1, 1e6), run(0, 2, 1e6), run(1, 1, 1e6), run(1, 2, 2e6)];
    let mut further: Vec<(usize, u32)> =
        plan.further_runs(&stored).iter().map(|run| (run.cell, run.repeat)).collect();
    further.sort_unstable();
    assert_eq!(further, [(1, 3), (1, 4)]);
    assert!(Plan::parse_quick(&text).unwrap().further_runs(&stored).is_empty());
    let refused = |to: &str| refused("count = 3", to).problem;
    assert!(refused("until = \"5%\"").contains("most = 20"));
    assert!(refused("most = 20").contains("until = "));
    assert!(refused("until = \"5\"\nmost = 20").contains("0.1% to 100%"));
    assert!(refused("count = 5\nuntil = \"5%\"\nmost = 4").contains("it must be 5 to 1000"));
}

#[test]
fn plots_are_of_factors_and_columns() {
    let plan = |plots: &str| Plan::parse(&format!("{MINIMAL}{plots}"));
    let plots = "[[plots]]\nkind = \"lines\"\nx = \"window\"\nby = \"streams\"\ny = \"mean_rtt_ms\"\n\
                 [[plots]]\nkind = \"cdf\"\n";
    let found = plan(plots).unwrap().plots;
    assert_eq!(
        (found.len(), found[0].y, found[1].y),
        (2, record::Figure::MeanRtt, record::Figure::Throughput)
    );
    let error = plan("[[plots]]\nkind = \"box\"\nx = \"window\"\ny = \"speed\"\n").unwrap_err();
    assert_eq!(error.at, Some((16, 5)), "{error}");
    assert!(error.problem.contains("no column 'speed'; columns with numbers are throughput_bps"));
    let refused = |plot: &str| plan(&format!("[[plots]]\n{plot}\n")).unwrap_err().problem;
    assert!(refused("kind = \"pie\"").contains("plots are lines, surface"));
    assert!(refused("kind = \"lines\"\nx = \"rtt\"").contains("factors are window, streams"));
    assert!(refused("kind = \"surface\"\nx = \"window\"").contains("needs x and by"));
    let words = MINIMAL.replace("streams = [1, 2, 4]", "congestion = [\"cubic\", \"bbr\"]");
    let error = Plan::parse(&format!("{words}[[plots]]\nkind = \"lines\"\nx = \"congestion\"\n"));
    assert!(error.unwrap_err().problem.contains("not numbers of one unit"));
    let units = MINIMAL.replace("\"64KiB\", ", "\"0.5 bdp\", ");
    let lines = "[[plots]]\nkind = \"lines\"\nx = \"window\"\n";
    let error = Plan::parse(&format!("{units}{lines}")).unwrap_err();
    assert!(error.problem.contains("of one unit"), "{error}");
    let quick = format!("{MINIMAL}{lines}[quick]\nwindow = [\"0.5 bdp\", \"1MiB\"]\n");
    assert!(Plan::parse(&quick).is_ok() && Plan::parse_quick(&quick).is_err());
    let flows =
        |y: &str| Plan::parse(&format!("{TWO_FLOWS}[[plots]]\nkind = \"cdf\"\ny = \"{y}\"\n"));
    assert_eq!(flows("udp.loss").unwrap().plots[0].flow.as_deref(), Some("udp"));
    assert!(flows("loss").unwrap_err().problem.contains("such as tcp.loss"));
    assert!(flows("throughput_bps").is_ok());
}

const TOTALS: &str = r#"question = "Does throughput follow the sum of the windows over the RTT?"
[path]
rate = "100mbit"
rtt = "50ms"
[factors]
total_window = ["64KiB", "128KiB", "256KiB"]
total_streams = [2, 4]
[traffic]
hosts = "2x2"
duration = "5s"
"#;

#[test]
fn lines_have_the_window_of_each_stream_as_an_axis_and_its_rate_as_a_reference() {
    let plan = |plot: &str| Plan::parse(&format!("{TOTALS}[[plots]]\n{plot}\n"));
    let lines = "kind = \"lines\"\nby = \"total_streams\"\n";
    let of_each = format!("{lines}x = \"window\"\ny = \"per_stream_bps\"\n");
    let reference = "reference = \"window/rtt\"";
    let plot = plan(&format!("{of_each}{reference}\nnote = \"as published\"")).unwrap().plots;
    assert_eq!(plot[0].x.as_deref(), Some("window"));
    assert_eq!(plot[0].reference, Some(record::Reference::WindowOverRtt));
    assert_eq!(plot[0].note.as_deref(), Some("as published"));
    assert!(plan(&format!("{lines}x = \"total_window\"\n{reference}")).is_ok());
    let refused = |plot: &str| plan(plot).unwrap_err().problem;
    let surface = "kind = \"surface\"\nx = \"window\"\nby = \"total_streams\"";
    assert!(refused(surface).contains("an axis of lines only"));
    assert!(refused("kind = \"lines\"\nx = \"streams\"").contains("factors are total_window"));
    let wrong = of_each.clone() + "reference = \"link\"";
    assert!(refused(&wrong).contains("the only one is window/rtt"));
    for figures in [
        format!("{lines}x = \"window\"\n"),
        format!("{lines}x = \"total_window\"\ny = \"per_stream_bps\"\n"),
        "kind = \"heatmap\"\nx = \"total_window\"\nby = \"total_streams\"\n".to_owned(),
    ] {
        assert!(refused(&format!("{figures}{reference}")).contains("is a reference of lines"));
    }
    let long = format!("{of_each}note = \"{}\"", "a".repeat(301));
    assert!(refused(&long).contains("a note has at most 300 characters"));
    let of_path = |from: &str, to: &str| {
        let text = format!("{TOTALS}[[plots]]\n{of_each}{reference}\n").replace(from, to);
        Plan::parse(&text).unwrap_err().problem
    };
    assert!(of_path("rtt = \"50ms\"\n", "").contains("needs an rtt in [path]"));
    assert!(of_path("\"64KiB\", \"128KiB\", \"256KiB\"", "\"1 bdp\"").contains("not in bdp"));
    // Without the sum there is no window that follows from it.
    let each =
        TOTALS.replace("total_window", "window").replace("[factors]", "[factors]\nmtu = [1500]");
    let each = each.replace("window = [\"64KiB\", \"128KiB\", \"256KiB\"]\n", "");
    let error = Plan::parse(&format!("{each}[[plots]]\n{of_each}")).unwrap_err();
    assert!(error.problem.contains("no factor 'window'"), "{error}");
}

#[test]
fn the_loss_of_clients_that_are_alike_is_one() {
    let udp = TOTALS.replace("total_window = [\"64KiB\", \"128KiB\", \"256KiB\"]\n", "");
    let udp = udp.replace("[traffic]", "[traffic]\nprotocol = \"udp\"\ntotal_bitrate = \"9mbit\"");
    let plot = "[[plots]]\nkind = \"lines\"\nx = \"total_streams\"\ny = ";
    let plan = Plan::parse(&format!("{udp}{plot}\"loss\"\n")).unwrap();
    assert_eq!((plan.plots[0].flow.as_deref(), plan.plots[0].y), (None, record::Figure::Loss));
    let error = Plan::parse(&format!("{udp}{plot}\"jitter_ms\"\n")).unwrap_err();
    assert!(error.problem.contains("such as traffic-1.jitter_ms"), "{error}");
}

#[test]
fn hosts_are_clients_and_servers() {
    let plan = |hosts: &str| {
        Plan::parse(&MINIMAL.replace("streams = [1, 2, 4]", &format!("hosts = [\"{hosts}\"]")))
    };
    let plan_of_6 = plan("4x2").unwrap();
    let test = plan_of_6.test(&plan_of_6.cell(0)).unwrap();
    assert_eq!((test.hosts.clients, test.hosts.servers), (4, 2));
    // Four windows of 64 KiB in 50 ms.
    assert_eq!(test.predict().unwrap().rate.bps(), 4 * 65_536 * 8 * 20);
    assert_eq!(plan("1x1").unwrap().flows_of_tests(), ["traffic"]);
    assert_eq!(
        plan("2x1\", \"1x1").unwrap().flows_of_tests(),
        ["traffic-1", "traffic-2", "traffic"]
    );
    for wrong in ["2x4", "0x0", "17x1", "4", "axb", "4x"] {
        assert!(plan(wrong).unwrap_err().problem.contains("clients x servers"), "{wrong}");
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in "(?s).{0,200}", key in "[a-z.]{1,10}", value in "[-0-9a-zA-Z%. ]{0,12}") {
        let _ = Plan::parse(&text);
        let _ = Plan::parse(&MINIMAL.replace("streams = [1, 2, 4]", &format!("{key} = \"{value}\"")));
    }
}

const UDT: &str = r#"question = "What does loss leave to UDT?"
[path]
rate = "100mbit"
rtt = "40ms"
loss = "0%"
[traffic]
protocol = "udt"
[factors]
loss = ["0%", "1%"]
congestion = ["udt", "srt", "bbr"]
"#;

#[test]
fn udt_has_controls_and_predictions_of_its_own() {
    let plan = Plan::parse(UDT).unwrap();
    let predicted = |cell: usize, text: &str| {
        let plan = Plan::parse(&UDT.replace("[traffic]\n", &format!("[traffic]\n{text}"))).unwrap();
        let test = plan.test(&plan.cell(cell)).unwrap();
        (test.predict().unwrap().rate.bps() as f64 / 1e6).round() as u64
    };
    // 1456 of 1500 bytes; 300 packets/s x sqrt(0.1 / 1 %) of them under UDT's own control.
    assert_eq!((plan.cells(), predicted(0, "")), (6, 97));
    assert_eq!([3, 4, 5].map(|cell| predicted(cell, "")), [11, 97, 97]);
    assert_eq!(predicted(0, "window = \"500kB\"\n"), 80, "per RTT and SYN");
    let refused = |from: &str, to: &str| Plan::parse(&UDT.replace(from, to)).unwrap_err().problem;
    assert!(refused("\"srt\"", "\"vegas\"").contains("it has udt, srt, reno, cubic and bbr"));
    assert!(refused("[traffic]\n", "[traffic]\npacing = \"5mbit\"\n").contains("for tcp"));
    let own = UDT.replace("congestion = [\"udt\", \"srt\", \"bbr\"]\n", "");
    let plan = Plan::parse(&own).unwrap();
    assert_eq!(plan.test(&plan.cell(0)).unwrap().flows[0].congestion(), "udt");
}

#[test]
fn a_file_is_sent_by_the_client_from_a_disk_of_a_rate() {
    let file = "[traffic]\nsource = \"file\"\ndisk = \"20mbit\"\nchunk = \"8MiB\"\n";
    let text = UDT.replace("[traffic]\n", file);
    let plan = Plan::parse(&text).unwrap();
    assert!(plan.sends_files() && !Plan::parse(UDT).unwrap().sends_files());
    let test = plan.test(&plan.cell(0)).unwrap();
    assert_eq!(test.predict().unwrap().equation, "disk 20 Mbit/s");
    assert_eq!(test.flows[0].chunk, Some(units::ByteCount::from_bytes(8 << 20)));
    let refused = |from: &str, to: &str| Plan::parse(&text.replace(from, to)).unwrap_err().problem;
    assert!(refused("disk = \"20mbit\"\n", "").contains("needs disk"));
    assert!(refused("8MiB", "65MiB").contains("1 B to 64 MiB"));
    assert!(refused("\"file\"", "\"tape\"").contains("sources are memory and file"));
    assert!(
        refused("chunk", "direction = \"reverse\"\nchunk").contains("direction must be forward")
    );
}

#[test]
fn a_source_says_of_each_setting_whether_the_document_states_it() {
    let source = "[source]\ntitle = \"A title\"\n\
                  published.rate = [{ value = \"100 Mbit/s\", line = 12, section = \"Setup\" }]\n\
                  assumed.window = \"a guess\"\nassumed.\"*\" = \"chosen here\"\n";
    let text = format!("{MINIMAL}{source}");
    let found = Plan::parse(&text).unwrap().report().source.unwrap();
    assert_eq!((found.title.as_deref(), found.author), (Some("A title"), None));
    let value = &found.published[0].values[0];
    assert_eq!(
        (value.to_string(), value.line, &*value.section),
        ("100 Mbit/s".into(), 12, "Setup")
    );
    assert_eq!(found.assumed[0].settings, ["window"]);
    assert_eq!(found.assumed[1].settings, ["rtt", "protocol", "duration", "streams"]);
    let refused = |from: &str, to: &str| Plan::parse(&text.replace(from, to)).unwrap_err();
    assert_eq!(refused("title = ", "document = ").at, Some((14, 12)));
    assert!(refused("published.rate", "published.queue").problem.contains("does not set queue"));
    assert_eq!(refused("line = 12", "line = 0").at, Some((15, 50)));
    assert_eq!(refused("\"a guess\"", "\" \"").at, Some((16, 18)));
    assert_eq!(refused("[{", "[{ lines = 2,").at.map(|at| at.0), Some(15));
}
