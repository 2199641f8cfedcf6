//! Descriptions of labs: paths, hosts, links and programs, from text to checked
//! plans. Pure: the caller reads the files.

mod driver_choice;
mod emulator;
mod path;
pub mod plan;
pub mod routes;
pub mod shapes;
mod similar;
pub mod toml_text;

pub use driver_choice::DriverChoice;
pub use emulator::{Emulator, EmulatorSettings, for_emulator};
pub use path::{
    KEYS, MAX_MTU, MIN_MTU, NamedPath, PATHS, PathDirection, PathError, PathKey, PathSpec, Reader,
    UserPath, UserPaths, key_help,
};
pub use plan::{Plan, PlanError};
pub use shapes::{Shape, ShapeKind};
pub use similar::did_you_mean;
