//! `test --ndt7` and `test --rpm`: what their flags exclude, and servers that are none.

use crate::program::run;

/// The exit code and standard error.
fn failed(arguments: &[&str]) -> (Option<i32>, String) {
    let output = run(arguments);
    assert!(output.stdout.is_empty());
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn options_that_the_server_decides_are_refused() {
    for option in ["-u", "-t5", "-P2", "--latency", "--nodelay", "-p80", "--rpm", "--bidir"] {
        let (code, error) = failed(&["test", "--ndt7", "ws://127.0.0.1:1", option]);
        assert_eq!(code, Some(2), "{option}");
        assert!(error.contains("cannot be used with"), "{option}: {error}");
    }
    let (code, error) = failed(&["test", "127.0.0.1", "--insecure"]);
    assert_eq!(code, Some(2), "{error}");
}

#[test]
fn two_tests_are_not_stored_as_one() {
    for option in ["--save=x.json", "--html=x.html"] {
        let (code, error) = failed(&["test", "--ndt7", "ws://127.0.0.1:1", option]);
        assert_eq!(code, Some(2));
        assert!(error.contains("add -R"), "{error}");
    }
}

#[test]
fn a_url_or_server_that_is_none_is_named() {
    for (flag, url, code, why) in [
        ("--ndt7", "ftp://127.0.0.1", 2, "give HOST"),
        ("--ndt7", "ws://127.0.0.1/other", 2, "/download or /upload"),
        ("--ndt7", "ws://127.0.0.1:1", 1, "cannot connect to 127.0.0.1:1"),
        ("--rpm", "https://127.0.0.1:1", 1, "cannot connect to 127.0.0.1:1"),
        ("--rpm", "https://user@127.0.0.1", 2, "give HOST"),
    ] {
        let (its, error) = failed(&["test", flag, url, "--insecure"]);
        assert_eq!(its, Some(code), "{error}");
        assert!(error.contains(why), "{error}");
    }
}
