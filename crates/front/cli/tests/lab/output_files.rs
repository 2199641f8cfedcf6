//! Links that another user plants for root, at the end of the path of every output file and
//! before its end.

#[path = "output_files/flags.rs"]
mod flags;

use crate::program::{Ended, end, run, signal, start};
use flags::{CASES, Case, Target};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;

const USER: u32 = 1234;
const LINK: &str = "rate=50mbit,rtt=2ms";
const PLAN: &str = r#"question = "Whose file?"
[path]
rate = "20mbit"
rtt = "10ms"
[factors]
window = ["16KiB", "64KiB"]
[traffic]
duration = "200ms"
[[plots]]
kind = "rows"
y = "throughput_bps"
"#;
/// A copy's destination, which may be at another host: the program takes no path there.
const COPY: Case = Case {
    flag: "copy DST",
    target: Target::Directory,
    command: "copy --token-file {tokens} -p {copies} 127.0.0.1:plan.toml {}",
};
/// Commands at a time: most of them wait.
const WORKERS: usize = 6;

/// Names in a directory, with the content and the inode of the victim.
type State = (BTreeSet<PathBuf>, String, u64);

/// A directory of root's with a victim, and one of another user's with links to it.
struct Planted {
    folder: TempDir,
}

impl Planted {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("etc/folder")).unwrap();
        fs::write(at("etc/victim"), "precious\n").unwrap();
        fs::create_dir(at("home")).unwrap();
        lchown(at("home"), Some(USER), Some(USER)).unwrap();
        let links = [
            ("../etc", "home/out"),
            ("../etc/folder", "home/last-folder"),
            ("../etc/victim", "home/last"),
            // What `baseline` and `--ring` make of the name.
            ("../etc/victim", "home/last.json"),
            ("../etc/victim", "home/last-1"),
        ];
        for (target, link) in links {
            symlink(target, at(link)).unwrap();
            lchown(at(link), Some(USER), Some(USER)).unwrap();
        }
        Planted { folder }
    }

    /// Paths that lead to root's directory through a link.
    fn paths(&self, target: Target) -> [String; 2] {
        let names = match target {
            Target::File => ["out/victim", "last"],
            Target::Directory => ["out/folder", "last-folder"],
            Target::NewDirectory => ["out/new", "last-folder"],
        };
        names.map(|name| self.folder.path().join("home").join(name).display().to_string())
    }

    /// What is in root's directory.
    fn state(&self) -> State {
        let etc = self.folder.path().join("etc");
        let names = |path: &Path| fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        let victim = etc.join("victim");
        let content = fs::read_to_string(&victim).unwrap();
        let all = names(&etc).chain(names(&etc.join("folder"))).collect();
        (all, content, fs::metadata(&victim).unwrap().ino())
    }
}

/// What the commands need.
struct Prepared {
    folder: TempDir,
    words: BTreeMap<&'static str, String>,
    running: Vec<Child>,
}

impl Prepared {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let lab = format!("planted-links-{}", std::process::id());
        let words = BTreeMap::from([
            ("{measurement}", at("measurement.json")),
            ("{client}", at("client.pcapng")),
            ("{server}", at("server.pcapng")),
            ("{plan}", at("plan.toml")),
            ("{study}", at("study")),
            ("{tokens}", at("tokens")),
            ("{link}", LINK.to_owned()),
            ("{lab}", lab.clone()),
        ]);
        let mut this = Prepared { folder, words, running: Vec::new() };
        fs::write(&this.words["{plan}"], PLAN).unwrap();
        fs::write(&this.words["{tokens}"], "0123456789abcdef0123456789abcdef\n").unwrap();
        this.measure();
        let port = this.serve();
        this.words.insert("{port}", port);
        this.serve_copies();
        let lab = ["lab", "run", "--link", LINK, "--name", &lab, "--", "sh", "-c"];
        this.running.push(start(&[&lab[..], &["echo ready; exec sleep 60"]].concat()));
        this.line_of_last();
        this
    }

    /// A measurement with its captures, and a study beside it.
    fn measure(&self) {
        let program = crate::program::LONGHAUL;
        let [client, server] = ["client", "server"]
            .map(|host| format!("{host}={}", self.words[format!("{{{host}}}").as_str()]));
        let serve = format!("{program} server --one-off");
        let test = ["lab", "run", "--link", LINK, "--pcap", &client, "--pcap", &server];
        let test = [
            &test[..],
            &["--server", &serve, "--", program, "test", "server", "-t", "1"],
            &["--save", &self.words["{measurement}"]],
        ];
        let test = start(&test.concat());
        let study = run(&["study", "run", &self.words["{plan}"], "--out", &self.words["{study}"]]);
        assert!(matches!(study.code, Some(0 | 3)), "{study:?}");
        let test = end(test);
        assert!(matches!(test.code, Some(0 | 3)), "{test:?}");
    }

    fn serve(&mut self) -> String {
        self.running.push(start(&["server", "-B", "127.0.0.1", "-p", "0"]));
        let line = self.line_of_last();
        let address = line.split([' ', ';', '"']).find(|word| word.starts_with("127.0.0.1:"));
        address.unwrap().rsplit(':').next().unwrap().to_owned()
    }

    /// Serves the files that are prepared to copies.
    fn serve_copies(&mut self) {
        let port = stall_retry::free_port().to_string();
        let root = self.folder.path().display().to_string();
        let server = ["server", "-B", "127.0.0.1", "-p", "0", "--tokens", &self.words["{tokens}"]];
        let copies = ["--root", &root, "--copy-port", &port];
        self.running.push(start(&[&server[..], &copies].concat()));
        self.line_of_last();
        self.words.insert("{copies}", port);
    }

    /// The first line of what was started last.
    fn line_of_last(&mut self) -> String {
        let output = self.running.last_mut().unwrap().stdout.take().unwrap();
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).unwrap();
        line
    }

    fn arguments(&self, case: &Case, path: &str) -> Vec<String> {
        let fill = |word: &str| {
            let word = word.replace("{free}", &stall_retry::free_port().to_string());
            let filled = self.words.iter().fold(word, |word, (name, to)| word.replace(name, to));
            filled.replace("{}", path)
        };
        case.command.split(' ').map(fill).collect()
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        for child in &mut self.running {
            signal("TERM", child.id());
            let _ = child.wait();
        }
        let _ = self.folder.path();
    }
}

/// What is wrong, unless the command was refused with one line and nothing of root's is changed.
fn wrong(case: &Case, path: &str, ended: &Ended, changed: bool) -> Option<String> {
    let is_refusal = |line: &&str| {
        line.contains("is a symbolic link")
            || case.target == Target::NewDirectory && line.contains("exists; give a new directory")
    };
    let text = [&ended.stderr[..], &ended.stdout].concat();
    let is_refused = text.lines().filter(is_refusal).count() == 1;
    let is_right = is_refused && !changed && matches!(ended.code, Some(1 | 2));
    let shown = format!("{} at {path}: changed: {changed}, {ended:?}", case.flag);
    (!is_right).then_some(shown)
}

pub(crate) fn planted_links_lead_no_output_of_roots_elsewhere() {
    let (planted, prepared) = (Planted::new(), Prepared::new());
    let before = planted.state();
    let attacks: Vec<(&Case, String)> = CASES
        .iter()
        .chain([&COPY])
        .flat_map(|case| planted.paths(case.target).into_iter().map(move |path| (case, path)))
        .collect();
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let note = |case, path: &str, ended: &Ended| {
        let changed = planted.state() != before;
        found.lock().unwrap().extend(wrong(case, path, ended, changed));
    };
    std::thread::scope(|scope| {
        let attack = || {
            while let Some((case, path)) = attacks.get(next.fetch_add(1, Ordering::Relaxed)) {
                let arguments = prepared.arguments(case, path);
                let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                note(case, path, &run(&arguments));
            }
        };
        for _ in 0..WORKERS {
            scope.spawn(attack);
        }
        for path in planted.paths(Target::File) {
            note(&flags::SERVER_FILE, &path, &served(&prepared, &path));
        }
    });
    let found = found.into_inner().unwrap();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// How a server whose file is at `path` ends one test.
fn served(prepared: &Prepared, path: &str) -> Ended {
    let arguments = prepared.arguments(&flags::SERVER_FILE, path);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut server = start(&arguments);
    let output = BufReader::new(server.stdout.take().unwrap());
    let mut lines = output.lines().map_while(Result::ok);
    assert!(lines.next().unwrap().contains(arguments[4]), "{arguments:?}");
    let test = run(&["test", "127.0.0.1", "-p", arguments[4], "-t", "1"]);
    assert_eq!(test.code, Some(1), "{test:?}");
    let stdout = lines.collect::<Vec<_>>().join("\n");
    // A failed test is not the server's failure.
    Ended { stdout, code: Some(1), ..end(server) }
}

/// A rule of sudo's that permits captures permits no file where the caller may not write.
pub(crate) fn captures_have_the_rights_of_the_caller() {
    let planted = Planted::new();
    let folder = planted.folder.path();
    let capture = |path: &str| {
        let mut command = Command::new(crate::program::LONGHAUL);
        command.args(["capture", "lo", "-t", "0.1", "-w"]).arg(folder.join(path));
        command.env("SUDO_UID", USER.to_string()).env("SUDO_GID", USER.to_string());
        command.stdin(Stdio::null()).output().unwrap()
    };
    let before = planted.state();
    for path in ["etc/ld.so.preload", "home/out/ld.so.preload", "etc/victim"] {
        let output = capture(path);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{path}: {error}");
        assert_eq!(planted.state(), before, "{path}: {error}");
        assert_eq!(error.lines().count(), 1, "{path}: {error}");
    }
    // The caller's own directory, also through a link.
    symlink("plain", folder.join("home/alias")).unwrap();
    fs::create_dir(folder.join("home/plain")).unwrap();
    lchown(folder.join("home/plain"), Some(USER), Some(USER)).unwrap();
    let output = capture("home/alias/trace.pcapng");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let file = fs::metadata(folder.join("home/plain/trace.pcapng")).unwrap();
    assert_eq!((file.uid(), file.gid(), file.mode() & 0o777), (USER, USER, 0o600));
}
