//! Paths in a user's files.

use super::*;

const FILE: &str = r#"
[office]
about = "Office to the data centre"
source = "measured on a Monday"
rtt = "40ms"
rate = "100mbit"
up.rate = "20mbit"
loss = 0.01
jitter = "2ms"
overtake = true
"@10s".up.loss = "2%"
"@20s.rate" = "1mbit"
repeat = "30s"
mtu = 9000

[mobile]
base = "office"
rate = "trace:traces/lte"

[far]
base = "geo"
loss = "1%"
"#;

const FILES: [(&str, &str); 3] = [
    ("my/paths.toml", FILE),
    ("my/traces/lte", "1\n2\n"),
    ("one.toml", "name = \"home\"\nrate = \"50mbit\"\nrtt = \"9ms\"\n"),
];

#[test]
fn the_keys_are_those_of_the_command_line() {
    let spec = read("my/paths.toml:office", &FILES).unwrap();
    assert_eq!(
        spec,
        path(
            "up.rate=20mbit,down.rate=100mbit,rtt=40ms,jitter=2ms,overtake=yes,loss=0.01,mtu=9000,\
             @10s.up.loss=2%,@20s.rate=1mbit,repeat=30s"
        )
    );
    let lossless = read("my/paths.toml:office,loss=0", &FILES).unwrap();
    assert_eq!(lossless.directions()[0].mean_loss(), "0".parse().unwrap());
    assert_eq!(read("one.toml", &FILES).unwrap(), path("rate=50mbit,rtt=9ms"));
}

#[test]
fn a_path_builds_on_another() {
    assert_eq!(read("my/paths.toml:far", &FILES).unwrap(), path("geo,loss=1%"));
    // The trace lies beside the file that names it.
    let mobile = read("my/paths.toml:mobile", &FILES).unwrap();
    assert_eq!(mobile.rate(), Some(BitRate::from_bps(12_032_000)));
    assert_eq!(mobile.mtu(), 9000);
    assert!(mobile.to_spec().contains("rate=trace:my/traces/lte"), "{}", mobile.to_spec());
    assert_eq!(read(&mobile.to_spec(), &FILES).unwrap(), mobile);
}

#[test]
fn a_users_paths_have_names_of_their_own() {
    let user = UserPaths::parse("my/paths.toml", FILE).unwrap();
    let names: Vec<&str> = user.iter().map(|path| path.name.as_str()).collect();
    assert_eq!(names, ["far", "mobile", "office"]);
    let office = user.iter().last().unwrap();
    assert_eq!(office.about.as_deref(), Some("Office to the data centre"));
    assert_eq!(office.source.as_deref(), Some("measured on a Monday"));
    assert!(office.spec().contains("up.rate=20mbit"));
    let mut files = reader(&FILES);
    let far = PathSpec::parse_among("far,seed=1", &user, &mut files).unwrap();
    assert_eq!(far, path("geo,loss=1%,seed=1"));
    assert!(PathSpec::parse_among("mobile", &user, &mut files).is_ok());
    let error = PathSpec::parse_among("offise", &user, &mut files).unwrap_err().to_string();
    assert!(error.contains("similar: office"), "{error}");
    let one = UserPaths::parse("one.toml", FILES[2].1).unwrap();
    assert!(PathSpec::parse_among("home", &one, &mut files).is_ok());
}

#[test]
fn refuses_files_that_are_no_paths() {
    for (text, name, part) in [
        ("rate = ", "f.toml", "f.toml: line 1:"),
        ("rate = \"1mbit\"\nrate = \"2mbit\"", "f.toml", "f.toml: line 2: duplicate key"),
        ("", "f.toml", "the file defines no path"),
        ("rate = [1]", "f.toml", "rate: a value is a quoted string"),
        ("rate = 100\nrtt = \"1ms\"", "f.toml", "rate: '100' is not a rate: give the unit"),
        ("[a]\nspeed = 3", "f.toml", "unknown key 'speed'"),
        ("[a]\n[b]", "f.toml", "several paths; write f.toml:NAME, one of a, b"),
        ("[abc]\n[b]", "f.toml:abd", "f.toml: no path named 'abd'; similar: abc"),
        ("[geo]", "f.toml", "name of a built-in path"),
        ("[rate]", "f.toml", "is a key and cannot name a path"),
        ("[\"a b\"]", "f.toml", "is not a valid path name"),
        ("[a]\nname = \"b\"", "f.toml", "omit name="),
        ("[a]\n[a.left]\nrate = \"1mbit\"", "f.toml", "left: a value is a quoted string"),
        ("name = \"a\"\n[a]", "f.toml", "'a' is defined twice"),
        ("[a]\nbase = \"a\"", "f.toml", "base: 'a' is its own base"),
        ("[a]\nbase = \"f.toml\"", "f.toml", "base: 'f.toml' is its own base"),
        ("[a]\nbase = \"nowhere\"", "f.toml", "no path named 'nowhere'"),
        ("rate = \"1mbit\"\nrtt = \"1ms\"\nloss = \"list:3,4\"", "f.toml", "contains a comma"),
        ("rate = \"1mbit\"", "f.toml", "rtt is missing"),
    ] {
        let error = read(name, &[("f.toml", text)]).unwrap_err().to_string();
        assert!(error.contains(part) && !error.contains('\n'), "{text}: {error}");
    }
    let error = read("none.toml", &[]).unwrap_err().to_string();
    assert!(error.starts_with("path: cannot read 'none.toml'"), "{error}");
}

#[test]
fn keys_before_the_first_table_are_a_path_of_their_own() {
    let files = [(
        "f.toml",
        "name = \"b\"\nrate = \"1mbit\"\nrtt = \"2ms\"\n[a]\nrate = \"2mbit\"\nrtt = \"2ms\"",
    )];
    assert_eq!(read("f.toml", &files).unwrap(), path("rate=1mbit,rtt=2ms"));
    assert_eq!(read("f.toml:b", &files).unwrap(), path("rate=1mbit,rtt=2ms"));
    assert_eq!(read("f.toml:a", &files).unwrap(), path("rate=2mbit,rtt=2ms"));
}
