//! The published values of the built-in studies: each is in the document at the line that it names,
//! and what no document states is marked.
//!
//! `LONGHAUL_SOURCES` is the folder of the documents. Without it the tests that read them count as
//! ignored.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use libtest_mimic::{Arguments, Trial};
use record::{PublishedValue, StudyFactor, StudyPlanReport, StudyTrend};
use std::path::{Path, PathBuf};
use study::{BUILT_IN, BuiltIn, DOCUMENTS, Document};

/// Fewest values of all studies that are looked up.
const MIN_VALUES: usize = 200;

/// A test by its name; some read the documents of a folder.
type Check = (&'static str, fn());
type Reading = (&'static str, fn(&Path));

fn main() {
    let arguments = Arguments::from_args();
    let folder = std::env::var_os("LONGHAUL_SOURCES").map(PathBuf::from);
    if folder.is_none() && !arguments.list {
        eprintln!("LONGHAUL_SOURCES is not set: published values are not looked up");
    }
    let checks: [Check; 4] = [
        ("rules_of_finding", rules_of_finding),
        ("every_setting_is_published_or_assumed", every_setting_is_published_or_assumed),
        ("published_settings_are_those_of_the_plan", published_settings_are_those_of_the_plan),
        ("every_trend_says_where_it_is_from", every_trend_says_where_it_is_from),
    ];
    let reading: [Reading; 2] = [
        ("published_values_stand_at_their_lines", published_values_stand_at_their_lines),
        ("sections_and_titles_are_those_of_the_documents", sections_and_titles),
    ];
    let mut trials: Vec<Trial> = checks
        .into_iter()
        .map(|(name, check)| {
            Trial::test(name, move || {
                check();
                Ok(())
            })
        })
        .collect();
    trials.extend(reading.into_iter().map(|(name, check)| {
        let (missing, folder) = (folder.is_none(), folder.clone());
        let run = move || {
            check(&folder.unwrap());
            Ok(())
        };
        Trial::test(name, run).with_ignored_flag(missing)
    }));
    libtest_mimic::run(&arguments, trials).exit();
}

/// The plans of all built-in studies, in full.
fn plans() -> Vec<(&'static BuiltIn, String, StudyPlanReport)> {
    let of = |built_in: &'static BuiltIn| {
        let study = built_in.study(false, None).unwrap();
        study.parts.into_iter().map(move |part| (built_in, part.name, part.plan.report()))
    };
    BUILT_IN.iter().flat_map(of).collect()
}

fn trends() -> Vec<(&'static BuiltIn, StudyTrend)> {
    let of = |built_in: &'static BuiltIn| {
        let stated = |trend: &study::Trend| trend.stated(built_in.document);
        built_in.checked().iter().map(move |trend| (built_in, stated(trend)))
    };
    BUILT_IN.iter().flat_map(of).collect()
}

/// The settings of a plan, with those that are set where a lab has them.
fn settings(plan: &StudyPlanReport) -> impl Iterator<Item = &StudyFactor> {
    plan.factors.iter().chain(&plan.fixed).chain(&plan.optional)
}

fn every_setting_is_published_or_assumed() {
    for (_, part, plan) in plans() {
        let source = plan.source.as_ref().unwrap_or_else(|| panic!("{part}: no [source]"));
        for setting in settings(&plan) {
            let published = source.published.iter().any(|one| one.setting == setting.name);
            let assumed = source.assumed.iter().any(|one| one.settings.contains(&setting.name));
            assert!(published || assumed, "{part}: where is {} from?", setting.name);
        }
    }
}

/// A unit of a document as a factor, in the unit of a plan.
fn factor(unit: &str) -> Option<f64> {
    Some(match unit {
        "" | "s" | "sec" | "byte" | "loss" | "streams" | "hosts" => 1.0,
        "Mbit/s" | "Mbps" | "Mbits/sec" => 1e6,
        "Gbps" => 1e9,
        "ms" | "msec" => 1e-3,
        "minutes" => 60.0,
        "%" => 0.01,
        "KByte" => 1024.0,
        "Mbyte" | "MB" => 1_048_576.0,
        _ => return None,
    })
}

/// Whether a plan's setting has the published value among its own; words are as good as theirs.
fn has(setting: &StudyFactor, value: &PublishedValue) -> bool {
    let is_text = setting.values.contains(&value.to_string());
    let Ok(number) = value.number.parse::<f64>() else { return true };
    let Some(factor) = factor(&value.unit) else { return is_text };
    let number = number * factor;
    let same = |own: &f64| (own / number - 1.0).abs() < 1e-9;
    is_text || setting.numbers.iter().any(same)
}

fn published_settings_are_those_of_the_plan() {
    let mut checked = 0;
    for (_, part, plan) in plans() {
        let source = plan.source.as_ref().unwrap();
        for published in &source.published {
            let derived =
                source.assumed.iter().any(|one| one.settings.contains(&published.setting));
            let setting = settings(&plan).find(|one| one.name == published.setting).unwrap();
            for value in published.values.iter().filter(|_| !derived) {
                assert!(has(setting, value), "{part}: {} is not {value}", setting.name);
                checked += 1;
            }
        }
    }
    assert!(checked > 50, "{checked}");
}

/// The numbers of a text; those within a name, such as IPv4 or bbr-00, are none.
fn numbers(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < characters.len() {
        let name = at > 0 && (characters[at - 1].is_alphanumeric() || characters[at - 1] == '-');
        let begin = at;
        while characters.get(at).is_some_and(|c| {
            let more = characters.get(at + 1).is_some_and(char::is_ascii_digit);
            c.is_ascii_digit() || at > begin && "./".contains(*c) && more
        }) {
            at += 1;
        }
        if at > begin && !name {
            found.push(characters[begin..at].iter().collect());
        }
        at = at.max(begin + 1);
    }
    found
}

fn every_trend_says_where_it_is_from() {
    for (_, trend) in trends() {
        let name = &trend.name;
        assert_eq!(trend.published.is_some(), !trend.cited.is_empty(), "{name}");
        assert_eq!(trend.expected.is_some(), trend.expected_by.is_some(), "{name}");
        assert!(trend.published.is_some() || trend.expected.is_some(), "{name}");
        for number in numbers(trend.published.as_deref().unwrap_or_default()) {
            let cited = trend.cited.iter().any(|value| value.number == number);
            assert!(cited, "{name}: {number} is called published, and no line is cited for it");
        }
        assert!(trend.cited.iter().all(|value| !value.section.is_empty()), "{name}");
    }
}

/// The lines of a document.
fn text_of(document: &Document, folder: &Path) -> Vec<String> {
    let mut files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let named = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(document.file))
    };
    let file = files.find(named);
    let file = file.unwrap_or_else(|| panic!("{} has no {}*", folder.display(), document.file));
    std::fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect()
}

/// Whether number and unit follow one another, beginning in that line; both may be broken over to
/// the next one.
fn stands(lines: &[String], value: &PublishedValue) -> bool {
    let at = value.line as usize;
    let Some(line) = at.checked_sub(1).and_then(|at| lines.get(at)) else { return false };
    let text = format!("{line} {}", lines.get(at).map_or("", |next| next.trim_start()));
    let mut begins = text.match_indices(&value.number).take_while(|(begin, _)| *begin < line.len());
    begins.any(|(begin, number)| {
        let (before, after) = (&text[..begin], &text[begin + number.len()..]);
        let whole = |inside: bool| !inside || !number.starts_with(|c: char| c.is_ascii_digit());
        let mut next = after.chars();
        let (first, second) = (next.next(), next.next());
        let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
        let goes_on = is_digit(first) || first == Some('.') && is_digit(second);
        let began = before.ends_with(|c: char| c.is_ascii_digit() || c == '.');
        // Markup and spaces may be between a number and its unit.
        let rest = after.trim_start_matches([' ', '\t', '*', '$', '}', '\\']);
        let unit = rest.strip_prefix(value.unit.as_str()).is_some_and(|rest| {
            value.unit.is_empty() || !rest.starts_with(|c: char| c.is_alphanumeric())
        });
        whole(goes_on) && whole(began) && unit
    })
}

fn rules_of_finding() {
    let lines =
        ["[3] 10.6 sec  2.77 Mbits/sec".to_owned(), "= \\mathbf{2.314}$ Gbps and 25".into()];
    let lines = [&lines[..], &["ms of delay, 6x".to_owned()]].concat();
    let found = |number: &str, unit: &str, line| {
        let (number, unit, section) = (number.to_owned(), unit.to_owned(), String::new());
        stands(&lines, &PublishedValue { number, unit, line, section })
    };
    assert!(found("2.77", "Mbits/sec", 1) && found("2.314", "Gbps", 2) && found("25", "ms", 2));
    assert!(found("6", "x", 3) && found("of delay", "", 3) && found("10.6", "", 1));
    assert!(!found("77", "Mbits/sec", 1) && !found("2", "", 1) && !found("2.77", "Mbit", 1));
    assert!(!found("2.77", "Mbits/sec", 2) && !found("25", "s", 2) && !found("6", "x", 9));
    assert_eq!(numbers("IPv4 2.5 Gbit/s, 1/0.2 of bbr-00, 10^9"), ["2.5", "1/0.2", "10", "9"]);
}

fn published_values_stand_at_their_lines(folder: &Path) {
    let mut all: Vec<(&Document, String, PublishedValue)> = Vec::new();
    let mut assumed = 0;
    for (built_in, part, plan) in plans() {
        let source = plan.source.unwrap();
        assumed += source.assumed.iter().map(|one| one.settings.len()).sum::<usize>();
        for one in source.published {
            let name = format!("{} {part}: {}", built_in.name, one.setting);
            all.extend(
                one.values.into_iter().map(|value| (built_in.document, name.clone(), value)),
            );
        }
    }
    let mut inferred = 0;
    for (built_in, trend) in trends() {
        inferred += usize::from(trend.published.is_none());
        let name = format!("{} {}", built_in.name, trend.name);
        all.extend(trend.cited.into_iter().map(|value| (built_in.document, name.clone(), value)));
    }
    let wrong: Vec<String> = all
        .iter()
        .filter(|(document, _, value)| !stands(&text_of(document, folder), value))
        .map(|(document, name, value)| {
            format!("{name}: {value} is not at line {} of {}", value.line, document.id)
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), all.len(), wrong.join("\n"));
    assert!(all.len() >= MIN_VALUES, "{} values", all.len());
    eprintln!(
        "{} published values found; exempt: {assumed} assumed settings, {inferred} trends that are \
         expected and not published",
        all.len()
    );
}

fn sections_and_titles(folder: &Path) {
    for document in DOCUMENTS {
        let lines = text_of(document, folder);
        for (line, heading) in document.sections {
            let described = heading.starts_with(|c: char| c.is_ascii_lowercase());
            let text = &lines[*line as usize - 1];
            assert!(described || text.contains(heading), "{}:{line}: {heading}", document.id);
        }
        assert!(document.sections.is_sorted_by_key(|(line, _)| *line), "{}", document.id);
        let source = document.source();
        let head = lines[..lines.len().min(20)].join("\n");
        for stated in [&source.title, &source.author].into_iter().flatten() {
            assert!(head.contains(stated.as_str()), "{}: {stated}", document.id);
        }
    }
}
