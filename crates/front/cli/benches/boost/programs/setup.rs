//! The programs, their servers, and a file of random bytes that they fetch.

use bench_harness::Fallible;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Bytes of the file: 20 s of the path, and below the 250 MiB from which rclone opens four connections.
const FILE: usize = 248 << 20;

/// Where programs write: memory, as a slow disk is no part of a prediction.
const MEMORY: &str = "/dev/shm";

/// A program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    Curl,
    Rsync,
    Git,
    Rclone,
    Smbclient,
}

impl Program {
    pub(super) const ALL: [Program; 5] =
        [Program::Curl, Program::Rsync, Program::Git, Program::Rclone, Program::Smbclient];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Program::Curl => "curl",
            Program::Rsync => "rsync over ssh",
            Program::Git => "git clone",
            Program::Rclone => "rclone sftp",
            Program::Smbclient => "smbclient",
        }
    }

    /// A part of the name under which the plan lists the program's own window.
    pub(super) const fn known_as(self) -> Option<&'static str> {
        match self {
            Program::Curl | Program::Git => None,
            Program::Rsync => Some("rsync"),
            Program::Rclone => Some("rclone"),
            Program::Smbclient => Some("smbclient"),
        }
    }

    /// The port of its server.
    pub(super) const fn port(self) -> u16 {
        match self {
            Program::Curl => 80,
            Program::Rsync | Program::Rclone => 22,
            Program::Git => 9418,
            Program::Smbclient => 445,
        }
    }

    /// The packages to install, if a program or its server is missing.
    pub(super) fn missing(self) -> Option<&'static str> {
        let (programs, packages): (&[&str], _) = match self {
            Program::Curl => (&["/usr/bin/curl", "/usr/bin/python3"], "curl python3"),
            Program::Rsync => (
                &["/usr/bin/rsync", "/usr/bin/ssh", "/usr/sbin/sshd"],
                "rsync openssh-client openssh-server",
            ),
            Program::Git => (&["/usr/bin/git"], "git"),
            Program::Rclone => (&["/usr/bin/rclone", "/usr/sbin/sshd"], "rclone openssh-server"),
            Program::Smbclient => (&["/usr/bin/smbclient", "/usr/sbin/smbd"], "smbclient samba"),
        };
        programs.iter().any(|program| !Path::new(program).exists()).then_some(packages)
    }
}

/// What the programs need, in a folder that disappears.
pub(super) struct Setup {
    folder: TempDir,
}

impl Setup {
    /// Writes the file, keys, configurations and a repository with the file.
    pub(super) fn prepare() -> Fallible<Self> {
        let setup = Setup { folder: in_memory()? };
        let at = |name: &str| setup.at(name);
        fs::create_dir(at("data"))?;
        fs::write(at("data/file"), host::random::incompressible(FILE))?;
        if Program::Rsync.missing().is_none() || Program::Rclone.missing().is_none() {
            for key in ["host-key", "user-key"] {
                run(Command::new("ssh-keygen")
                    .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                    .arg(at(key)))?;
            }
        }
        fs::write(
            at("sshd.conf"),
            format!(
                "Port 22\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nUseDNS no\n\
                 PidFile none\nSubsystem sftp internal-sftp\nPermitRootLogin yes\n",
                at("host-key"),
                at("user-key.pub")
            ),
        )?;
        fs::write(
            at("ssh.conf"),
            format!(
                "Host *\n BatchMode yes\n StrictHostKeyChecking no\n UserKnownHostsFile /dev/null\n \
                 LogLevel ERROR\n IdentityFile {}\n",
                at("user-key")
            ),
        )?;
        fs::write(
            at("rclone.conf"),
            format!(
                "[far]\ntype = sftp\nhost = server\nuser = root\nkey_file = {}\nshell_type = none\n\
                 md5sum_command = none\nsha1sum_command = none\n",
                at("user-key")
            ),
        )?;
        if Program::Git.missing().is_none() {
            setup.repository()?;
        }
        Ok(setup)
    }

    /// A bare repository whose only object of size is the file.
    fn repository(&self) -> Fallible<()> {
        let (work, bare) = (self.at("work"), self.at("git/repository.git"));
        let git = |words: &[&str]| {
            let settings = [
                "user.email=a@example.com",
                "user.name=a",
                "core.compression=0",
                "core.bigFileThreshold=1m",
            ];
            let mut git = Command::new("git");
            for setting in settings {
                git.args(["-c", setting]);
            }
            run(git.args(words).env("GIT_CONFIG_GLOBAL", "/dev/null"))
        };
        git(&["init", "-q", &work])?;
        fs::hard_link(self.at("data/file"), Path::new(&work).join("file"))?;
        git(&["-C", &work, "add", "file"])?;
        git(&["-C", &work, "commit", "-q", "-m", "file"])?;
        git(&["clone", "-q", "--bare", &work, &bare])?;
        Ok(fs::remove_dir_all(work)?)
    }

    fn at(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// A folder for what one run writes.
    pub(super) fn folder(&self) -> Fallible<TempDir> {
        in_memory()
    }

    /// The server of a program, in the foreground.
    pub(super) fn service(&self, program: Program, folder: &Path) -> Fallible<String> {
        Ok(match program {
            Program::Curl => format!("cd {} && python3 -m http.server 80", self.at("data")),
            Program::Rsync | Program::Rclone => format!(
                "mount -t tmpfs tmpfs /run && mkdir /run/sshd && exec /usr/sbin/sshd -D -e -f {}",
                self.at("sshd.conf")
            ),
            Program::Git => {
                format!("git daemon --base-path={} --export-all --reuseaddr", self.at("git"))
            }
            Program::Smbclient => {
                format!("smbd --foreground --no-process-group -s {}", self.smb(folder)?)
            }
        })
    }

    /// smbd's configuration, with all its state in the folder.
    fn smb(&self, folder: &Path) -> Fallible<String> {
        let state = folder.join("smb");
        fs::create_dir(&state)?;
        let folders = ["lock", "state", "cache", "pid", "private", "ncalrpc"];
        let folders: String = folders
            .iter()
            .map(|name| {
                let path = match *name {
                    "ncalrpc" => state.join("rpc"),
                    _ => state.clone(),
                };
                let word =
                    if *name == "private" || *name == "ncalrpc" { "dir" } else { "directory" };
                format!(" {name} {word} = {}\n", path.display())
            })
            .collect();
        let text = format!(
            "[global]\n server role = standalone server\n map to guest = bad user\n \
             guest account = root\n smb ports = 445\n disable netbios = yes\n load printers = no\n \
             log file = {}\n{folders}[data]\n path = {}\n guest ok = yes\n read only = yes\n",
            state.join("log").display(),
            self.at("data")
        );
        let file = folder.join("smb.conf");
        fs::write(&file, text)?;
        Ok(file.display().to_string())
    }

    /// The program's command, which fetches the file into the folder.
    pub(super) fn command(&self, program: Program, folder: &Path) -> String {
        let into = folder.join("fetched");
        let into = into.display();
        match program {
            Program::Curl => format!("curl -sf -o {into} http://server/file"),
            Program::Rsync => format!(
                "rsync -q -e 'ssh -F {}' root@server:{} {into}",
                self.at("ssh.conf"),
                self.at("data/file")
            ),
            Program::Git => format!("git clone -q --bare git://server/repository.git {into}"),
            Program::Rclone => format!(
                "rclone --config {} copyto far:{} {into}",
                self.at("rclone.conf"),
                self.at("data/file")
            ),
            Program::Smbclient => format!(
                "smbclient -N -t 600 -s {} //server/data -c 'get file {into}'",
                folder.join("smb.conf").display()
            ),
        }
    }
}

fn in_memory() -> Fallible<TempDir> {
    let folder = if Path::new(MEMORY).is_dir() {
        tempfile::tempdir_in(MEMORY)?
    } else {
        tempfile::tempdir()?
    };
    Ok(folder)
}

fn run(command: &mut Command) -> Fallible<()> {
    let output = command.stdin(Stdio::null()).output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}
