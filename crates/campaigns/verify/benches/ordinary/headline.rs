//! A finding's first sentence beside the figures in it: what a reader would call nonsense.

/// What may pass a bound: figures are rounded.
const TOLERANCE: f64 = 1.1;

/// Why a sentence contradicts itself or the rate that was achieved, in bit/s; `None` if it does not.
/// Sentences that withdraw a limit give the contradiction as their reason.
pub(crate) fn contradiction(sentence: &str, achieved: f64) -> Option<String> {
    if sentence.starts_with("Cannot identify") {
        return None;
    }
    if sentence.contains(" 0 % of the time") {
        return Some("a limit that took no time".to_owned());
    }
    let mut rest = sentence;
    while let Some((_, after)) = rest.split_once("at most ") {
        rest = after;
        if let Some(most) = rate(after).filter(|most| achieved > TOLERANCE * most) {
            return Some(format!("at most {most:.0} bit/s, and {achieved:.0} arrived"));
        }
    }
    None
}

/// The rate at the start of a text, in bit/s.
fn rate(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace();
    let value: f64 = words.next()?.parse().ok()?;
    let unit = match words.next()?.split("bit/s").next()? {
        "" => 1.0,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        _ => return None,
    };
    Some(value * unit)
}
