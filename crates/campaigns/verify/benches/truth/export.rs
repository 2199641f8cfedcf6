//! The statistics of runs, as rows for `docs/design/diagnosis/fit.py`.
//!
//! Each run gives one row for the whole of it, one for each of its segments, and two for
//! random windows; each as seen from every vantage point.

use crate::options::Options;
use crate::stored::Run;
use bench_harness::Fallible;
use diagnose::Statistics;
use record::{Limit, Measurement};
use simulator::Scenario;
use simulator::Truth;
use simulator::Vantage;
use simulator::draws::Draws;
use std::fs::File;
use std::io::{BufWriter, Write};

/// Windows per run, and the shortest, in seconds.
const WINDOWS: usize = 2;
const SHORTEST_S: f64 = 1.0;

/// A file of rows.
pub(crate) struct Export {
    out: BufWriter<File>,
    has_header: bool,
}

/// The file that the options name, if any.
///
/// # Errors
/// It cannot be created.
pub(crate) fn create(options: &Options) -> Fallible<Option<Export>> {
    let Some(file) = &options.export else { return Ok(None) };
    let out = BufWriter::new(File::create(file)?);
    Ok(Some(Export { out, has_header: false }))
}

impl Export {
    /// Writes the rows of one run; `named`: the limit that its TCP_INFO
    /// gives, where it is also seen in captures.
    ///
    /// # Errors
    /// They cannot be written.
    pub(crate) fn run(
        &mut self,
        case: &Scenario,
        run: &Run,
        truth: &Truth,
        named: Option<Limit>,
    ) -> Fallible<()> {
        if !std::mem::replace(&mut self.has_header, true) {
            header(&run.measurement, &mut self.out)?;
        }
        rows(case, run, truth, named, &mut self.out)
    }

    /// All rows are in the file.
    ///
    /// # Errors
    /// They cannot be written.
    pub(crate) fn finish(mut self) -> Fallible<()> {
        Ok(self.out.flush()?)
    }
}

/// The first line of the file.
fn header(measurement: &Measurement, out: &mut dyn Write) -> Fallible<()> {
    write!(out, "run,kind,vantage,family,limit,named")?;
    for (name, _) in diagnose::statistics(measurement, 0.0, 1.0).iter() {
        write!(out, ",{name}")?;
    }
    writeln!(out)?;
    Ok(())
}

fn rows(
    case: &Scenario,
    run: &Run,
    truth: &Truth,
    named: Option<Limit>,
    out: &mut dyn Write,
) -> Fallible<()> {
    let mut draws = Draws::new(run.seed ^ 0x5eed, case.number);
    let mut spans = vec![("whole", 0.0, case.seconds, truth.limit)];
    if truth.segments.len() > 1 {
        let segments = truth.segments.iter().filter(|s| s.to_s - s.from_s >= 0.5);
        spans.extend(segments.map(|s| ("segment", s.from_s, s.to_s, s.limit)));
    }
    for _ in 0..WINDOWS {
        let length = draws.between(SHORTEST_S.min(case.seconds / 2.0), case.seconds * 0.8);
        let from = draws.between(0.0, case.seconds - length);
        if let Some(limit) = longest(truth, from, from + length) {
            spans.push(("window", from, from + length, limit));
        }
    }
    let points = Vantage::ALL.into_iter();
    for vantage in points.filter(|it| run.captured.is_some() || it.captured_host().is_none()) {
        let seen = run.seen_from(vantage)?;
        for (kind, from, to, limit) in &spans {
            // The other samples of a sender need fewer rows: their terms are those that are
            // left, while a receiver alone has statistics of its own, and captures have terms
            // of their own.
            if !matches!(vantage, Vantage::Watch | Vantage::Slow) || *kind == "whole" {
                let (number, family) = (case.number, case.family);
                write!(out, "{number},{kind},{},{family},{}", vantage.name(), limit.name())?;
                write!(out, ",{}", named.map_or("", Limit::name))?;
                row(&diagnose::statistics(&seen, *from, *to), out)?;
            }
        }
    }
    Ok(())
}

fn row(statistics: &Statistics, out: &mut dyn Write) -> Fallible<()> {
    for (_, value) in statistics.iter() {
        match value {
            Some(value) => write!(out, ",{value:.4}")?,
            None => write!(out, ",")?,
        }
    }
    writeln!(out)?;
    Ok(())
}

/// The limit of most of a window.
fn longest(truth: &Truth, from: f64, to: f64) -> Option<Limit> {
    let mut lengths: Vec<(Limit, f64)> = Vec::new();
    for segment in &truth.segments {
        let length = segment.to_s.min(to) - segment.from_s.max(from);
        match lengths.iter_mut().find(|(limit, _)| *limit == segment.limit) {
            Some((_, sum)) => *sum += length.max(0.0),
            None => lengths.push((segment.limit, length.max(0.0))),
        }
    }
    lengths.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(limit, _)| limit)
}
