//! Mistakes that people make, over all verbs: each is one line that says what is wrong, and most
//! lines end with a command that works.

use crate::program::{Server, run};
use std::collections::BTreeSet;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// What an error ends with.
#[derive(Clone, Copy)]
enum Next {
    /// The help of the command.
    Help,
    /// This command, which succeeds here.
    Works(&'static str),
    /// This command, which needs a host, time or privileges.
    Needs(&'static str),
    /// None: the command was right, and what it was about is not.
    Nothing,
}

use Next::{Help, Needs, Nothing, Works};

/// Command lines after `longhaul`, what the error says, and its end. `DIR` has the files
/// `text` (of words), `empty`, `binary` and `plan.toml` (no plan); `PORT` is a server's.
const MISTAKES: &[(&str, &str, Next)] = &[
    // Verbs.
    ("no-such-verb", "no-such-verb", Help),
    ("tset 127.0.0.1 -p PORT -n 1K", "tset", Works("test 127.0.0.1 -p PORT -n 1K")),
    ("bdpp 100mbit 173ms", "bdpp", Works("bdp 100mbit 173ms")),
    ("study lits", "lits", Works("study list")),
    (
        "calc transfr 1GB --rate 1gbit --rtt 1ms",
        "transfr",
        Works("calc transfer 1GB --rate 1gbit --rtt 1ms"),
    ),
    ("tune aply --rate 1gbit --rtt 9ms", "aply", Needs("tune apply --rate 1gbit --rtt 9ms")),
    ("completions csh", "csh", Works("completions zsh")),
    // Simulations.
    ("sim run", "--link", Help),
    ("sim run --link rate=unlimited,rtt=20ms", "nothing limits 'cubic'", Help),
    ("sim run --link rate=1mbit,rtt=20ms --flow cubik", "did you mean 'cubic'", Help),
    ("sim run --link rate=1mbit,rtt=20ms --flow cubic,strat=1s", "did you mean 'start'", Help),
    ("sim run --link rate=1mbit,rtt=20ms --flow 2000xcubic", "1 to 1000 flows", Help),
    ("sim run --link rate=1mbit,rtt=20ms --flow xcp", "queue=xcp", Help),
    ("sim run --link rate=1mbit,rtt=20ms --flow psockets:0", "psockets", Help),
    ("sim run --link rate=1mbit,rtt=20ms -t 0", "above 0", Help),
    ("sim run DIR/plan.toml --link rate=1mbit,rtt=20ms", "cannot be used with", Help),
    ("sim run DIR/missing.toml", "cannot read", Help),
    ("sim advise --rate 1mbit", "--rtt", Help),
    ("sim advise --link rate=unlimited,rtt=20ms,loss=1%", "a path without a rate", Help),
    ("sim advise --link geo --loss 1%", "cannot be used with", Help),
    ("sim compare --link rate=1mbit,rtt=20ms --runs 0", "0 runs", Help),
    // Hosts and ports.
    ("test", "<HOST>", Help),
    ("test no.such.host.invalid", "cannot resolve", Help),
    ("test http://127.0.0.1:PORT/ -n 1K", "is a URL", Works("test 127.0.0.1:PORT -n 1K")),
    ("ping ftp://127.0.0.1/file -c 1", "is a URL", Works("ping 127.0.0.1 -c 1")),
    ("test 127.0.0.1:http", "is not a port", Help),
    ("test 127.0.0.1:5201 -p 5202", "two ports", Help),
    ("test 127.0.0.1 -p 70000", "ports are 1 to 65535", Help),
    ("test [::1 -p PORT", "[::1", Help),
    ("ping", "<HOST>", Help),
    ("ping 127.0.0.1 -6", "no IPv6 address", Help),
    ("trace", "<HOST>", Help),
    ("baseline", "HOST", Help),
    ("test 127.0.0.1 -B nowhere", "nowhere", Help),
    // Units and numbers.
    ("bdp 100mbit 173", "give the unit", Works("bdp 100mbit 173ms")),
    ("bdp 100 173ms", "give the unit", Works("bdp 100mbit 173ms")),
    ("bdp 10MB/s 173ms", "bytes", Works("bdp 80mbit 173ms")),
    ("bdp 100mbit -173ms", "cannot be negative", Works("bdp 100mbit 173ms")),
    ("bdp 1,5gbit 173ms", "1,5gbit", Works("bdp 1.5gbit 173ms")),
    ("bdp 0 173ms", "a rate of zero", Help),
    ("bdp 100mbit 173ms --streams many", "many", Help),
    (
        "test 127.0.0.1 -p PORT -n 1K -b 10MB",
        "bytes",
        Works("test 127.0.0.1 -p PORT -n 1K -b 80mbit"),
    ),
    (
        "test 127.0.0.1 -p PORT -n 1K -b 90mb/s",
        "mb/s",
        Works("test 127.0.0.1 -p PORT -n 1K -b 90mbit"),
    ),
    ("test 127.0.0.1 -t ten", "ten", Help),
    ("test 127.0.0.1 -t", "a value is required", Help),
    ("test 127.0.0.1 -P 99999999999", "99999999999", Help),
    ("test 127.0.0.1 -t -5 -p PORT", "cannot be negative", Needs("test 127.0.0.1 -t 5 -p PORT")),
    ("ping 127.0.0.1 -c ten", "ten", Help),
    ("ping 127.0.0.1 -i 0.5ms", "at least 1 ms", Help),
    ("trace 127.0.0.1 -m 256", "256", Help),
    ("watch --interval 1us --once", "1us", Help),
    ("calc cubic --rtt 10ms --loss 200%", "200%", Help),
    ("doctor --rtt 100", "give the unit", Needs("doctor --rtt 100ms")),
    (
        "tune plan --rate 1gbit --rtt 100",
        "give the unit",
        Works("tune plan --rate 1gbit --rtt 100ms"),
    ),
    ("iperf2 -c 127.0.0.1 -n 1KB", "kmgKMG", Help),
    // Flags.
    ("bdp 100mbit 173ms --widnow 64KiB", "--widnow", Works("bdp 100mbit 173ms --window 64KiB")),
    (
        "ping 127.0.0.1 -c 1 --intervall 1s",
        "--intervall",
        Works("ping 127.0.0.1 -c 1 --interval 1s"),
    ),
    // A flag that is like no other.
    ("capture lo --filter tcp", "'--filter' found; see", Help),
    ("test 127.0.0.1 -4 -6", "cannot be used with", Help),
    ("test 127.0.0.1 -R --bidir", "cannot be used with", Help),
    ("trace 127.0.0.1 --udp --tcp", "cannot be used with", Help),
    ("test 127.0.0.1 --token-file DIR/missing", "token", Help),
    ("test 127.0.0.1 --token a --token-file DIR/text", "cannot be used with", Help),
    ("tune plan --rate 1gbit", "--rtt", Help),
    ("doctor", "longhaul doctor --rtt 100ms", Help),
    ("doctor --for linux", "--rate", Help),
    ("server --root DIR", "--tokens", Help),
    ("capture lo", "-w FILE", Help),
    ("copy DIR/text", "", Help),
    // Names.
    (
        "doctor --for lynux --rate 1gbit --rtt 9ms",
        "lynux",
        Works("doctor --for linux --rate 1gbit --rtt 9ms"),
    ),
    (
        "tune plan --profile data-transfer-node-10",
        "node-10",
        Works("tune plan --profile data-transfer-node-10g"),
    ),
    ("bdp 100mbit 173ms --color alwys", "alwys", Works("bdp 100mbit 173ms --color always")),
    ("test 127.0.0.1 -p PORT -C cubik", "cubik", Help),
    ("lab paths goe", "goe", Works("lab paths geo")),
    ("lab run --link goe -- true", "goe", Needs("lab run --link geo -- true")),
    (
        "lab run --link geo ping -c 1 server",
        "ping",
        Needs("lab run --link geo -- ping -c 1 server"),
    ),
    ("lab run -- true", "--link", Help),
    ("lab check --link rte=1mbit,rtt=5ms", "rte", Help),
    ("lab check --link rate=fast,rtt=5ms", "fast", Help),
    ("study check edge-clowd --quick", "edge-cloud", Works("study check edge-cloud --quick")),
    ("study run edge-cloud --only nothing", "nothing", Help),
    // Files.
    ("study check DIR/missing.toml", "cannot read", Help),
    ("study check DIR/plan.toml", "plan.toml", Help),
    ("lab up DIR/plan.toml", "plan.toml", Help),
    ("lab up DIR/missing.toml", "cannot read", Help),
    ("baseline --servers DIR/text", "a list has lines", Help),
    ("baseline 127.0.0.1 --compare DIR/text", "it is not JSON", Help),
    ("test 127.0.0.1 --compare DIR/missing", "missing", Help),
    ("server --tokens DIR/empty -p 0", "no token in", Help),
    ("trace 127.0.0.1 --mmdb DIR/text", "MaxMind", Help),
    ("doctor --read DIR/text", "text", Help),
    ("explain DIR/missing", "cannot read", Nothing),
    ("explain DIR/empty", "empty", Nothing),
    ("explain DIR/binary", "binary", Nothing),
    ("explain DIR", "cannot", Nothing),
    ("pcap DIR/text", "text", Nothing),
    ("pcap packets DIR/text tcp.prot==80", "tcp.port", Nothing),
];

/// Runs the command line after `longhaul`: its exit code, and what it says on standard error.
fn complaint(words: &str) -> (Option<i32>, String) {
    let words: Vec<&str> = words.split(' ').collect();
    let output = run(&words);
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// Checks the error of a mistake, and returns the command it ends with if that has to work.
fn checked(words: &str, says: &str, next: Next, place: &dyn Fn(&str) -> String) -> Option<String> {
    let (code, text) = complaint(&place(words));
    assert!(matches!(code, Some(1 | 2)), "{words}: {code:?} {text}");
    assert!(text.starts_with("longhaul: ") && text.lines().count() == 1, "{words}: {text}");
    assert!(text.contains(says), "{words}: {text}");
    let text = text.trim_end();
    let command = match next {
        Help => {
            let said = text.rsplit_once("; see: longhaul ");
            said.unwrap_or_else(|| panic!("{words}: {text}")).1.to_owned()
        }
        Works(command) | Needs(command) => {
            let command = place(command);
            assert!(text.ends_with(&format!("; try: longhaul {command}")), "{words}: {text}");
            command
        }
        Nothing => return None,
    };
    assert!(!matches!(next, Help) || command.ends_with("--help"), "{words}: {text}");
    (!matches!(next, Needs(_))).then_some(command)
}

fn files(folder: &Path) {
    for (name, bytes) in [
        ("text", &b"some words\nof no format\n"[..]),
        ("empty", b""),
        ("binary", &[0, 159, 146, 150, 255, 254, 7, 8]),
        ("plan.toml", b"question = 5\n"),
    ] {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    }
}

#[test]
fn sixty_mistakes_are_one_line_each_and_fifty_end_with_a_command_that_works() {
    let folder = tempfile::tempdir().unwrap();
    files(folder.path());
    let server = Server::start(&[]);
    let directory = folder.path().to_str().unwrap();
    let place = |text: &str| text.replace("DIR", directory).replace("PORT", &server.port);
    let threads = 4;
    let (each, place) = (MISTAKES.len().div_ceil(threads), &place);
    let commands: Vec<String> = std::thread::scope(|scope| {
        let check = |some: &'static [(&str, &str, Next)]| {
            let checked =
                |(words, says, next): &(&str, &str, Next)| checked(words, says, *next, place);
            scope.spawn(move || some.iter().filter_map(checked).collect::<Vec<_>>())
        };
        let running: Vec<_> = MISTAKES.chunks(each).map(check).collect();
        running.into_iter().flat_map(|one| one.join().unwrap()).collect()
    });
    assert!(MISTAKES.len() >= 60 && commands.len() >= 50, "{} {}", MISTAKES.len(), commands.len());
    let distinct: Vec<String> = BTreeSet::from_iter(commands).into_iter().collect();
    std::thread::scope(|scope| {
        for some in distinct.chunks(distinct.len().div_ceil(threads)) {
            scope.spawn(move || {
                for command in some {
                    let output = run(&command.split(' ').collect::<Vec<_>>());
                    let said = String::from_utf8_lossy(&output.stderr);
                    assert!(output.status.success(), "longhaul {command}: {said}");
                }
            });
        }
    });
}
