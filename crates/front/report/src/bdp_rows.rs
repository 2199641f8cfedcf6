//! The rows of a BDP report: a label and an equation each.

use model::BdpReport;

/// What the path needs, and what it then carries.
pub(crate) fn rows(result: &BdpReport) -> [Vec<(String, String)>; 2] {
    let row = |label: &str, equation: &str| (label.to_owned(), equation.to_owned());
    let mut needs =
        vec![row("BDP", &result.bdp.equation), row("required window", &result.window.equation)];
    if result.streams > 1 {
        needs.push(row("window per stream", &result.window_per_stream.equation));
    }
    needs.push(row("64 KiB window", &result.unscaled.equation));
    if let Some(given) = result.given.as_ref().filter(|given| **given != result.unscaled) {
        needs.push(row(&format!("{} window", given.window_bytes), &given.equation));
    }
    needs.push(row("buffers", &result.buffers.equation));
    let payload = result.payload.iter();
    let mut carries: Vec<_> =
        payload.map(|case| row("payload", &format!("{}: {}", case.case, case.equation))).collect();
    carries.push(row("slow start", &result.ramp.equation));
    carries.push(row("tolerable loss", &result.loss.equation));
    [needs, carries]
}
