//! `longhaul`, the program.

fn main() {
    longhaul_cli::main();
}
