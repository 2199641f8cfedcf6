//! `longhaul`: measures, explains, tunes and verifies transfers over long fat
//! networks.
//!
//! This floor knows the command line and the terminal, and nothing of
//! protocols or packets: each verb parses its arguments, calls the floors
//! below and prints what they say.

mod failure;
mod verbs;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "longhaul", version, about, propagate_version = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Programs behind an emulated path, inside this machine
    Lab(verbs::lab::LabArgs),
}

fn main() {
    let outcome = match Cli::parse().verb {
        Verb::Lab(args) => verbs::lab::run(&args),
    };
    let code = outcome.unwrap_or_else(|failure| {
        eprintln!("longhaul: {failure}");
        failure.code
    });
    std::process::exit(code);
}
