//! Programs that are not trusted.

use crate::role::TIMEOUT;
use host::confined::{Content, Scratch, kill_all};
use host::netns::NetNs;
use host::program::Reaper;
use host::{clock, sandbox};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;
use units::ByteCount;

/// What such a program can do, and that nothing of it is left.
pub(crate) fn role() -> i32 {
    let (host, reaper) = (NetNs::create().unwrap(), Reaper::start(None));
    let scratch = Scratch::mount(ByteCount::from_bytes(1 << 20)).unwrap();
    let run = |line: &str, limit: usize| {
        let files = [
            ("text", Content::Text("as written".to_owned())),
            ("zeros", Content::Zeros(ByteCount::from_bytes(1 << 40))),
        ];
        let files = files.map(|(name, content)| (name.to_owned(), content)).to_vec();
        let directory = scratch.directory(false, |_| files).unwrap();
        let words = ["sh", "-c", line].map(OsString::from);
        let mut program = reaper.start_confined(&host, &words, &directory, limit).unwrap();
        let until = clock::now() + TIMEOUT;
        let mut fits = true;
        while fits && program.program().ended().is_none() {
            assert!(clock::now() < until, "{line}");
            fits = program.collect().unwrap();
            let _ = program.program().wait_at_most(Duration::from_millis(5));
        }
        let fits = fits && program.collect().unwrap();
        (fits.then(|| program.output()), program.program().ended())
    };
    let said = |line: &str| run(line, 10_000).0.unwrap_or_default();
    assert_eq!(said("cat text; stat -c ' %s' zeros"), "as written 1099511627776\n");
    let nobody = if sandbox::user() == 0 { "65534 65534\n" } else { "0 0\n" };
    assert_eq!(said("echo $(id -u) $(id -G)"), nobody);
    assert_eq!(said("env | cut -d= -f1 | sort | tr '\\n' ' '"), "HOME LANG PATH PWD TMPDIR ");
    assert_eq!(
        said("echo $PWD/here > here; cat here; cat < /dev/null"),
        "/dev/shm/program-3/here\n"
    );
    if sandbox::user() == 0 {
        assert_eq!(said("echo x > /dev/shm/other || echo refused"), "refused\n");
    }
    // The tmpfs is as large as asked; what fills it ends with its directory.
    assert_eq!(
        said("head -c 2000000 /dev/zero > big || test $(stat -c %s big) -le 1048576 && echo full"),
        "full\n"
    );
    assert_eq!(said("head -c 500000 /dev/zero > big && echo done"), "done\n");
    assert_eq!(run("yes", 10_000), (None, None), "more than its limit");
    assert_eq!(run("exit 7", 10), (Some(String::new()), Some(7)));
    // No terminal, no capabilities, not even those of user 0 in its own namespace.
    assert_eq!(said("ps -o tty= -p $$ 2>/dev/null || echo '?'").trim(), "?");
    assert_eq!(said("grep CapEff /proc/self/status"), "CapEff:\t0000000000000000\n");
    assert_eq!(said("grep NoNewPrivs /proc/self/status"), "NoNewPrivs:\t1\n");
    assert_eq!(said("cat /proc/self/oom_score_adj"), "1000\n");
    // A daemon leaves its session, and ends with the sandbox's other processes.
    let daemon = said("setsid sleep 1000 >/dev/null 2>&1 & echo $!");
    let status = format!("/proc/{}", daemon.trim());
    assert!(Path::new(&status).exists(), "{status}");
    assert!(kill_all());
    assert!(!Path::new(&status).exists(), "the daemon is alive");
    0
}
