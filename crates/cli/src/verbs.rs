//! One module for each verb of the command line.

pub(crate) mod lab;
