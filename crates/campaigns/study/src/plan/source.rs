//! `[source]`: the document whose experiment a plan repeats, and where it states each value.

use super::{Plan, PlanError, reader::Reader};
use crate::documents::{DOCUMENTS, Document};
use crate::setting::Setting;
use crate::written::{WrittenSource, WrittenValue};
use record::{AssumedSettings, PublishedSetting, PublishedValue, StudySource};
use topology::toml_text::Spanned;

/// The most characters of a title or of a reason, and of a value.
const MAX_TEXT: usize = 400;
const MAX_VALUE: usize = 100;

/// The most values of one setting.
const MAX_VALUES: usize = 100;

/// In `[source.assumed]`: every setting that is named nowhere else.
const OTHERS: &str = "*";

impl Reader<'_> {
    pub(super) fn source(
        &self,
        plan: &Plan,
        written: &WrittenSource,
    ) -> Result<StudySource, PlanError> {
        let document = written.document.as_ref().map(|id| self.document(id)).transpose()?;
        let mut source = document.map_or_else(StudySource::default, Document::source);
        for (field, text) in [
            (&mut source.title, &written.title),
            (&mut source.author, &written.author),
            (&mut source.date, &written.date),
            (&mut source.address, &written.address),
        ] {
            if let Some(text) = text {
                *field = Some(self.text(text, MAX_TEXT)?);
            }
        }
        for (setting, values) in &written.published {
            let setting = self.set(plan, setting)?;
            if let Some(one) = values.get(MAX_VALUES) {
                let problem = format!("at most {MAX_VALUES} values of a setting");
                return Err(self.error(&one.value.span(), problem));
            }
            let values = values.iter().map(|value| self.value(document, value));
            let values = values.collect::<Result<_, _>>()?;
            source.published.push(PublishedSetting { setting, values });
        }
        let mut others = None;
        for (setting, reason) in &written.assumed {
            let reason = self.text(reason, MAX_TEXT)?;
            if setting.get_ref() == OTHERS {
                others = Some(reason);
                continue;
            }
            let settings = vec![self.set(plan, setting)?];
            source.assumed.push(AssumedSettings { settings, reason });
        }
        if let Some(reason) = others {
            let named = |name: &String| {
                source.published.iter().any(|one| one.setting == *name)
                    || source.assumed.iter().any(|one| one.settings.contains(name))
            };
            let settings: Vec<String> =
                plan.setting_names().into_iter().filter(|name| !named(name)).collect();
            source.assumed.push(AssumedSettings { settings, reason });
        }
        Ok(source)
    }

    fn document(&self, id: &Spanned<String>) -> Result<&'static Document, PlanError> {
        Document::named(id.get_ref()).ok_or_else(|| {
            let known: Vec<&str> = DOCUMENTS.iter().map(|document| document.id).collect();
            let problem = format!(
                "no document '{}'; those of the built-in studies are {}; describe another one \
                 with title, author, date and address",
                id.get_ref(),
                known.join(", ")
            );
            self.error(&id.span(), problem)
        })
    }

    /// The name of a setting of the plan.
    fn set(&self, plan: &Plan, name: &Spanned<String>) -> Result<String, PlanError> {
        let setting = Setting::parse_among(name.get_ref(), &self.flows)
            .map_err(|wrong| self.error(&name.span(), wrong))?
            .to_string();
        if plan.setting_names().contains(&setting) {
            return Ok(setting);
        }
        let problem =
            format!("the plan does not set {setting}; [source] says where values are from");
        Err(self.error(&name.span(), problem))
    }

    fn value(
        &self,
        document: Option<&Document>,
        written: &WrittenValue,
    ) -> Result<PublishedValue, PlanError> {
        let text = self.text(&written.value, MAX_VALUE)?;
        let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
        let line = u32::try_from(*written.line.get_ref()).ok().filter(|line| *line > 0);
        let line = line.ok_or_else(|| {
            self.error(&written.line.span(), "a line of the document, counted from 1")
        })?;
        let mut value = match document {
            Some(document) => document.value(number, unit, line),
            None => {
                let (number, unit) = (number.to_owned(), unit.to_owned());
                PublishedValue { number, unit, line, section: String::new() }
            }
        };
        if let Some(section) = &written.section {
            value.section = self.text(section, MAX_TEXT)?;
        }
        Ok(value)
    }

    fn text(&self, text: &Spanned<String>, most: usize) -> Result<String, PlanError> {
        let trimmed = text.get_ref().trim();
        if trimmed.is_empty() || trimmed.contains('\n') || trimmed.chars().count() > most {
            let problem = format!("a line of 1 to {most} characters");
            return Err(self.error(&text.span(), problem));
        }
        Ok(trimmed.to_owned())
    }
}

impl Plan {
    /// The names of all settings that it fixes, varies or sets where a lab has them.
    fn setting_names(&self) -> Vec<String> {
        let optional =
            self.optional.iter().map(|one| Setting::Sysctl(one.side, one.name.clone()).to_string());
        self.levels().map(|(setting, _)| setting.to_string()).chain(optional).collect()
    }
}
