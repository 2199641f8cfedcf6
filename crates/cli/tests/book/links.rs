//! Links between the pages, and the book's table of contents.

use crate::{name, pages, root};
use std::collections::BTreeSet;
use std::path::Path;

/// Targets of `[text](target)` and `![text](target)` outside code.
fn targets(page: &str) -> Vec<String> {
    let mut targets = Vec::new();
    let mut fenced = false;
    for line in page.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
        }
        // Every second piece between backquotes is code.
        let text: String = match fenced {
            true => String::new(),
            false => line.split('`').step_by(2).collect::<Vec<_>>().join("`"),
        };
        let ends = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        targets.extend(ends.map(str::to_owned));
    }
    targets
}

/// The anchors that mdBook and GitHub make of headings.
fn anchors(page: &str) -> BTreeSet<String> {
    let headings = page.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let text = line.trim_start_matches('#').trim().to_lowercase();
            let kept = text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

pub(crate) fn lead_somewhere() {
    let mut wrong = Vec::new();
    let mut checked = 0;
    let others = ["CONTRIBUTING.md", "CHANGELOG.md"].map(|file| root().join(file));
    for page in pages().into_iter().chain(others) {
        let text = std::fs::read_to_string(&page).unwrap();
        for target in targets(&text) {
            if target.contains("://") {
                continue;
            }
            checked += 1;
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let path = match file {
                "" => page.clone(),
                file => page.parent().unwrap_or(Path::new("")).join(file),
            };
            let known = std::fs::read_to_string(&path);
            let found = match (&known, anchor) {
                (_, "") => path.exists(),
                (Ok(text), anchor) => anchors(text).contains(anchor),
                (Err(_), _) => false,
            };
            if !found {
                wrong.push(format!("{}: {target}", name(&page)));
            }
        }
    }
    assert!(wrong.is_empty(), "links that lead nowhere:\n{}", wrong.join("\n"));
    assert!(checked > 20, "{checked} links seen");
}

pub(crate) fn every_page_is_in_the_summary() {
    let folder = root().join("docs");
    let summary = std::fs::read_to_string(folder.join("SUMMARY.md")).unwrap();
    let listed: BTreeSet<_> = targets(&summary).iter().map(|file| folder.join(file)).collect();
    let there: BTreeSet<_> = pages()
        .into_iter()
        .filter(|page| page.starts_with(&folder) && !page.ends_with("SUMMARY.md"))
        .collect();
    assert_eq!(listed, there);
}
