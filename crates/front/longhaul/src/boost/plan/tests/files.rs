//! What holds for every file.

use super::*;
use crate::Field;
use record::{BoostKind, Confidence};

fn folder(name: &str) -> Vec<PathBuf> {
    let folder = format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"));
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = files.filter(|file| !file.ends_with("README.md")).collect();
    files.sort();
    files
}

fn results() -> Vec<PathBuf> {
    folder("explain/tool-results/tests/files")
}

fn result(name: &str) -> PathBuf {
    results().into_iter().find(|file| file.ends_with(name)).unwrap()
}

fn request(file: &Path) -> PlanRequest {
    PlanRequest::new(PlanSource::File(PlannedFile::new(file)))
}

fn of_file(request: &PlanRequest) -> Result<BoostPlan, Problem> {
    run(request, &mut |_| (), &StopFlag::new())
}

/// Limits of a transfer that does not send as fast as its path lets it.
const HIDE_THE_RATE: [Limit; 7] = [
    Limit::Application,
    Limit::SlowReceiver,
    Limit::Pacing,
    Limit::ReceiveWindow,
    Limit::WindowScaling,
    Limit::SendBuffer,
    Limit::FixedWindow,
];

fn assert_file(transfer: &BoostTransfer, name: &str, is_rate_given: bool) {
    assert_reasons(transfer, name);
    let hides = transfer.limit.is_some_and(|limit| HIDE_THE_RATE.contains(&limit));
    assert!(is_rate_given || !hides || transfer.path.rate_bps.is_none(), "{name}: {transfer:?}");
    for option in &transfer.options {
        let commands = option.commands.join("\n");
        assert!(!commands.contains(":0 ") && !commands.ends_with(":0"), "{name}: {commands}");
        // Where another cause may be the limit, no row is sure of it.
        let of_limit = option.reason.is_some_and(|reason| {
            matches!(
                reason,
                BoostReason::Application | BoostReason::Receiver | BoostReason::LineFull
            )
        });
        if transfer.confidence == Some(Confidence::Likely) && of_limit {
            let is_exact = option.factor.is_some_and(|factor| factor.high <= 1.0);
            let is_present = option.kind == BoostKind::Nothing || is_rate_given;
            assert!(!is_exact || is_present, "{name}: {option:?}");
        }
    }
}

#[test]
fn no_row_contradicts_its_file() {
    let mut transfers = 0;
    for file in results().iter().chain(&corpus()) {
        let name = file.display().to_string();
        let mut request = request(file);
        request.settings.compressible = Some(2.5);
        request.settings.edge_rtt = Some("4ms".parse().unwrap());
        for rate in [None, Some("100gbit".parse().unwrap())] {
            request.rate = rate;
            let Ok(plan) = of_file(&request) else { continue };
            for transfer in &plan.transfers {
                assert_file(transfer, &name, rate.is_some());
                transfers += 1;
            }
        }
    }
    assert!(transfers > 200, "{transfers}");
}

#[test]
fn a_rate_below_the_goodput_is_refused() {
    let mut refused = 0;
    for file in results() {
        let Ok(plan) = of_file(&request(&file)) else { continue };
        let now =
            plan.transfers.iter().filter_map(|one| of_kind(one, BoostKind::Nothing).goodput_bps);
        let Some(most) = now.map(|rate| rate.expected).max().filter(|rate| rate.bps() > 0) else {
            continue;
        };
        for (share, is_accepted) in [(0.5, false), (1.2, true)] {
            let mut request = request(&file);
            request.rate = Some(most.scaled(share));
            let outcome = of_file(&request);
            assert_eq!(outcome.is_ok(), is_accepted, "{}: {outcome:?}", file.display());
            let field = outcome.err().and_then(|problem| problem.remedy).map(|one| one.field);
            assert_eq!(field, (!is_accepted).then_some(Field::Rate));
        }
        refused += 1;
    }
    assert!(refused > 30, "{refused}");
}

#[test]
fn datagrams_predict_nothing_of_tcp() {
    for (name, loss) in [("iperf2-udp.txt", 0.23), ("iperf3-3.12-udp.json", 0.27)] {
        let transfer = of_file(&request(&result(name))).unwrap().transfers.remove(0);
        let found = transfer.path.loss.unwrap().expected.fraction();
        assert!((found - loss).abs() < 0.02, "{name}: {found}");
        for option in transfer.options.iter().filter(|one| one.kind != BoostKind::Nothing) {
            assert_eq!((option.factor, option.reason), (None, Some(BoostReason::NotTcp)), "{name}");
        }
    }
}

#[test]
fn a_saturated_bottleneck_carries_fewer_bytes_sooner() {
    let mut request = request(&result("iperf3-3.1.7-rate.json"));
    request.settings.compressible = Some(2.5);
    request.settings.edge_rtt = Some("4ms".parse().unwrap());
    let transfer = of_file(&request).unwrap().transfers.remove(0);
    assert_eq!(of_kind(&transfer, BoostKind::Pair).reason, Some(BoostReason::LineFull));
    assert!((factor(&transfer, BoostKind::CompressedPair) - 2.475).abs() < 0.01, "{transfer:?}");
    assert!(factor(&transfer, BoostKind::Edge) > 1.3, "{transfer:?}");
    assert_eq!(transfer.recommended, Some(BoostKind::CompressedPair));
}

#[test]
fn both_directions_are_planned() {
    let plan = of_file(&request(&result("iperf3-3.12-bidir.json"))).unwrap();
    let names: Vec<&str> = plan.transfers.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["from the client", "to the client"]);
}

#[test]
fn ss_names_the_port_of_the_service() {
    let mut request = request(&result("ss-loss.txt"));
    request.rate = Some("50mbit".parse().unwrap());
    let transfer = of_file(&request).unwrap().transfers.remove(0);
    let pair = of_kind(&transfer, BoostKind::Pair);
    assert!(pair.commands[0].contains(":10.0.0.2:5201"), "{pair:?}");
}

#[test]
fn a_congestion_control_counts_where_a_file_shows_none() {
    let shown = result("iperf3-3.12-loss.json");
    let mut request = request(&shown);
    request.rate = Some("100mbit".parse().unwrap());
    request.congestion = Some(model::Congestion::Cubic);
    assert!(of_file(&request).is_ok());
    request.congestion = Some(model::Congestion::Bbr);
    let line = of_file(&request).unwrap_err().to_string();
    assert!(line.contains("cubic") && line.contains("congestion"), "{line}");
}

#[test]
fn a_capture_without_the_stream_is_an_error() {
    let file = corpus().into_iter().find(|file| file.ends_with("app-cbr-middle.pcap.gz")).unwrap();
    let source = PlannedFile { connection: Some("99".to_owned()), ..PlannedFile::new(&file) };
    let line = of_file(&PlanRequest::new(PlanSource::File(source))).unwrap_err().to_string();
    assert!(line.contains("no TCP stream"), "{line}");
    let cut = tempfile::NamedTempFile::new().unwrap();
    let mut head = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
    head.extend([0; 8]);
    head.extend([0xff, 0xff, 0, 0, 1, 0, 0, 0, 1, 2, 3]);
    std::fs::write(cut.path(), head).unwrap();
    let line = of_file(&request(cut.path())).unwrap_err().to_string();
    assert!(line.contains("cut off"), "{line}");
}
