//! Parts of the text, and what no input can add to it.

use super::*;
use proptest::prelude::*;

fn config(origin: &str) -> EdgeConfig {
    EdgeConfig {
        origin: origin.parse().unwrap(),
        listen: "127.0.0.1:8080".parse().unwrap(),
        slice: Some(ByteCount::from_bytes(8 << 20)),
        max_size: ByteCount::from_bytes(10_000_000_000),
        fresh: None,
        cache: CacheDirectory::Private,
        pseudonym: Pseudonym::of(7),
        authorities: Authorities::ALL[0],
        keeps_user: false,
    }
}

fn has(text: &str, directive: &str) {
    assert!(text.lines().any(|line| line.trim() == directive), "no '{directive}' in:\n{text}");
}

#[test]
fn slices_are_keyed_locked_and_not_renewed_in_the_background() {
    let text = configuration(&config("http://origin.example"), Output::Streams);
    for directive in [
        "listen 127.0.0.1:8080;",
        "listen unix:status.sock;",
        "server origin.example:80 max_fails=0;",
        "slice 8388608;",
        "proxy_set_header Range $slice_range;",
        "proxy_cache_key 'http://origin.example $request_uri $slice_range';",
        "proxy_cache_background_update off;",
        "proxy_cache_lock on;",
        // 8 MiB at 1 Mbit/s are 67 s, after 60 s for the answer.
        "proxy_cache_lock_timeout 127s;",
        "proxy_cache_lock_age 127s;",
        "proxy_cache_revalidate on;",
        "proxy_cache_use_stale updating error timeout http_500 http_502 http_503 http_504;",
        "proxy_cache_bypass $http_authorization $http_cookie;",
        "proxy_no_cache $http_authorization $http_cookie;",
        "proxy_pass_request_headers off;",
        "proxy_set_header Host origin.example;",
        "proxy_pass http://origin;",
        "access_log /dev/stdout edge;",
        "HIT 'longhaul-edge; hit';",
    ] {
        has(&text, directive);
    }
    assert!(text.contains("max_size=10000000000 ") && !text.contains("proxy_cache_valid"));
    assert!(!text.contains("proxy_ssl") && !text.contains("resolver"));
}

#[test]
fn whole_objects_are_renewed_in_the_background() {
    let whole = EdgeConfig {
        slice: None,
        fresh: Some(Duration::from_secs(600)),
        cache: CacheDirectory::At("/var/cache/edge".parse().unwrap()),
        ..config("https://[2001:db8::1]/pub/data")
    };
    let text = configuration(&whole, Output::Files);
    for directive in [
        "proxy_cache_background_update on;",
        "proxy_cache_key 'https://[2001:db8::1]/pub/data $request_uri';",
        "proxy_cache_lock_age 3600s;",
        "proxy_cache_valid 200 206 301 600s;",
        "proxy_pass https://origin/pub/data/;",
        "proxy_ssl_verify on;",
        "proxy_ssl_name 2001:db8::1;",
        "proxy_ssl_server_name off;",
        "access_log access.log edge;",
    ] {
        has(&text, directive);
    }
    assert!(
        !text.contains("$slice_range")
            && text.contains("proxy_cache_path /var/cache/edge/objects ")
    );
}

#[test]
fn paths_of_caches() {
    for path in ["/var/cache/longhaul", "/a", "/a.b/c_d-e"] {
        assert_eq!(path.parse::<CachePath>().unwrap().as_str(), path);
    }
    for path in ["", "/", "a", "/a/", "/a//b", "/a/../b", "/a b", "/a;", "/$a", "/a\n", "/'", "/ä"]
    {
        assert!(path.parse::<CachePath>().is_err(), "{path}");
    }
}

/// Words of the text that are neither directives nor values of this file's own.
fn shape(text: &str) -> (usize, usize, usize, usize) {
    let count = |c: char| text.matches(c).count();
    (count(';'), count('{'), count('}'), text.lines().count())
}

proptest! {
    /// Whatever is accepted, the text has the same directives: it adds no line, block or end of one.
    #[test]
    fn no_input_adds_a_directive(
        host in "[a-z0-9.:;{}$'\"\\\\ \n#\\[\\]-]{1,20}",
        path in "(/[a-zA-Z0-9._~;{}$'\"\\\\ \n#%-]{1,10}){0,3}",
        cache in "(/[a-zA-Z0-9._;{}$'\"\\\\ \n#-]{1,10}){1,3}",
        port in any::<u16>(),
        slice in 1u64..,
    ) {
        let base = config("http://a/b");
        let origin = format!("http://{host}{path}").parse().unwrap_or(base.origin.clone());
        let cache = cache.parse().map_or(CacheDirectory::Private, CacheDirectory::At);
        let listen = SocketAddr::from(([127, 0, 0, 1], port));
        let slice = Some(ByteCount::from_bytes(slice));
        let other = EdgeConfig { origin, cache, listen, slice, ..base.clone() };
        let texts = [base, other].map(|config| configuration(&config, Output::Streams));
        prop_assert_eq!(shape(&texts[0]), shape(&texts[1]), "{}", texts[1]);
        prop_assert_eq!(texts[0].matches('\'').count(), texts[1].matches('\'').count());
    }
}
