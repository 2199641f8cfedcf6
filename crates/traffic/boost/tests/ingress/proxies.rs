//! Programs that use near as a proxy.

use crate::stage::{PROXY, PROXY_WITH_TOKEN, SERVERS, beside, text};

/// What curl prints, and its exit code.
fn fetch(proxy: &str, words: &[&str]) -> (String, Option<i32>) {
    let output = beside(&[&["curl", "-sS", "-p", "--max-time", "20", "-x", proxy], words].concat());
    (text(&[output.stdout, output.stderr].concat()), output.status.code())
}

pub(crate) fn curl() {
    for scheme in ["socks5h", "socks5", "http"] {
        let proxy = format!("{scheme}://{PROXY}");
        let (got, code) = fetch(&proxy, &["http://www.example/x"]);
        assert_eq!(code, Some(0), "{scheme}: {got}");
        assert!(got.starts_with("GET /x HTTP/1.1 at 198.51.100.7:80"), "{scheme}: {got}");
        let v6 = format!("http://[{}]/", SERVERS[1]);
        let (got, _) = fetch(&proxy, &["-g", &v6]);
        assert!(got.contains("at [2001:db8::7]:80"), "{scheme}: {got}");
    }
    for scheme in ["socks5h", "http"] {
        let with = |credentials: &str| {
            let proxy = format!("{scheme}://{credentials}{PROXY_WITH_TOKEN}");
            fetch(&proxy, &["http://www.example/"])
        };
        assert_eq!(with("any:secret@").1, Some(0));
        assert_ne!(with("any:wrong@").1, Some(0));
        let (got, code) = with("");
        assert_ne!(code, Some(0), "{got}");
    }
}

pub(crate) fn destinations() {
    let refused = [
        "http://10.0.0.1/",
        "http://127.0.0.1:1080/",
        "http://metadata.example/",
        "http://private.example/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::ffff:169.254.169.254]/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://0.0.0.0/",
        "http://2130706433/",
    ];
    for url in refused {
        let (got, code) = fetch(&format!("socks5h://{PROXY}"), &["-g", url]);
        assert_eq!(code, Some(97), "{url}: {got}");
        assert!(got.contains("(2)"), "not allowed by the rule set: {got}");
        let (got, code) = fetch(&format!("http://{PROXY}"), &["-g", url]);
        assert_eq!(code, Some(56), "{url}: {got}");
        assert!(got.contains("403"), "{got}");
    }
    let codes = [("http://198.51.100.7:81/", "(5)", "502"), ("http://no.example/", "(4)", "502")];
    for (url, socks, http) in codes {
        let (got, _) = fetch(&format!("socks5h://{PROXY}"), &[url]);
        assert!(got.contains(socks), "{url}: {got}");
        let (got, _) = fetch(&format!("http://{PROXY}"), &[url]);
        assert!(got.contains(http), "{url}: {got}");
    }
}
