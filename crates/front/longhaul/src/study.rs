//! Studies: each combination of settings measured repeatedly, in labs or between real hosts, and
//! compared.
//!
//! ```no_run
//! use longhaul::study::{StudyPlan, StudyRequest};
//! use longhaul::{Document, Request, StopFlag};
//!
//! // First in main: labs run in a process of their own, which is this program again.
//! longhaul::init();
//! let plan = StudyPlan::BuiltIn { name: "edge-cloud".to_owned(), only: None };
//! let request = StudyRequest { quick: true, ..StudyRequest::new(plan, "edge-cloud.study") };
//! match longhaul::run(Request::Study(request), &mut |_| (), &StopFlag::new()) {
//!     Ok(Document::Study(report)) => println!("{}", report.answer.join(" ")),
//!     Ok(_) => unreachable!("the document is the request's"),
//!     Err(problem) => eprintln!("{problem}"),
//! }
//! ```

mod merge;
mod pages;
mod request;
mod results;
mod run;

pub use merge::{StudyMergeRequest, merge};
pub use request::{StudyHostAccess, StudyPlan, StudyRequest};
pub use results::{
    ExportForm, Exported, StudyCompareRequest, StudyExportRequest, StudyReportRequest, compare,
    export, report,
};
pub use run::{StudyEvent, StudyProgress, run};

use serde::{Deserialize, Serialize};

/// The built-in studies.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StudyList {
    /// `longhaul.study-list/1`.
    pub schema: String,
    /// The version of longhaul.
    pub version: String,
    /// Each of them.
    pub studies: Vec<ListedStudy>,
}

/// A built-in study.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedStudy {
    /// Its name.
    pub name: String,
    /// Its question.
    pub question: String,
}

/// Lists the built-in studies, which repeat published experiments.
#[must_use]
pub fn list() -> StudyList {
    let studies = study::BUILT_IN.iter().map(|known| ListedStudy {
        name: known.name.to_owned(),
        question: known.question.to_owned(),
    });
    StudyList {
        schema: "longhaul.study-list/1".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        studies: studies.collect(),
    }
}
