//! The table of a benchmark: a promised and a measured figure in each row.

/// Prints the heading of the table.
pub fn heading() {
    println!("{:<52} {:>14} {:>14}", "", "promised", "measured");
}

/// Prints a figure beside the promised one, and whether the promise is kept.
pub fn row(what: &str, promised: &str, measured: &str, kept: bool) {
    let verdict = if kept { "kept" } else { "NOT KEPT" };
    println!("{what:<52} {promised:>14} {measured:>14}  {verdict}");
}

/// Prints a figure of which nothing is promised.
pub fn note(what: &str, measured: &str) {
    println!("  {what:<50} {:>14} {measured:>14}", "");
}
