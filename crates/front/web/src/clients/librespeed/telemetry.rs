//! Results that LibreSpeed's page reports, kept in memory: the newest ones, of which nothing is
//! believed. A rate that is no number is refused, and text is escaped where it is shown.

use super::super::form::Field;
use crate::query;
use host::address_key::AddressKey;
use report::html::Markup;
use serde::Serialize;
use std::collections::VecDeque;
use std::fmt::Write;

/// Results that are kept; the oldest goes first.
const MAX_RESULTS: usize = 1000;
/// Of one address, whose oldest goes first.
const MAX_OF_ADDRESS: usize = 20;

/// Most bytes of what a page says of the provider.
const MAX_PROVIDER: usize = 1 << 10;

/// A result's id: 128 random bits, in hexadecimal digits.
pub(super) type Id = [u8; 16];

/// A reported result. Rates in Mbit/s, times in ms; none that were not measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Report {
    /// When it was reported, s since 1970.
    pub(super) timestamp: u64,
    pub(super) download: Option<f64>,
    pub(super) upload: Option<f64>,
    pub(super) ping: Option<f64>,
    pub(super) jitter: Option<f64>,
    /// What the page says of the provider.
    #[serde(rename = "ispinfo")]
    pub(super) provider: String,
}

impl Report {
    /// # Errors
    /// The name of the field that is not a number.
    pub(super) fn of(fields: &[Field], timestamp: u64) -> Result<Self, &'static str> {
        let mut provider = query::first(fields, "ispinfo").unwrap_or_default().to_owned();
        provider.truncate(provider.floor_char_boundary(MAX_PROVIDER));
        Ok(Report {
            timestamp,
            download: number(fields, "dl")?,
            upload: number(fields, "ul")?,
            ping: number(fields, "ping")?,
            jitter: number(fields, "jitter")?,
            provider,
        })
    }

    /// The page that shows the result.
    pub(super) fn page(&self) -> String {
        let mut rows = String::new();
        let figures = [
            ("Download", self.download, "Mbit/s"),
            ("Upload", self.upload, "Mbit/s"),
            ("Ping", self.ping, "ms"),
            ("Jitter", self.jitter, "ms"),
        ];
        for (name, value, unit) in figures {
            let value = value.map_or_else(|| "not measured".to_owned(), |v| format!("{v} {unit}"));
            let _ = write!(rows, "<tr><th scope=\"row\">{name}</th><td>{value}</td></tr>");
        }
        let mut provider = Markup::new();
        provider.text(&self.provider);
        let provider = provider.finish();
        format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width\"><title>Result</title></head>\
             <body><h1>Result</h1><p>As LibreSpeed's page reported it.</p>\
             <table>{rows}</table><p>{provider}</p></body></html>\n"
        )
    }
}

/// A number that may be missing.
fn number(fields: &[Field], name: &'static str) -> Result<Option<f64>, &'static str> {
    let text = query::first(fields, name).unwrap_or_default().trim();
    if text.is_empty() || text == "Fail" {
        return Ok(None);
    }
    let number = text.parse().map_err(|_| name)?;
    if (0.0..1e9).contains(&number) { Ok(Some(number)) } else { Err(name) }
}

/// The newest results, of an address at most [`MAX_OF_ADDRESS`].
#[derive(Debug, Default)]
pub(super) struct Reports(VecDeque<(AddressKey, Id, Report)>);

impl Reports {
    pub(super) fn add(&mut self, key: AddressKey, id: Id, report: Report) {
        let own = self.0.iter().filter(|(its, ..)| *its == key).count();
        if own >= MAX_OF_ADDRESS {
            let oldest = self.0.iter().position(|(its, ..)| *its == key);
            oldest.map(|oldest| self.0.remove(oldest));
        } else if self.0.len() == MAX_RESULTS {
            self.0.pop_front();
        }
        self.0.push_back((key, id, report));
    }

    pub(super) fn get(&self, id: Id) -> Option<&Report> {
        self.0.iter().find(|(_, its, _)| *its == id).map(|(.., report)| report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(query: &str) -> Result<Report, &'static str> {
        Report::of(&query::pairs(query.as_bytes()), 7)
    }

    #[test]
    fn html_is_refused_or_escaped_in_each_field() {
        const SCRIPT: &str = "%3Cscript%3Ealert(1)%3C/script%3E";
        for name in ["dl", "ul", "ping", "jitter"] {
            assert_eq!(report(&format!("{name}={SCRIPT}")), Err(name));
            for value in ["NaN", "inf", "-1", "1e300"] {
                assert_eq!(report(&format!("{name}={value}")), Err(name), "{value}");
            }
        }
        let page = report(&format!("ispinfo=\"'%26{SCRIPT}&log={SCRIPT}&extra={SCRIPT}"));
        let page = page.unwrap().page();
        assert!(!page.contains("<script"), "{page}");
        assert!(page.contains("&quot;&#39;&amp;&lt;script&gt;alert(1)&lt;/script&gt;"), "{page}");
    }

    #[test]
    fn what_was_not_measured_is_missing() {
        let report = report("dl=93.51&ul=&ping=Fail").unwrap();
        assert_eq!((report.download, report.upload, report.ping), (Some(93.51), None, None));
        assert!(report.page().contains("93.51 Mbit/s"));
        assert!(report.page().contains("not measured"));
    }

    #[test]
    fn the_oldest_go_and_text_is_cut() {
        let mut reports = Reports::default();
        let long = report(&format!("ispinfo={}", "ü".repeat(2000))).unwrap();
        assert_eq!(long.provider.len(), MAX_PROVIDER);
        for number in 0..=MAX_RESULTS as u128 {
            // Twenty of each address.
            let address = 0x0a00_0000 + u32::try_from(number / 20).unwrap();
            let key = AddressKey::of(std::net::Ipv4Addr::from(address).into());
            reports.add(key, number.to_be_bytes(), long.clone());
        }
        assert_eq!(reports.get(0u128.to_be_bytes()), None);
        assert!(reports.get(1u128.to_be_bytes()).is_some());
        assert_eq!(reports.0.len(), MAX_RESULTS);
    }

    #[test]
    fn an_address_replaces_its_own_alone() {
        let mut reports = Reports::default();
        let key = |last| AddressKey::of([192, 0, 2, last].into());
        let any = report("dl=1").unwrap();
        reports.add(key(1), [0xff; 16], any.clone());
        for number in 0..100u128 {
            reports.add(key(2), number.to_be_bytes(), any.clone());
        }
        assert!(reports.get([0xff; 16]).is_some());
        assert_eq!(reports.0.len(), 1 + MAX_OF_ADDRESS);
        assert!(reports.get(99u128.to_be_bytes()).is_some());
        assert!(reports.get(79u128.to_be_bytes()).is_none());
    }
}
