//! Loss models, and the dropped packets of a log.

use super::error::{PathError, short};
use super::files::Files;
use super::quantity::quantity;
use link::{GilbertElliott, Loss, PacketList};
use std::ops::RangeInclusive;
use std::sync::Arc;
use units::{LossRatio, Probability};

const FORMS: &str = "1%, ge:1%:30%, list:3+7+10-20, data:3+7+10-20 or replay:FILE";

/// A loss setting.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct LossSetting {
    pub(super) model: Loss,
    /// The packet log it was read from.
    pub(super) log: Option<String>,
}

/// Parses a model for both directions, and its canonical text. Only a log
/// differs between the directions.
pub(super) fn read(
    name: &str,
    text: &str,
    files: &mut Files,
) -> Result<([LossSetting; 2], String), PathError> {
    if let Some(log) = text.strip_prefix("replay:") {
        return replay(name, log.trim(), files);
    }
    let model = if text == "none" {
        Loss::None
    } else if let Some(model) = text.strip_prefix("ge:") {
        Loss::GilbertElliott(gilbert_elliott(name, model)?)
    } else if let Some(list) = text.strip_prefix("list:") {
        Loss::List(Arc::new(packets(name, "list", list)?))
    } else if let Some(list) = text.strip_prefix("data:") {
        Loss::DataList(Arc::new(packets(name, "data", list)?))
    } else if let Some((word, _)) = text.split_once(':') {
        let wrong = format!("'{}' is not a loss model; write {FORMS}", short(word));
        return Err(PathError::at(name, wrong));
    } else {
        match quantity(name, text)? {
            LossRatio::NONE => Loss::None,
            ratio => Loss::Bernoulli(ratio),
        }
    };
    let settings = LossSetting { model, log: None };
    Ok(([settings.clone(), settings], text.to_owned()))
}

/// `P:R[:BAD[:GOOD]]`.
fn gilbert_elliott(name: &str, text: &str) -> Result<GilbertElliott, PathError> {
    let parts: Vec<&str> = text.split(':').collect();
    let (p, r, bad, good) = match parts[..] {
        [p, r] => (p, r, "100%", "0"),
        [p, r, bad] => (p, r, bad, "0"),
        [p, r, bad, good] => (p, r, bad, good),
        _ => {
            let wrong = format!("'{}' is not P:R[:BAD[:GOOD]]; write ge:1%:30%", short(text));
            return Err(PathError::at(name, wrong));
        }
    };
    let probability = |text: &str| quantity::<Probability>(name, text);
    let model = GilbertElliott {
        p: probability(p)?,
        r: probability(r)?,
        bad: probability(bad)?,
        good: probability(good)?,
    };
    // The resolution of a ratio.
    if mean_of(&model) > 1.0 - 1e-12 {
        let wrong = "the mean loss is 100 %; lower P or raise R, as in ge:1%:30%";
        return Err(PathError::at(name, wrong));
    }
    Ok(model)
}

/// Long-term loss ratio: that of each state by its share of time.
fn mean_of(model: &GilbertElliott) -> f64 {
    let (p, r) = (model.p.fraction(), model.r.fraction());
    // It starts in the good state, and stays there if p is 0.
    let bad = if p == 0.0 { 0.0 } else { p / (p + r) };
    bad * model.bad.fraction() + (1.0 - bad) * model.good.fraction()
}

/// Long-term loss ratio; a list, being finite, has none. That of a Gilbert-Elliott model is
/// rounded to four significant digits, here and nowhere else: it is the same number wherever it
/// is printed.
pub(super) fn mean(model: &Loss) -> LossRatio {
    match model {
        Loss::None | Loss::List(_) | Loss::DataList(_) => LossRatio::NONE,
        Loss::Bernoulli(ratio) => *ratio,
        Loss::GilbertElliott(model) => {
            let mean = mean_of(model);
            let rounded = units::percent_with(mean, 4).parse();
            // Next to 100 %, four digits are 100 %. A ratio has a resolution of 10^-12.
            rounded.or_else(|_| format!("{mean:.12}").parse()).unwrap_or(LossRatio::NONE)
        }
    }
}

/// `3+7+10-20`, the numbers of `model`.
fn packets(name: &str, model: &str, text: &str) -> Result<PacketList, PathError> {
    let number = |text: &str| text.trim().parse::<u64>().ok().filter(|number| *number > 0);
    text.split('+')
        .map(|part| {
            let range: Option<RangeInclusive<u64>> = match part.split_once('-') {
                None => number(part).map(|number| number..=number),
                Some((first, last)) => number(first).zip(number(last)).map(|(a, b)| a..=b),
            };
            range.filter(|range| !range.is_empty()).ok_or_else(|| {
                let wrong = format!(
                    "'{}' is not a packet number (from 1) or FIRST-LAST; write {model}:3+7+10-20",
                    short(part)
                );
                PathError::at(name, wrong)
            })
        })
        .collect()
}

/// The packets dropped according to a log, by direction.
///
/// A log is CSV with a header line. Columns are found by name: `link`, `way`
/// (`up` or `down`), `number` (of the packet at its link and way, from 1) and
/// `fate`; there may be others. Every row whose fate begins with `dropped`
/// names a packet to lose.
fn replay(
    name: &str,
    text: &str,
    files: &mut Files,
) -> Result<([LossSetting; 2], String), PathError> {
    // The text after the last colon is a link, unless it contains a slash.
    let (file, wanted) = match text.rsplit_once(':') {
        Some((file, link)) if !link.contains('/') => (file, Some(link)),
        _ => (text, None),
    };
    let (file, contents) = files.read(name, file)?;
    let wrong = |text: LogError| PathError::at(name, format!("log '{}': {text}", short(&file)));
    let dropped = Log::read(&contents).and_then(|log| log.dropped(wanted)).map_err(wrong)?;
    let link = wanted.map(|link| format!(":{link}")).unwrap_or_default();
    let text = format!("replay:{file}{link}");
    let models = dropped.map(|ranges| LossSetting {
        model: Loss::List(Arc::new(ranges.into_iter().collect())),
        log: Some(file.clone()),
    });
    Ok((models, text))
}

/// An error in a packet log: its line or column, without a quotation of the file, which may be the
/// wrong one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum LogError {
    #[error("the header line has no column '{0}' (link, way, number, fate)")]
    NoColumn(&'static str),
    #[error("line {line}: {wrong}")]
    Row { line: usize, wrong: &'static str },
    #[error("no link '{link}'; the links are {known}")]
    UnknownLink { link: String, known: String },
    #[error("several links; add :LINK, one of {known}")]
    SeveralLinks { known: String },
}

/// The drops of a packet log.
struct Log {
    /// Its links, in order of appearance.
    links: Vec<String>,
    /// The dropped packets: index into `links`, direction, number.
    dropped: Vec<(usize, usize, u64)>,
}

impl Log {
    fn read(text: &str) -> Result<Self, LogError> {
        let mut lines = text.lines().enumerate();
        let header = lines.next().map(|(_, line)| fields(line)).unwrap_or_default();
        let column = |wanted: &'static str| {
            let found = header.iter().position(|name| name.trim() == wanted);
            found.ok_or(LogError::NoColumn(wanted))
        };
        let columns = [column("link")?, column("way")?, column("number")?, column("fate")?];
        let mut log = Log { links: Vec::new(), dropped: Vec::new() };
        for (index, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            log.row(&fields(line), columns)
                .map_err(|wrong| LogError::Row { line: index + 1, wrong })?;
        }
        Ok(log)
    }

    fn row(&mut self, row: &[String], columns: [usize; 4]) -> Result<(), &'static str> {
        let mut cells = [""; 4];
        for (cell, column) in cells.iter_mut().zip(columns) {
            *cell = row.get(column).ok_or("fewer columns than in the header line")?.trim();
        }
        let [link, direction, number, fate] = cells;
        let direction = match direction {
            "up" => 0,
            "down" => 1,
            _ => return Err("expected up or down in the column 'way'"),
        };
        let link = match self.links.iter().position(|known| known == link) {
            Some(known) => known,
            None => {
                self.links.push(link.to_owned());
                self.links.len() - 1
            }
        };
        if fate.starts_with("dropped") {
            let number = number.parse().ok().filter(|number| *number > 0);
            let number =
                number.ok_or("expected a packet number, from 1, in the column 'number'")?;
            self.dropped.push((link, direction, number));
        }
        Ok(())
    }

    /// The packets dropped at one link, by direction.
    fn dropped(&self, wanted: Option<&str>) -> Result<[Vec<RangeInclusive<u64>>; 2], LogError> {
        let names = || {
            let names: Vec<String> = self.links.iter().take(8).map(|name| short(name)).collect();
            names.join(", ")
        };
        let link = match wanted {
            Some(wanted) => self
                .links
                .iter()
                .position(|name| name == wanted)
                .ok_or_else(|| LogError::UnknownLink { link: short(wanted), known: names() })?,
            None if self.links.len() > 1 => {
                return Err(LogError::SeveralLinks { known: names() });
            }
            None => 0,
        };
        let mut directions = [Vec::new(), Vec::new()];
        for (_, direction, number) in self.dropped.iter().filter(|(at, ..)| *at == link) {
            directions[*direction].push(*number..=*number);
        }
        Ok(directions)
    }
}

/// The fields of a line of CSV (RFC 4180, without line breaks in a field).
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut before = ' ';
    for c in line.chars() {
        match c {
            // A quote doubled within quotes stands for itself.
            '"' => {
                if !quoted && before == '"' {
                    push(&mut fields, '"');
                }
                quoted = !quoted;
            }
            ',' if !quoted => fields.push(String::new()),
            _ => push(&mut fields, c),
        }
        before = c;
    }
    fields
}

fn push(fields: &mut [String], c: char) {
    if let Some(field) = fields.last_mut() {
        field.push(c);
    }
}
