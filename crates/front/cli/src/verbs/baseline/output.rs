//! The files of a baseline: a page and a JSON document of the same name.

use crate::console::Console;
use crate::failure::Failure;
use host::calendar;
use record::BaselineReport;
use std::fs;
use std::path::{Path, PathBuf};

/// Characters of a host's name in the name of a file at most.
const MAX_NAME: usize = 60;

/// Where the results go.
pub(super) struct Files {
    json: PathBuf,
    page: PathBuf,
}

impl Files {
    /// The files of `output`, or of a name made of the host and the time. Fails where they
    /// could not be written after five minutes of tests.
    pub(super) fn new(
        output: Option<&Path>,
        host: &str,
        started_unix_s: u64,
    ) -> Result<Self, Failure> {
        let stem = output.map_or_else(|| default_stem(host, started_unix_s), Path::to_owned);
        if stem.file_name().is_none() {
            let shown = stem.display();
            return Err(Failure::usage(format!("'{shown}' is not a file name: give -o NAME")));
        }
        let with = |end: &str| {
            let mut name = stem.clone().into_os_string();
            name.push(end);
            PathBuf::from(name)
        };
        let files = Files { json: with(".json"), page: with(".html") };
        files.check()?;
        Ok(files)
    }

    /// Checks that the directory can be written to; leaves no file that did not exist.
    fn check(&self) -> Result<(), Failure> {
        let wrong = |error| Failure::usage(format!("{error}; -o NAME writes the files elsewhere"));
        [&self.json, &self.page]
            .into_iter()
            .try_for_each(|file| store::check_writable(file))
            .map_err(wrong)
    }

    /// Refuses to overwrite the baseline that is compared with.
    pub(super) fn spare(&self, compared: Option<&Path>) -> Result<(), Failure> {
        let same = |file: &Path| fs::canonicalize(file).ok();
        let overwritten =
            compared.and_then(same).is_some_and(|file| Some(file) == same(&self.json));
        if overwritten {
            let shown = self.json.display();
            return Err(Failure::usage(format!(
                "'{shown}' is the baseline to compare with: give another -o NAME"
            )));
        }
        Ok(())
    }

    pub(super) fn write(
        &self,
        report: &BaselineReport,
        console: &mut Console,
    ) -> Result<(), Failure> {
        store::save_baseline_report(&self.json, report).map_err(Failure::work)?;
        let page = report::html::baseline_page(report, &self.json.display().to_string());
        store::write(&self.page, page.as_bytes()).map_err(Failure::work)?;
        let (page, json) = (self.page.display(), self.json.display());
        console.say(&format!("page written to {page}, JSON to {json}"));
        Ok(())
    }
}

/// `baseline-server.example.net-20261125-0903`, whatever characters the host's name has.
fn default_stem(host: &str, started_unix_s: u64) -> PathBuf {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    let host: String = host.chars().take(MAX_NAME).map(plain).collect();
    let host = host.trim_matches(['-', '.']);
    let time = calendar::local(started_unix_s, "%Y%m%d-%H%M");
    PathBuf::from(format!("baseline-{host}-{time}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_whatever_the_host_is() {
        let stem = |host: &str| default_stem(host, 0).display().to_string();
        assert!(stem("server.example.net").starts_with("baseline-server.example.net-19"));
        for odd in ["../../etc/passwd", "2001:db8::1", "a b\n;rm", "", "[::1]"] {
            let stem = stem(odd);
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
            assert!(stem.chars().all(is_plain) && !stem.contains('/'), "{stem}");
        }
    }

    #[test]
    fn a_directory_that_cannot_be_written_to_is_an_error_before_the_tests() {
        let missing = Path::new("/nonexistent/monday");
        let failure = Files::new(Some(missing), "server", 0).err().unwrap();
        assert!(failure.to_string().contains("-o NAME"), "{failure}");
        assert!(Files::new(Some(Path::new("/")), "server", 0).is_err());
        let folder = tempfile::tempdir().unwrap();
        assert!(Files::new(Some(&folder.path().join("monday")), "server", 0).is_ok());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let files = Files::new(Some(&folder.path().join("monday")), "server", 0).unwrap();
        fs::write(folder.path().join("monday.json"), "{}").unwrap();
        let compared = folder.path().join("../.").join(folder.path()).join("monday.json");
        assert!(files.spare(Some(&compared)).is_err() && files.spare(None).is_ok());
        assert!(files.spare(Some(&folder.path().join("friday.json"))).is_ok());
    }
}
