//! How often the family of congestion control that a capture shows is the true one:
//! `--congestion`, in the twin. Each case runs with a control that is drawn anew, so that all
//! of them are seen on the same paths. `--export FILE` writes what each decision rests on.

use crate::options::Options;
use bench_harness::Fallible;
use control::Algorithm;
use simulator::Scenario;
use simulator::draws::Draws;
use std::fmt::Write as _;
use std::fs;
use tcp_analysis::{CongestionEvidence, CongestionFamily};

/// What the twin runs, and the family that it is of.
const CONTROLS: [(Algorithm, CongestionFamily); 4] = [
    (Algorithm::NewReno, CongestionFamily::Reno),
    (Algorithm::Cubic, CongestionFamily::Cubic),
    (Algorithm::Bbr, CongestionFamily::Bbr),
    (Algorithm::Bbr3, CongestionFamily::Bbr),
];

/// Sets the draws of the control apart from those of the case.
const CONTROL: u64 = 0xcc;

/// How often each control was taken for each family, at one host.
#[derive(Debug, Default, Clone)]
struct Confusion {
    /// By control; reno, cubic, bbr, unknown.
    counts: [[u32; 4]; CONTROLS.len()],
}

/// Runs the cases, and prints a table for each host.
///
/// # Errors
/// A case is not valid, or the file cannot be written.
pub(crate) fn measure(options: &Options, seed: u64, cases: &[Scenario]) -> Fallible<()> {
    let mut tables = [Confusion::default(), Confusion::default()];
    let mut rows = String::from(HEADER);
    let all = crate::each_in_parallel(cases, crate::threads(), |case| {
        let control = Draws::new(seed ^ CONTROL, case.number).one(&[0, 1, 2, 3]);
        let case = Scenario { congestion: CONTROLS[control].0, ..case.clone() };
        Ok((control, case.run_captured(seed)?.1.congestion))
    })?;
    for (case, (control, hosts)) in cases.iter().zip(all) {
        let (control_of, truth) = CONTROLS[control];
        let name = control_of.name();
        for (host, found) in hosts.iter().enumerate() {
            let column = found.family.map_or(3, |family| family as usize);
            tables[host].counts[control][column] += 1;
            if host == 0 && found.family.is_some_and(|family| family != truth) {
                println!("wrong: {case} {name}: {found:?}");
            }
            row(&mut rows, case, host, name, found);
        }
    }
    for (host, table) in ["sender", "receiver"].iter().zip(&tables) {
        println!("\ncaptured at the {host}, {} runs of seed {seed}\n{}", cases.len(), table.text());
    }
    if let Some(file) = &options.export {
        fs::write(file, rows)?;
    }
    Ok(())
}

const HEADER: &str = "number,path_family,host,control,found,reductions,factor,halved,\
    cubic_reductions,kept,linear,cubic,clean,falls,cycles,dips,seconds\n";

fn row(out: &mut String, case: &Scenario, host: usize, name: &str, found: &CongestionEvidence) {
    // Formatting into a string cannot fail.
    let _ = writeln!(
        out,
        "{},{},{host},{name},{},{},{:.3},{},{},{},{},{},{},{},{},{},{:.1}",
        case.number,
        case.family,
        found.family.map_or("unknown", CongestionFamily::name),
        found.reductions,
        found.factor.unwrap_or(-1.0),
        found.halved,
        found.cubic_reductions,
        found.kept,
        found.linear_growth,
        found.cubic_growth,
        found.clean_rounds,
        found.falls,
        found.cycles,
        found.dips,
        case.seconds,
    );
}

impl Confusion {
    fn text(&self) -> String {
        let mut text =
            format!("{:10}{:>8}{:>8}{:>8}{:>9}\n", "", "reno", "cubic", "bbr", "unknown");
        let (mut right, mut decided, mut all) = (0, 0, 0);
        let families = [CongestionFamily::Reno, CongestionFamily::Cubic, CongestionFamily::Bbr];
        for ((control, truth), counts) in CONTROLS.iter().zip(&self.counts) {
            let name = control.name();
            let [reno, cubic, bbr, unknown] = counts;
            let _ = writeln!(text, "{name:10}{reno:>8}{cubic:>8}{bbr:>8}{unknown:>9}");
            right += counts[*truth as usize];
            decided += reno + cubic + bbr;
            all += counts.iter().sum::<u32>();
        }
        for family in families {
            let of = |(_, truth): &(Algorithm, CongestionFamily)| *truth == family;
            let rows = || CONTROLS.iter().zip(&self.counts);
            let hit: u32 =
                rows().filter(|(control, _)| of(control)).map(|(_, it)| it[family as usize]).sum();
            let named: u32 = rows().map(|(_, it)| it[family as usize]).sum();
            let there: u32 = rows()
                .filter(|(control, _)| of(control))
                .map(|(_, it)| it.iter().sum::<u32>())
                .sum();
            let _ = writeln!(
                text,
                "{:10}precision {:5.1} %, recall {:5.1} %",
                family.name(),
                percent(hit, named),
                percent(hit, there)
            );
        }
        let _ = writeln!(
            text,
            "decided {:.1} %, of these wrong {:.1} %",
            percent(decided, all),
            percent(decided - right, decided)
        );
        text
    }
}

fn percent(part: u32, whole: u32) -> f64 {
    100.0 * f64::from(part) / f64::from(whole.max(1))
}
