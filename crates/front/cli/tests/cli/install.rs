//! `scripts/install.sh`: what it installs, what it refuses, and that nothing is left of that.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../scripts/install.sh");

/// A release whose program is a script.
struct Release {
    folder: TempDir,
}

impl Release {
    fn new(version: &str, files: &[&str]) -> Self {
        let folder = TempDir::with_prefix("a release ").unwrap();
        let release = Release { folder };
        release.add(version, files);
        release
    }

    /// Packs another version and its checksum.
    fn add(&self, version: &str, files: &[&str]) {
        let name = archive(version);
        let tree = self.folder.path().join("tree").join(name.strip_suffix(".tar.gz").unwrap());
        for file in ["bin/longhaul"].iter().chain(files) {
            let path = tree.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("#!/bin/sh\necho longhaul {version} \"$@\"\n")).unwrap();
        }
        self.shell(&format!(
            "tar -C tree -czf {name} {} && sha256sum {name} >SHA256SUMS",
            name.trim_end_matches(".tar.gz")
        ));
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn shell(&self, line: &str) {
        let status = Command::new("sh").args(["-ec", line]).current_dir(self.path()).status();
        assert!(status.unwrap().success(), "{line}");
    }

    fn prefix(&self) -> PathBuf {
        self.path().join("the prefix")
    }

    /// Runs the script with the prefix and these arguments.
    fn run(&self, script: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new("sh");
        command.arg(script).args(arguments).arg("--prefix").arg(self.prefix());
        command.current_dir(self.path()).output().unwrap()
    }

    fn install(&self) -> Output {
        self.run(SCRIPT, &["--from", self.path().to_str().unwrap()])
    }

    /// Runs it, where it has to refuse, and returns its only line.
    fn refused(&self, arguments: &[&str]) -> String {
        let output = self.run(SCRIPT, arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), text.lines().count()), (Some(1), 1), "{text}");
        assert!(output.stdout.is_empty() && installed(&self.prefix()).is_empty());
        text
    }
}

fn archive(version: &str) -> String {
    let machine = Command::new("uname").arg("-m").output().unwrap().stdout;
    format!("longhaul-{version}-{}-linux.tar.gz", String::from_utf8(machine).unwrap().trim())
}

/// Every file below the prefix.
fn installed(folder: &Path) -> Vec<String> {
    let output = Command::new("find").args([".", "!", "-type", "d"]).current_dir(folder).output();
    let Ok(output) = output else { return Vec::new() };
    let text = String::from_utf8(output.stdout).unwrap();
    let mut files: Vec<String> = text.lines().map(str::to_owned).collect();
    files.sort();
    files
}

#[test]
fn a_verified_archive_is_installed_replaced_and_removed() {
    let release = Release::new("1.0", &["share/man/man1/longhaul.1", "share/doc/longhaul/old.md"]);
    let output = release.install();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.starts_with("longhaul 1.0 --version\n"), "{text}");
    assert!(text.contains("is not in PATH"), "{text}");
    let files = ["./bin/longhaul", "./share/doc/longhaul/old.md", "./share/longhaul/files"];
    let files = [&files[..], &["./share/man/man1/longhaul.1"]].concat();
    assert_eq!(installed(&release.prefix()), files);
    let mode = |file: &str| fs::metadata(release.prefix().join(file)).unwrap().permissions().mode();
    assert_eq!((mode("bin/longhaul") & 0o777, mode(files[1]) & 0o777), (0o755, 0o644));

    // Another version: what it does not have is gone; other programs' files stay.
    fs::write(release.prefix().join("bin/other"), "").unwrap();
    release.shell("rm -r tree longhaul-1.0*");
    release.add("1.1", &["share/man/man1/longhaul.1"]);
    assert!(release.install().status.success());
    let files = ["./bin/longhaul", "./bin/other", "./share/longhaul/files"];
    let files = [&files[..], &["./share/man/man1/longhaul.1"]].concat();
    assert_eq!(installed(&release.prefix()), files);

    // From the script's own folder, as a user downloads them.
    let script = release.path().join("install.sh");
    fs::copy(SCRIPT, &script).unwrap();
    assert!(release.run(script.to_str().unwrap(), &[]).status.success());
    assert!(release.run(SCRIPT, &["--uninstall"]).status.success());
    assert_eq!(installed(&release.prefix()), ["./bin/other"]);
    assert!(!release.prefix().join("share/doc/longhaul").exists());
    let output = release.run(SCRIPT, &["--uninstall"]);
    assert!(String::from_utf8(output.stderr).unwrap().contains("nothing was installed"));
}

#[test]
fn nothing_unverified_is_installed() {
    let release = Release::new("1.0", &[]);
    let from = release.path().to_str().unwrap().to_owned();
    let with = |line: &str| {
        release.shell(line);
        release.refused(&["--from", &from])
    };
    let name = archive("1.0");
    release.shell("cp SHA256SUMS right");
    let changed = with(&format!("cp {name} whole; printf x >>{name}"));
    assert!(changed.contains("the checksum is not the one in SHA256SUMS"), "{changed}");
    let missing = with(&format!("rm {name}"));
    assert!(missing.contains("cannot read"), "{missing}");
    release.shell(&format!("mv whole {name}"));
    let none = with("sed s/longhaul/other/ right >SHA256SUMS");
    assert!(none.contains("names no archive"), "{none}");
    let short = with("cut -c 2- right >SHA256SUMS");
    assert!(short.contains("names no archive"), "{short}");
    let outside = with("sed 's|  longhaul|  ../longhaul|' right >SHA256SUMS");
    assert!(outside.contains("names no archive"), "{outside}");
    let two = with("{ cat right; sed s/-1[.]0-/-1.1-/ right; } >SHA256SUMS");
    assert!(two.contains("several archives"), "{two}");
    let gone = with("rm SHA256SUMS");
    assert!(gone.contains("cannot read"), "{gone}");
    for (from, why) in [
        ("http://127.0.0.1:1/", "only https:// addresses and folders"),
        ("ftp://127.0.0.1/", "only https:// addresses and folders"),
        ("/no/such/folder", "cannot read /no/such/folder/SHA256SUMS"),
    ] {
        let line = release.refused(&["--from", from]);
        assert!(line.contains(why), "{line}");
    }
    assert!(release.refused(&["--form", &from]).contains("unknown argument --form"));
    assert!(release.refused(&[]).contains("--from DIR"));
}

#[test]
fn a_download_goes_through_curl_and_is_verified() {
    let release = Release::new("1.0", &[]);
    // What curl was asked for, served from the folder.
    let tools = release.path().join("tools");
    fs::create_dir(&tools).unwrap();
    let curl = "#!/bin/sh\necho \"$*\" >>\"$0.asked\"\nwhile [ \"$1\" != -o ]; do shift; done\n\
                exec cp \"$(dirname \"$0\")/../${4##*/}\" \"$2\"\n";
    fs::write(tools.join("curl"), curl).unwrap();
    fs::set_permissions(tools.join("curl"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    let run = || {
        let mut command = Command::new("sh");
        command.args([SCRIPT, "--from", "https://example.org/1.0/", "--prefix"]);
        command.arg(release.prefix()).env("PATH", &path).output().unwrap()
    };
    let output = run();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let asked = fs::read_to_string(tools.join("curl.asked")).unwrap();
    let urls: Vec<&str> = asked.lines().filter_map(|line| line.split(' ').next_back()).collect();
    let archive = format!("https://example.org/1.0/{}", archive("1.0"));
    assert_eq!(urls, ["https://example.org/1.0/SHA256SUMS", archive.as_str()]);
    assert!(asked.lines().all(|line| line.contains("--proto =https")), "{asked}");
    assert_eq!(installed(&release.prefix()), ["./bin/longhaul", "./share/longhaul/files"]);
    fs::remove_dir_all(release.prefix()).unwrap();
    release.shell(&format!("printf x >>{}", archive.rsplit('/').next().unwrap()));
    assert_eq!((run().status.code(), installed(&release.prefix()).len()), (Some(1), 0));
}

#[test]
fn a_list_of_files_does_not_reach_outside_the_prefix() {
    let release = Release::new("1.0", &[]);
    assert!(release.install().status.success());
    fs::write(release.path().join("precious"), "").unwrap();
    fs::write(release.prefix().join("share/longhaul/files"), "../precious\n").unwrap();
    let output = release.run(SCRIPT, &["--uninstall"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(release.path().join("precious").exists());
}
