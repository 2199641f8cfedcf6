//! `longhaul boost pair`: the keys of both boxes, and the commands that start them.

use crate::console::Console;
use crate::failure::{DONE, Outcome};
use clap::Args;
use longhaul::boost::{self, Forward, PORT};

/// Make the keys of both boxes and print the commands that start them
///
/// Paste each block into a shell of its box: it writes the box's key to a file that only you can
/// read, and starts the box. Each box has a key pair of its own and knows the other's public key,
/// so the two blocks together are secret.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct PairArgs {
    /// Far box as the near box reaches it
    #[arg(long, value_name = "HOST[:PORT]", default_value = "FAR")]
    far: String,
    /// Port that the near box forwards; repeatable
    #[arg(long, short = 'L', value_name = "[ADDRESS:]PORT:HOST:PORT")]
    forward: Vec<Forward>,
}

const EXAMPLES: &str = "\
Examples:
  longhaul boost pair --far far.example --forward 8080:origin.example:80
  longhaul boost pair --far [2001:db8::1]:7425 -L 2222:nas:22";

pub(super) fn run(args: &PairArgs, console: &mut Console) -> Outcome {
    let [near, far] = boost::pair()?;
    console.print(&text(args, &near, &far));
    Ok(DONE)
}

fn text(args: &PairArgs, near: &str, far: &str) -> String {
    let host_and_port = args.far.rsplit_once(':').filter(|(host, _)| !host.ends_with(':'));
    let port = host_and_port.and_then(|(_, port)| port.parse().ok()).unwrap_or(PORT);
    let (mut allows, mut forwards) = (String::new(), String::new());
    for forward in &args.forward {
        allows += &format!(" --allow {}", forward.target);
        forwards += &format!(" --forward {forward}");
    }
    if args.forward.is_empty() {
        (allows, forwards) =
            (" --allow HOST:PORT".to_owned(), " --forward 8080:HOST:PORT".to_owned());
    }
    let far_box = &args.far;
    format!(
        "# On the far box:\n\
         (umask 077; cat > boost-far.key) <<'KEY'\n{far}\nKEY\n\
         longhaul boost far --listen [::]:{port} --key-file boost-far.key{allows}\n\n\
         # On the near box:\n\
         (umask 077; cat > boost-near.key) <<'KEY'\n{near}\nKEY\n\
         longhaul boost near --far {far_box} --key-file boost-near.key{forwards}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_fit_together() {
        let forward = vec!["8080:origin.example:80".parse().unwrap()];
        let with_port = PairArgs { far: "far.example:99".to_owned(), forward };
        let shown = text(&with_port, "NEAR", "FAR");
        for line in [
            "longhaul boost far --listen [::]:99 --key-file boost-far.key --allow origin.example:80",
            "longhaul boost near --far far.example:99 --key-file boost-near.key --forward 127.0.0.1:8080:origin.example:80",
        ] {
            assert!(shown.lines().any(|one| one == line), "{shown}");
        }
        let plain = PairArgs { far: "2001:db8::1".to_owned(), forward: Vec::new() };
        let shown = text(&plain, "NEAR", "FAR");
        assert!(
            shown.contains("--listen [::]:7425") && shown.contains("--allow HOST:PORT"),
            "{shown}"
        );
    }
}
