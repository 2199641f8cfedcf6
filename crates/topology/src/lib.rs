//! What is asked of a lab: paths, hosts, links and programs, as people write
//! them down. Pure: text in, checked plans out; files are read by the caller.

mod path;
pub mod plan;
pub mod routes;
pub mod shapes;

pub use path::{
    MAX_MTU, MIN_MTU, NamedPath, PATHS, PathError, PathSpec, Reader, UserPath, UserPaths, Way,
};
pub use plan::{Plan, PlanError};
pub use shapes::{Shape, ShapeKind};
