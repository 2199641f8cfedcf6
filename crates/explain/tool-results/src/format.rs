//! Which format a file has, by its content.

use crate::{
    decode, flent, iperf2_csv, iperf3, json_document, ndt7, not_a_result::NotAResult, pasted_text,
    ss,
};
use record::Measurement;

/// Bytes at the beginning in which a document's keys are looked for.
const HEAD: usize = 4096;

/// The transfers in a file: one, or several where the format has them, such as a download and
/// an upload.
///
/// # Errors
/// [`NotAResult`]: one line that identifies the file.
pub fn read(bytes: &[u8]) -> Result<Vec<Measurement>, NotAResult> {
    let text = decode::text(bytes)?;
    let text = json_document::unquoted(&text);
    match json_document::begins_at(&text) {
        // Text may have braces too.
        Some(at) => read_json(&text, at).or_else(|error| match error {
            NotAResult::Unknown(_) => read_text(&text).map_err(|_| error),
            NotAResult::Damaged { .. } => Err(error),
        }),
        None => read_text(&text),
    }
}

/// JSON that begins at `at` of the text.
fn read_json(text: &str, at: usize) -> Result<Vec<Measurement>, NotAResult> {
    let start = head(text.get(at..).unwrap_or_default());
    let start: String = start.chars().take(80).filter(|c| !c.is_whitespace()).collect();
    let is_event = start.starts_with("{\"event\":");
    let found = if is_event || start.starts_with("{\"Key\":") {
        json_document::lines(text)
    } else {
        json_document::complete(text)
    };
    let document = found.document.trim_start();
    let head = head(document);
    let has = |key: &str| head.contains(key);
    let start: String = head.chars().take(80).filter(|c| !c.is_whitespace()).collect();
    let mut all = if is_event {
        iperf3::stream(document).map(|one| vec![one])
    } else if start.starts_with("{\"Key\":") {
        ndt7::client(document)
    } else if start.starts_with("{\"start\":") && has("\"iperf 3") {
        iperf3::document(document).map(|one| vec![one])
    } else if has("\"ServerIP\"") && has("\"StartTime\"") {
        ndt7::archive(document)
    } else if document.contains("\"x_values\"") && document.contains("\"results\"") {
        flent::document(document).map(|one| vec![one])
    } else {
        Err(NotAResult::Unknown(other_json(head)))
    }?;
    all.iter_mut().for_each(|one| one.notes.extend(found.notes.iter().cloned()));
    Ok(all)
}

fn read_text(text: &str) -> Result<Vec<Measurement>, NotAResult> {
    if iperf2_csv::is_csv(text.trim_start()) {
        iperf2_csv::lines(text.trim_start())
    } else if pasted_text::is_text(text) {
        pasted_text::results(text)
    } else if text.lines().any(crate::ss_details::is_details) {
        ss::samples(text)
    } else if let Some(why) = pasted_text::failure(text) {
        Err(NotAResult::Damaged { what: "iperf3's text", why })
    } else {
        Err(NotAResult::Unknown(other_text(text)))
    }
}

/// The beginning of a text, whole characters.
fn head(text: &str) -> &str {
    let end = (0..=HEAD.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.get(..end).unwrap_or_default()
}

/// What JSON of another kind is, by its first key.
fn other_json(head: &str) -> String {
    let key = head.split('"').nth(1).filter(|key| !key.is_empty());
    match key {
        Some(key) => {
            let key: String = key.chars().take(40).collect();
            format!("it is JSON of an unknown tool: its first key is '{key}'")
        }
        None => "it is JSON of an unknown tool".to_owned(),
    }
}

/// What other text is, by its first line.
fn other_text(text: &str) -> String {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty());
    match first {
        None => "it is empty".to_owned(),
        Some(line) => {
            let start: String = line.chars().take(40).collect();
            format!("it is of an unknown tool: it begins with '{start}'")
        }
    }
}
