//! Forms: fields with labels, the values that were entered, and the error of one of them.

use super::texts;
use longhaul::Field;
use longhaul::calc::Location;
use report::html::{Attributes, Markup};
use serde_json::{Value, json};
use std::fmt::Display;
use std::str::FromStr;
use units::{BitRate, ByteCount, LossRatio, Rtt};

/// Bytes of a value; a longer one is refused.
const MAX_VALUE: usize = 200;

/// The values that a field accepts.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Rate,
    Rtt,
    Size,
    Loss,
    /// A whole number.
    Count,
    /// `3:1`, or `3`.
    Ratio,
    Place,
    /// One of these values, each with its label; a value is JSON, or else a string. Empty: none.
    Choice(&'static [(&'static str, &'static str)]),
}

/// A field of a form.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// Its name in the form.
    pub(super) name: &'static str,
    /// Its key in the request; `/` separates levels.
    pub(super) key: &'static str,
    /// What problems call it.
    pub(super) field: Field,
    pub(super) label: &'static str,
    /// Unit and examples.
    pub(super) hint: &'static str,
    pub(super) kind: Kind,
    /// The value of an empty field; `None` if a value is required.
    pub(super) default: Option<&'static str>,
    /// The value of the example.
    pub(super) example: &'static str,
}

/// A wrong input: the name of its field, empty if it is none's, and the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) name: &'static str,
    pub(super) message: String,
}

/// The values of a form's fields as entered.
#[derive(Debug, Clone)]
pub(super) struct Form {
    fields: &'static [Entry],
    values: Vec<String>,
    /// Nothing was entered: the values are the example's.
    pub(super) is_example: bool,
}

impl Form {
    /// The values of these pairs, or the example's if none of them is a field's.
    pub(super) fn of(fields: &'static [Entry], pairs: &[(String, String)]) -> Self {
        let given = |entry: &Entry| pairs.iter().find(|(name, _)| name == entry.name);
        let is_example = fields.iter().all(|entry| given(entry).is_none());
        let value = |entry: &Entry| match given(entry) {
            _ if is_example => entry.example.to_owned(),
            Some((_, value)) => value.trim().to_owned(),
            None => entry.default.unwrap_or_default().to_owned(),
        };
        Form { fields, values: fields.iter().map(value).collect(), is_example }
    }

    /// The values as the fields of a request.
    ///
    /// # Errors
    /// The first field whose value is wrong.
    pub(super) fn request(&self) -> Result<Value, Wrong> {
        let mut request = json!({});
        for (entry, text) in self.fields.iter().zip(&self.values) {
            let wrong = |message| Wrong { name: entry.name, message };
            let Some(value) = entry.value(text).map_err(wrong)? else { continue };
            let mut place = &mut request;
            for part in entry.key.split('/') {
                place = &mut place[part];
            }
            *place = value;
        }
        Ok(request)
    }

    /// The field of a problem; its message with the fields' labels.
    pub(super) fn wrong(&self, fields: &[Field], message: &str) -> Wrong {
        let entry = |field: &Field| self.fields.iter().find(|entry| entry.field == *field);
        let label = |field: Field| {
            entry(&field).map_or(field.name().to_owned(), |entry| format!("“{}”", entry.label))
        };
        let name = fields.iter().find_map(entry).map_or("", |entry| entry.name);
        Wrong { name, message: problem::with_names(message, label) }
    }

    /// The fields.
    pub(super) fn write(&self, m: &mut Markup, wrong: Option<&Wrong>) {
        m.element("div", &[("class", &"fields")], |m| {
            for (entry, value) in self.fields.iter().zip(&self.values) {
                let wrong = wrong.filter(|wrong| wrong.name == entry.name);
                field(m, entry.name, entry.label, entry.hint, wrong, |m, described| {
                    entry.control(m, value, described, wrong.is_some());
                });
            }
        });
    }
}

/// A label, its hint, the control and its error.
pub(super) fn field(
    m: &mut Markup,
    name: &str,
    label: &str,
    hint: &str,
    wrong: Option<&Wrong>,
    control: impl FnOnce(&mut Markup, &str),
) {
    let (hint_id, error_id) = (format!("{name}-hint"), format!("{name}-error"));
    m.element("div", &[("class", &if wrong.is_some() { "field wrong" } else { "field" })], |m| {
        m.leaf("label", &[("for", &name)], &label);
        let described =
            if wrong.is_some() { format!("{error_id} {hint_id}") } else { hint_id.clone() };
        control(m, &described);
        if let Some(wrong) = wrong {
            m.leaf("p", &[("class", &"error"), ("id", &error_id)], &capital(&wrong.message));
        }
        m.leaf("p", &[("class", &"hint"), ("id", &hint_id)], &hint);
    });
}

/// The error above a form, with a link to its field.
pub(super) fn summary(m: &mut Markup, wrong: &Wrong) {
    m.element("div", &[("class", &"alert"), ("role", &"alert")], |m| {
        m.leaf("h2", &[], &texts::WRONG_INPUT);
        m.element("p", &[], |m| {
            let message = capital(&wrong.message);
            if wrong.name.is_empty() {
                m.text(&message);
            } else {
                m.leaf("a", &[("href", &format!("#{}", wrong.name))], &message);
            }
        });
    });
}

impl Entry {
    /// The value of a text as JSON; `None` if it is empty and optional.
    fn value(&self, text: &str) -> Result<Option<Value>, String> {
        if text.len() > MAX_VALUE {
            return Err(format!("at most {MAX_VALUE} bytes are accepted"));
        }
        let text = match (text, self.default) {
            ("", Some("")) => return Ok(None),
            ("", Some(default)) => default,
            ("", None) => return Err(format!("{}: {}", texts::REQUIRED, self.hint)),
            (text, _) => text,
        };
        match self.kind {
            Kind::Rate => parsed::<BitRate>(text),
            Kind::Rtt => parsed::<Rtt>(text),
            Kind::Size => parsed::<ByteCount>(text),
            Kind::Loss => parsed::<LossRatio>(text),
            Kind::Place => parsed::<Location>(text),
            Kind::Count => match text.parse::<u32>() {
                Ok(number) => Ok(json!(number)),
                Err(_) => {
                    Err(format!("'{text}' is not a whole number: give one up to {}", u32::MAX))
                }
            },
            Kind::Ratio => {
                let number = text.strip_suffix(":1").unwrap_or(text).parse::<f64>();
                let number = number.ok().filter(|ratio| ratio.is_finite());
                number.map(|ratio| json!(ratio)).ok_or_else(|| {
                    format!("'{text}' is not a ratio: give 1:1 to 1000:1, as in 3:1")
                })
            }
            Kind::Choice(choices) => match choices.iter().find(|(value, _)| *value == text) {
                Some((value, _)) => Ok(serde_json::from_str(value).unwrap_or(json!(value))),
                None => Err(format!("'{text}' is not one of the choices")),
            },
        }
        .map(Some)
    }

    fn control(&self, m: &mut Markup, value: &str, described: &str, is_wrong: bool) {
        let invalid = if is_wrong { "true" } else { "false" };
        let common: [(&'static str, &dyn Display); 4] = [
            ("id", &self.name),
            ("name", &self.name),
            ("aria-describedby", &described),
            ("aria-invalid", &invalid),
        ];
        if let Kind::Choice(choices) = self.kind {
            m.element("select", &common, |m| {
                for (choice, label) in choices {
                    let is_chosen =
                        *choice == value || value.is_empty() && Some(*choice) == self.default;
                    let attributes: Attributes<'_> =
                        &[("value", choice), ("selected", &"selected")];
                    let shown = if is_chosen { attributes } else { &attributes[..1] };
                    m.leaf("option", shown, label);
                }
            });
            return;
        }
        let mode = if matches!(self.kind, Kind::Count) { "numeric" } else { "text" };
        let mut attributes = common.to_vec();
        let placeholder = match self.default {
            Some("") => texts::OPTIONAL,
            Some(default) => default,
            None => "",
        };
        let own: [(&'static str, &dyn Display); 7] = [
            ("type", &"text"),
            ("inputmode", &mode),
            ("autocomplete", &"off"),
            ("autocapitalize", &"off"),
            ("spellcheck", &"false"),
            ("placeholder", &placeholder),
            ("value", &value),
        ];
        attributes.extend(own);
        m.shape("input", &attributes);
    }
}

fn parsed<T: FromStr<Err: Display> + serde::Serialize>(text: &str) -> Result<Value, String> {
    let value = text.parse::<T>().map_err(|error| error.to_string())?;
    serde_json::to_value(value).map_err(|error| error.to_string())
}

/// The text with its first letter in upper case.
fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|c| c.to_uppercase().collect::<String>() + chars.as_str()).unwrap_or_default()
}
