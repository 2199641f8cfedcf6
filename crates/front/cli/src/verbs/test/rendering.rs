//! A test's events and its documents on the terminal, in files and on a page.

use super::{TestArgs, one_screen, warn};
use crate::console::{self, Console};
use crate::failure::{Code, DONE, FAILED, Failure, Outcome};
use crate::test_report;
use longhaul::StopFlag;
use longhaul::test::{TestDocument, TestEvent, TestResult};
use record::{
    CaptureReport, FindRateReport, Finding, Measurement, Protocol, RateTry, RepeatReport,
};
use report::terminal::{self, IntervalTable};
use std::net::SocketAddr;

/// The rendering of a test.
pub(super) struct Rendering<'a> {
    args: &'a TestArgs,
    console: &'a mut Console,
    table: Option<IntervalTable>,
    /// Notes that are printed already.
    printed: Vec<String>,
    /// The finding of the first test and its code, once printed: a second test follows.
    first: Option<(Finding, Code)>,
    /// The failure with which the command ends.
    failed: Option<Failure>,
}

impl<'a> Rendering<'a> {
    /// Says what begins.
    pub(super) fn new(args: &'a TestArgs, console: &'a mut Console) -> Self {
        one_screen::announce(args, console);
        if args.modes.find_rate && !args.forms.json {
            console.print(&(terminal::trial_header(&console.out) + "\n"));
        }
        Rendering { args, console, table: None, printed: Vec::new(), first: None, failed: None }
    }

    /// Shows an event.
    pub(super) fn event(&mut self, event: TestEvent) {
        let style = self.console.out;
        match event {
            TestEvent::DatagramLength(length) => self.console.say(&format!(
                "datagrams of {} B: the largest that is not fragmented",
                length.bytes()
            )),
            TestEvent::Repetition { number, count } => {
                self.console.step(&format!("Test {number} of {count}"));
            }
            TestEvent::RepetitionFailed { number, problem } => {
                self.console.say(&format!("test {number} failed: {}", Failure::from(problem)));
            }
            TestEvent::Connected { peer, protocol, streams, notes } => {
                self.connected(peer, protocol, streams, notes);
            }
            TestEvent::Interval(interval) => {
                let row = self.table.as_mut().and_then(|table| table.row(&interval, &style));
                if let Some(row) = row {
                    self.console.print(&(row + "\n"));
                }
            }
            TestEvent::Note(note) => self.note(note),
            TestEvent::Measured(result) => {
                if let Err(failure) = self.measured(&result) {
                    self.failed.get_or_insert(failure);
                }
            }
            TestEvent::SecondTest { announcement, impact } => {
                if self.args.forms.json {
                    self.console.say(&announcement);
                } else {
                    self.console.print(&format!("\n{announcement}\n"));
                }
                if let Some(impact) = impact.filter(|_| !self.args.yes) {
                    warn(&impact, self.console);
                }
            }
            TestEvent::Trying(rate) => self.console.live(&format!("trying {rate} …")),
            TestEvent::Tried(tried) => self.tried(&tried),
            TestEvent::Incomplete(problem) => {
                self.failed.get_or_insert(problem.into());
            }
        }
    }

    fn connected(
        &mut self,
        peer: SocketAddr,
        protocol: Protocol,
        streams: Vec<u32>,
        notes: Vec<String>,
    ) {
        let args = self.args;
        if args.modes.brief {
            return;
        }
        notes.into_iter().for_each(|note| self.note(note));
        if !args.forms.json {
            let style = self.console.out;
            let table = IntervalTable::new(protocol, streams, args.bidir, args.forms.rows());
            let new = self.table.insert(table);
            self.console.print(&format!("Connected to {peer}\n{}\n", new.header(&style)));
        }
    }

    fn note(&mut self, note: String) {
        let style = self.console.err;
        self.console.say(terminal::notes(std::slice::from_ref(&note), &style).trim_end());
        self.printed.push(note);
    }

    fn tried(&mut self, tried: &RateTry) {
        let target = self.args.modes.loss_target.fraction();
        if self.args.forms.json {
            self.console.say(&terminal::trial_row(tried, target, &self.console.err));
        } else {
            let row = terminal::trial_row(tried, target, &self.console.out);
            self.console.print(&(row + "\n"));
        }
    }

    /// The first test's result, before the second test. JSON is one document: it waits.
    fn measured(&mut self, result: &TestResult) -> Result<(), Failure> {
        self.save(&result.measurement)?;
        if !self.args.forms.json {
            let code = self.result(result)?;
            self.first = Some((result.report.finding.clone(), code));
        }
        Ok(())
    }

    fn save(&self, measurement: &Measurement) -> Result<(), Failure> {
        match &self.args.save {
            Some(file) => store::save(file, measurement).map_err(Failure::work),
            None => Ok(()),
        }
    }

    fn result(&mut self, result: &TestResult) -> Outcome {
        let TestResult { report, measurement } = result;
        let rest = measurement.notes.iter().filter(|note| !self.printed.contains(note));
        let rest: Vec<String> = rest.cloned().collect();
        if self.args.modes.brief {
            return Ok(one_screen::print(self.console, result, &rest));
        }
        test_report::print_with(self.console, measurement, report.clone(), &self.args.forms, &rest)
    }

    /// Shows the document, and writes its files. Fails with what the test lacks.
    pub(super) fn document(mut self, document: &TestDocument, stop: &StopFlag) -> Outcome {
        let code = match document {
            TestDocument::Once(result) => self.once(result, stop)?,
            TestDocument::Repeat(report) => self.repeated(report)?,
            TestDocument::FindRate(report) => self.found(report)?,
        };
        self.failed.map_or(Ok(code), Err)
    }

    fn once(&mut self, result: &TestResult, stop: &StopFlag) -> Outcome {
        let TestResult { report, measurement } = result;
        let code = match self.first.take() {
            None => {
                self.save(measurement)?;
                self.result(result)?
            }
            Some((finding, code)) => {
                if measurement.decided.is_some() {
                    self.save(measurement)?;
                }
                self.decided(result, &finding);
                code
            }
        };
        let (comparison, decision) = (report.comparison.as_ref(), report.decision.as_ref());
        let forms = &self.args.forms;
        test_report::write_page(self.console, measurement, comparison, decision, forms)?;
        if let Some(file) = &self.args.save {
            self.console.say(&format!("measurement saved to {}", file.display()));
        }
        if let Some(CaptureReport { files, packets, dropped_packets, .. }) = &report.capture {
            let file = files.join(" ");
            let line = format!("{packets} packets captured in {file}, {dropped_packets} dropped");
            self.console.say(&line);
        }
        let is_failed = stop.is_raised() || test_report::carried_nothing(measurement);
        let code = if is_failed { FAILED } else { code };
        Ok(self.args.modes.regression.code_of(code, comparison))
    }

    /// The answer of the second test. With a train's answer the finding is another one.
    fn decided(&mut self, result: &TestResult, before: &Finding) {
        let (style, finding) = (self.console.out, &result.report.finding);
        let decision = result.report.decision.as_ref();
        let text = decision.map_or_else(String::new, |one| terminal::decision(one, &style));
        let changed =
            if finding == before { String::new() } else { terminal::finding(finding, &style) };
        self.console.print(&format!("\n{text}{changed}"));
    }

    fn repeated(&mut self, report: &RepeatReport) -> Outcome {
        if let Some(file) = &self.args.save {
            store::save_repeat(file, report).map_err(Failure::work)?;
            let count = report.runs.len();
            self.console.say(&format!("{count} tests saved to {}", file.display()));
        }
        if let Some(file) = &self.args.forms.html {
            self.console.write("page", file, &report::html::repeats_page(report))?;
        }
        let comparison = report.comparison.as_ref();
        let text = if self.args.forms.json {
            console::json(report)?
        } else {
            let style = self.console.out;
            let compared = comparison.map_or(String::new(), |c| terminal::comparison(c, &style));
            let repeats = terminal::repeats(&report.runs, &report.summary, &style);
            format!("\n{repeats}{compared}{}", terminal::notes(&report.notes, &style))
        };
        self.console.print(&text);
        let code = if report.runs.len() == report.asked as usize { DONE } else { FAILED };
        Ok(self.args.modes.regression.code_of(code, comparison))
    }

    fn found(&mut self, report: &FindRateReport) -> Outcome {
        let text = if self.args.forms.json {
            console::json(report)?
        } else {
            terminal::find_rate(report, &self.console.out)
        };
        self.console.print(&text);
        let is_over = !matches!(report.ending.as_str(), "interrupted" | "failed");
        Ok(if is_over && report.rate_bps.is_some() { DONE } else { FAILED })
    }
}
