//! Links between the pages, and the book's table of contents.

use crate::{name, pages, private, root};
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

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
    let design = listed().into_iter().filter(|page| page.starts_with(root().join("docs/design")));
    for page in pages().into_iter().chain(others).chain(design) {
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

/// The pages that the book's table of contents names.
fn listed() -> BTreeSet<PathBuf> {
    let folder = root().join("docs");
    let summary = std::fs::read_to_string(folder.join("SUMMARY.md")).unwrap();
    targets(&summary).iter().map(|file| folder.join(file)).collect()
}

pub(crate) fn every_page_is_in_the_summary() {
    let folder = root().join("docs");
    let notes = std::fs::read_dir(folder.join("design")).unwrap();
    let notes = notes.map(|entry| entry.unwrap().path());
    let there: BTreeSet<_> = pages()
        .into_iter()
        .chain(notes.filter(|path| path.extension().is_some_and(|end| end == "md")))
        .filter(|page| page.starts_with(&folder) && !page.ends_with("SUMMARY.md"))
        .collect();
    assert_eq!(listed(), there);
}

/// A path without `..`.
fn resolved(path: &Path) -> PathBuf {
    let mut resolved = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(resolved.pop()),
            part => resolved.push(part),
        }
    }
    resolved
}

/// A page of the book links to pages of the book: others have no HTML.
pub(crate) fn stay_in_the_book() {
    let (listed, mut wrong) = (listed(), Vec::new());
    for page in &listed {
        let text = std::fs::read_to_string(page).unwrap();
        for target in targets(&text).iter().filter(|target| !target.contains("://")) {
            let file = target.split('#').next().unwrap_or_default();
            let path = resolved(&page.parent().unwrap_or(Path::new("")).join(file));
            let is_page = path.extension().is_none_or(|end| end == "md");
            let inside = path.starts_with(root().join("docs"));
            if !file.is_empty() && !(inside && (!is_page || listed.contains(&path))) {
                wrong.push(format!("{}: {target}", name(page)));
            }
        }
    }
    assert!(wrong.is_empty(), "links that leave the book:\n{}", wrong.join("\n"));
}

/// mdBook, installed or built by `scripts/docs`.
fn mdbook() -> Option<PathBuf> {
    let built = root().join("target/tools/bin/mdbook");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found = std::env::split_paths(&path).map(|folder| folder.join("mdbook"));
    Some(built).filter(|built| built.exists()).or_else(|| found.find(|path| path.is_file()))
}

/// Values of an attribute of a page's elements.
fn attributes<'a>(html: &'a str, attribute: &str) -> Vec<&'a str> {
    let parts = html.split(&format!(" {attribute}=\"")).skip(1).collect::<Vec<_>>();
    parts.into_iter().filter_map(|rest| rest.split('"').next()).collect()
}

fn html_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.flat_map(|path| match path.is_dir() {
        true => html_files(&path),
        false => vec![path],
    });
    files.filter(|path| path.extension().is_some_and(|end| end == "html")).collect()
}

/// Every link of the built book has its page and its anchor. `Err` where mdBook is missing.
pub(crate) fn of_the_built_book() -> Result<(), String> {
    let mdbook = mdbook().ok_or("mdBook is missing: make docs installs it")?;
    let folder = private::directory();
    let output = Command::new(mdbook)
        .args(["build", "--dest-dir"])
        .args([folder.path(), &root().join("docs")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (mut dead, mut checked) = (Vec::new(), 0);
    for page in html_files(folder.path()) {
        // All pages in one, and the page of a server for what it does not have.
        if ["print.html", "404.html", "toc.html"].iter().any(|name| page.ends_with(name)) {
            continue;
        }
        let html = std::fs::read_to_string(&page).unwrap();
        for link in [attributes(&html, "href"), attributes(&html, "src")].concat() {
            // Other sites, and what distributions' mdBook has elsewhere: its style and scripts.
            if link.contains(':') || [".css", ".js"].iter().any(|end| link.ends_with(end)) {
                continue;
            }
            checked += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let path = match file {
                "" => page.clone(),
                file => resolved(&page.parent().unwrap().join(file)),
            };
            let has = |anchor: &str| {
                let text = std::fs::read_to_string(&path).unwrap_or_default();
                attributes(&text, "id").contains(&anchor)
            };
            if !path.is_file() || !anchor.is_empty() && !has(anchor) {
                dead.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(dead.is_empty(), "dead links of the built book:\n{}", dead.join("\n"));
    assert!(checked > 500, "{checked} links seen");
    Ok(())
}
