//! Explains what limited the TCP transfers of a capture: `explain_capture FILE`.

use longhaul::explain::{ExplainDocument, ExplainRequest};
use longhaul::{Document, Problem, Request, StopFlag};
use std::error::Error;

/// The name of each transfer, and what limited it.
pub(crate) fn explained(file: &str) -> Result<Vec<(String, String)>, Problem> {
    let request = Request::Explain(ExplainRequest::new(file));
    match longhaul::run(request, &mut |_| {}, &StopFlag::new())? {
        Document::Explain(ExplainDocument::Transfers(transfers)) => Ok(transfers
            .into_iter()
            .map(|transfer| (transfer.name, transfer.finding.sentence))
            .collect()),
        // A recording has no transfers.
        _ => Ok(Vec::new()),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("give a capture file")?;
    for (name, sentence) in explained(&file)? {
        println!("{name}: {sentence}");
    }
    Ok(())
}
