//! The examples of the book: each is run, or says beside it why not.

use crate::markdown::{Block, blocks};
use crate::page::{is_run, option};
use crate::{name, pages};

/// Fewest `sh` blocks that are run: a reason is for what a test cannot do.
const MIN_RUN: usize = 15;

/// What is wrong with a block; whether it is run otherwise.
fn check(block: &Block) -> Result<bool, String> {
    let reason = option(block, "no-run");
    if reason.is_some_and(|reason| reason.split_whitespace().count() < 2) {
        return Err("no-run needs a reason".to_owned());
    }
    match block.language.as_str() {
        "console" if reason.is_some() => Err("printed output is not skipped: use sh".to_owned()),
        "console" | "sh" => Ok(is_run(block)),
        // Input of a command of the page, or output that something else compares.
        "text" if option(block, "file").is_none() && reason.is_none() => {
            Err("a text block is a file=NAME, or says no-run=\"WHY\"".to_owned())
        }
        "text" | "toml" | "dockerfile" | "promql" => Ok(false),
        other => Err(format!("no language {other:?}")),
    }
}

pub(crate) fn each_is_run_or_says_why_not() {
    let (mut wrong, mut run, mut skipped) = (Vec::new(), 0, 0);
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for block in blocks(&text) {
            match check(&block) {
                Ok(true) if block.language == "sh" => run += 1,
                Ok(_) => skipped += 1,
                Err(why) => wrong.push(format!("{}:{}: {why}", name(&page), block.start)),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(run >= MIN_RUN && skipped > 0, "only {run} sh blocks are run");
}

/// The rule above, by example.
pub(crate) fn rules() {
    let verdict = |fence: &str| check(&blocks(&format!("```{fence}\nls\n```"))[0]);
    assert_eq!(verdict("sh"), Ok(true));
    assert_eq!(verdict("sh no-run=\"needs a far host\""), Ok(false));
    assert_eq!(verdict("text file=a.txt"), Ok(false));
    for wrong in ["text", "sh no-run=", "sh no-run=\"\"", "console no-run=\"a b\"", "", "bash"] {
        assert!(verdict(wrong).is_err(), "{wrong}");
    }
}
