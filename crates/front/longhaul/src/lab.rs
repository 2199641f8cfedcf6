//! Programs on hosts of this machine, with emulated paths between them.
//!
//! ```no_run
//! use longhaul::{Document, Request, StopFlag, lab::LabRequest};
//!
//! // First in main: a lab runs in a process of its own, which is this program again.
//! longhaul::init();
//! let request = LabRequest::new("rate=100mbit,rtt=50ms", ["ping", "-c", "3", "server"]);
//! match longhaul::run(Request::Lab(request), &mut |_| (), &StopFlag::new()) {
//!     Ok(Document::Lab(lab)) => println!("valid: {}", lab.valid),
//!     Ok(_) => unreachable!("the document is the request's"),
//!     Err(problem) => eprintln!("{problem}"),
//! }
//! ```

mod arguments;
pub mod check;
mod document;
mod event;
mod far_end;
mod paths;
mod request;
pub mod running;
mod session;
mod stage;

pub use document::{
    ExecDocument, LabDocument, LabProgramReport, LinkDocument, RunningLab, SetDocument,
};
pub use event::LabEvent;
pub use lab::{EndReason, EndSignal};
pub use paths::{NamedPath, named_paths, parse_path};
pub use request::{
    FarEnd, LabHosts, LabProgram, LabRequest, PairRequest, ProgramOutput, check_sysctl,
};
pub use session::run;
pub use topology::{DriverChoice, Emulator, EmulatorSettings, Shape, ShapeKind};
