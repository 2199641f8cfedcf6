//! The pages as a browser gets them.

use super::calculators::{CALCULATORS, Calculator};
use super::form::{Entry, Form, Kind};
use super::paste::{MAX_BODY, MAX_TEXT};
use super::{calc, glossary, is_page, routes};
use axum::body::{Body, to_bytes};
use axum::http::header::{CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{Request, Response};
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use std::collections::HashSet;
use std::sync::Mutex;

const NETSTAT: &str = include_str!("../../../../machine/doctor/tests/pasted/netstat-linux.txt");
const NETSTAT_MACOS: &str =
    include_str!("../../../../machine/doctor/tests/pasted/netstat-macos.txt");
const SS: &str = include_str!("../../../../machine/doctor/tests/pasted/ss-tin.txt");
const IPERF3: &str =
    include_str!("../../../../explain/tool-results/tests/files/iperf3-3.12-window.json");
const NDT7: &str =
    include_str!("../../../../explain/tool-results/tests/files/ndt7-client-window.json");
const SS_SERIES: &str = include_str!("../../../../explain/tool-results/tests/files/ss-window.txt");

const ATTACK: &str = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>";

/// Texts are read one after the other: the limit of an address holds for the tests as well.
static POSTS: Mutex<()> = Mutex::new(());

/// Status, Content-Security-Policy and text of an answer.
struct Got {
    status: u16,
    policy: Option<String>,
    text: String,
}

fn ask(request: Request<Body>) -> Got {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let service = TowerToHyperService::new(routes::<()>().with_state(()));
        let response: Response<Body> = service.call(request).await.unwrap();
        let policy = response.headers().get(CONTENT_SECURITY_POLICY);
        let policy = policy.map(|policy| policy.to_str().unwrap().to_owned());
        let status = response.status().as_u16();
        let bytes = to_bytes(response.into_body(), 16 << 20).await.unwrap();
        Got { status, policy, text: String::from_utf8(bytes.to_vec()).unwrap() }
    })
}

fn get(path: &str) -> Got {
    assert!(is_page(path.split('?').next().unwrap()), "{path}");
    ask(Request::builder().uri(path).body(Body::empty()).unwrap())
}

fn post(path: &str, body: impl Into<Body>) -> Got {
    let _one = POSTS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let request = Request::builder().method("POST").uri(path);
    let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
    ask(request.body(body.into()).unwrap())
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

fn paste(path: &str, text: &str) -> Got {
    post(path, format!("text={}", encoded(text)))
}

fn escaped(text: &str) -> String {
    let escapes = [('&', "&amp;"), ('<', "&lt;"), ('>', "&gt;"), ('"', "&quot;"), ('\'', "&#39;")];
    escapes.iter().fold(text.to_owned(), |text, (c, escape)| text.replace(*c, escape))
}

/// What a strict policy and a screen reader ask of a page.
fn check(got: &Got, of: &str) {
    let text = &got.text;
    assert!(!text.contains("<script") && !text.contains(" style=\""), "{of}");
    assert!(!text.contains("<img src=x") && !text.contains("alert(1)</script>"), "{of}");
    assert_eq!(text.contains("<style>"), got.policy.is_some(), "{of}");
    if let Some(policy) = &got.policy {
        let style = text.split("<style>").nth(1).unwrap().split("</style>").next().unwrap();
        let hash = report::html::policy_source(style);
        assert!(policy.contains(&format!("style-src 'self' {hash};")), "{of}: {policy}");
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{of}");
    }
    let ids: Vec<&str> =
        text.split(" id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    let unique: HashSet<&str> = ids.iter().copied().collect();
    assert_eq!(unique.len(), ids.len(), "{of}: an id is there twice");
    for control in ["<input ", "<select ", "<textarea "] {
        for rest in text.split(control).skip(1) {
            let id = rest.split("id=\"").nth(1).unwrap().split('"').next().unwrap();
            assert!(text.contains(&format!("<label for=\"{id}\">")), "{of}: {id} has no label");
            let described = rest.split("aria-describedby=\"").nth(1).unwrap();
            for id in described.split('"').next().unwrap().split(' ') {
                assert!(unique.contains(id), "{of}: {id}");
            }
        }
    }
}

fn path(calculator: &Calculator, other: Option<(&Entry, &str)>) -> String {
    let value = |entry: &Entry| match other {
        Some((changed, value)) if changed.name == entry.name => encoded(value),
        _ => encoded(entry.example),
    };
    let pairs = calculator.fields.iter().map(|entry| format!("{}={}", entry.name, value(entry)));
    format!("/calc/{}?{}", calculator.name, pairs.collect::<Vec<_>>().join("&"))
}

#[test]
fn every_calculator_answers_its_example_as_the_command_line_does() {
    // What `longhaul calc` prints for the same values.
    let printed = [
        ("bdp", "2.1625 MB"),
        ("window", "2.1625 MB"),
        ("scale", "6"),
        ("mathis", "1.4187 Mbit/s"),
        ("pftk", "475.04 kbit/s"),
        ("cubic", "21.708 Mbit/s"),
        ("bbr", "990 Mbit/s"),
        ("transfer", "5631.8 s"),
        ("overhead", "2.3537 Gbit/s"),
        ("line", "1 Gbit/s"),
        ("distance", "8401.1 km"),
        ("wan", "3.0306 Mbit/s"),
        ("udt", "100"),
    ];
    assert_eq!(printed.len(), CALCULATORS.len());
    let list = get("/calc");
    check(&list, "list");
    for (name, figure) in printed {
        let calculator = super::calculators::of(name).unwrap();
        assert!(list.text.contains(&format!("href=\"calc/{name}\"")), "{name}");
        // Without a query the page has the example; with it, the same figures.
        let page = get(&format!("/calc/{name}"));
        let asked = get(&path(calculator, None));
        check(&page, name);
        for got in [&page, &asked] {
            assert_eq!(got.status, 200, "{name}: {}", got.text);
            let value = got.text.split("<p class=\"value\">").nth(1).unwrap();
            assert!(value.starts_with(&format!("{figure}</p>")), "{name}: {value:.40}");
            assert!(got.text.contains("<p class=\"equation\">"), "{name}");
            assert!(got.text.contains("<h2>Valid for</h2>"), "{name}");
        }
        assert!(page.text.contains(super::texts::EXAMPLE), "{name}");
        assert!(!asked.text.contains(super::texts::EXAMPLE), "{name}");
    }
}

#[test]
fn a_page_has_every_figure_with_equation_and_source_and_every_sentence_of_validity() {
    for calculator in CALCULATORS {
        let form = Form::of(calculator.fields, &[]);
        let page = get(&format!("/calc/{}", calculator.name)).text;
        let calc::Answer::Sheet(result) = calc::answer(calculator, &form).unwrap() else {
            assert_eq!(calculator.name, "bdp");
            continue;
        };
        assert_eq!(result.calculator, calculator.name);
        for one in &result.answers {
            for text in [&one.equation, one.source, &one.value.as_ref().unwrap().text()] {
                assert!(page.contains(&escaped(text)), "{}: {text}", calculator.name);
            }
        }
        assert!(result.holds.iter().all(|text| page.contains(&escaped(text))));
        let rows: usize = result.tables.iter().map(|table| table.rows.len()).sum();
        let own = page.split("<tbody>").skip(1).map(|body| body.matches("<tr").count());
        assert!(own.sum::<usize>() >= rows, "{}", calculator.name);
        assert_eq!(page.contains("<svg"), result.curve.is_some(), "{}", calculator.name);
    }
}

#[test]
fn a_wrong_value_is_named_at_its_field_and_stays_in_the_form() {
    for calculator in CALCULATORS {
        for entry in calculator.fields {
            for wrong in [ATTACK, "-1 parsecs", &"9".repeat(201)] {
                let of = format!("{} {}: {wrong:.20}", calculator.name, entry.name);
                let got = get(&path(calculator, Some((entry, wrong))));
                assert_eq!(got.status, 422, "{of}");
                check(&got, &of);
                assert!(got.text.contains(&format!("id=\"{}-error\"", entry.name)), "{of}");
                assert!(got.text.contains(&format!("href=\"#{}\"", entry.name)), "{of}");
                assert_eq!(got.text.matches("aria-invalid=\"true\"").count(), 1, "{of}");
                if !matches!(entry.kind, Kind::Choice(_)) {
                    let kept = format!(" value=\"{}\"", escaped(wrong));
                    assert!(got.text.contains(&kept), "{of}: {}", got.text);
                }
                assert!(!got.text.contains("class=\"answers\""), "{of}");
            }
            if entry.default.is_none() {
                let got = get(&path(calculator, Some((entry, ""))));
                assert_eq!(got.status, 422, "{} {}", calculator.name, entry.name);
                assert!(got.text.contains(&format!("id=\"{}-error\"", entry.name)));
            }
        }
    }
}

#[test]
fn what_the_library_refuses_is_named_at_its_field() {
    for (path, field) in [
        ("bdp?rate=0&rtt=1ms", "rate"),
        ("bdp?rate=1gbit&rtt=0", "rtt"),
        ("bdp?rate=1gbit&rtt=1ms&window=2GiB", "window"),
        ("bdp?rate=1gbit&rtt=1ms&streams=0", "streams"),
        ("bdp?rate=1gbit&rtt=1ms&mtu=100", "mtu"),
        ("window?rate=1gbit", "rate"),
        ("window?rate=1gbit&rtt=0ms", "rtt"),
        ("window?rtt=1s&window=0", "window"),
        ("window?rate=1gbit&rtt=1ms&streams=129", "streams"),
        ("scale?rate=1gbit", "rtt"),
        ("mathis?rtt=1ms", "loss"),
        ("mathis?rtt=1ms&loss=0%25", "loss"),
        ("mathis?rtt=1ms&loss=1%25&mss=1", "mss"),
        ("cubic?rtt=1ms&rate=1gbit&target=2gbit", "target"),
        ("pftk?rtt=1ms&loss=1%25&rto=0", "rto"),
        ("bbr?rtt=1ms&rate=1gbit&loss=1%25&window=2GiB", "window"),
        ("transfer?size=0&rate=1gbit&rtt=1ms", "size"),
        ("transfer?size=1GB&rate=1gbit&rtt=1ms&iw=0", "iw"),
        ("transfer?size=1GB&rate=1gbit&rtt=1ms&loss=50%25&congestion=bbr", "loss"),
        ("overhead?rate=1gbit&mtu=20", "mtu"),
        ("overhead?rate=1gbit&vlan=3", "vlan"),
        ("overhead?rate=1gbit&sack=5", "sack"),
        ("line?goodput=1gbit&plan=0", "plan"),
        ("distance?from=Nowhereville&to=Paris", "from"),
        ("wan?rate=1gbit&rtt=1ms&ratio=0.5", "ratio"),
        ("udt?rate=1gbit&packet=1", "packet"),
        ("udt?rate=1gbit&sending=2gbit", "sending"),
    ] {
        let got = get(&format!("/calc/{path}"));
        assert_eq!(got.status, 422, "{path}");
        assert!(got.text.contains(&format!("id=\"{field}-error\"")), "{path}: {}", got.text);
        assert!(!got.text.contains('‹'), "{path}");
    }
    assert_eq!(get("/calc/nothing").status, 404);
    assert_eq!(get("/calc/..%2fetc").status, 404);
}

#[test]
fn every_term_of_the_glossary_has_an_anchor_of_its_own() {
    let page = get("/glossary");
    assert_eq!(page.status, 200);
    check(&page, "glossary");
    assert!(glossary::terms().count() >= 154);
    for (term, _) in glossary::terms() {
        let anchor = glossary::anchor(term);
        let entry = format!("<div id=\"{anchor}\"><dt><a href=\"#{anchor}\">{}</a>", escaped(term));
        assert!(page.text.contains(&entry), "{term}");
    }
    assert!(page.text.contains("<a href=\"calc/cubic\">calc cubic</a>"));
    assert!(page.text.contains("<code>understanding</code>"));
    for markdown in ["](", ".md", "`"] {
        assert!(!page.text.contains(markdown), "{markdown}");
    }
}

#[test]
fn counters_settings_and_connections_are_explained() {
    check(&get("/check"), "form");
    for (text, shown) in [
        (NETSTAT, "Tcp.RetransSegs"),
        (NETSTAT_MACOS, "netstat of macOS"),
        (SS, "10.0.0.1:54986 → 10.0.0.2:5201"),
        ("#kernel\nTcpOutSegs 4000 0.0\nTcpRetransSegs 20 0.0\n", "Read: nstat"),
        ("net.ipv4.tcp_rmem = 4096 131072 6291456", "sudo sysctl -w net.ipv4.tcp_rmem="),
    ] {
        let got = paste("/check", text);
        assert_eq!(got.status, 200, "{shown}");
        assert!(got.text.contains(shown), "{shown}: {}", got.text);
        assert!(got.text.contains(&format!("\n{}", escaped(text).replace('\t', " "))), "{shown}");
        check(&got, shown);
    }
    let text = encoded("net.ipv4.tcp_rmem = 4096 131072 6291456");
    let low = post("/check", format!("text={text}&rate=10mbit&rtt=20ms"));
    assert!(!low.text.contains("sudo sysctl -w net.ipv4.tcp_rmem="), "{}", low.text);
    for (fields, wrong) in
        [("rate=0", "rate"), ("rate=x", "rate"), ("rtt=0", "rtt"), ("streams=0", "streams")]
    {
        let got = post("/check", format!("text={text}&{fields}"));
        assert_eq!(got.status, 422, "{fields}");
        assert!(got.text.contains(&format!("id=\"{wrong}-error\"")), "{fields}: {}", got.text);
    }
}

#[test]
fn results_are_explained_with_equation_and_remedies() {
    check(&get("/explain"), "form");
    for (text, limit) in
        [(IPERF3, "80.5 kB / 101 ms"), (NDT7, "80.5 kB / 101 ms"), (SS_SERIES, "receive-window")]
    {
        let got = paste("/explain", text);
        assert_eq!(got.status, 200, "{limit}");
        check(&got, limit);
        let finding = got.text.split("What limited the transfer").nth(1).unwrap();
        let finding = finding.split("</section>").next().unwrap();
        assert!(finding.contains(limit), "{finding}");
        assert!(finding.contains("<b>Next: </b><code"), "{limit}");
        assert!(got.text.contains("class=\"equation\""), "{limit}");
    }
}

#[test]
fn html_in_a_text_comes_back_as_text() {
    let named = IPERF3.replace("10.0.0.2", ATTACK.replace('"', "").as_str());
    let ss = SS.replace("cubic", "<script>alert(1)</script>");
    for (path, text, status) in [
        ("/explain", named.as_str(), 200),
        ("/explain", ATTACK, 422),
        ("/explain", "</textarea><script>alert(1)</script>", 422),
        ("/check", ATTACK, 422),
        ("/check", "</textarea><script>alert(1)</script>", 422),
        ("/check", &ss, 200),
        ("/check", "Tcp:\n    5 segments sent out\n<script>alert(1)</script> 7\n", 200),
        ("/check", "net.ipv4.tcp_rmem = <script>alert(1)</script>", 200),
    ] {
        let got = paste(path, text);
        assert_eq!(got.status, status, "{path} {text:.40}: {}", got.text);
        assert!(got.text.contains("&lt;"), "{path} {text:.40}");
        check(&got, text);
    }
    let field = encoded(ATTACK);
    let text = encoded("net.ipv4.tcp_rmem = 1 2 3");
    for name in ["rate", "rtt", "streams"] {
        let got = post("/check", format!("text={text}&{name}={field}"));
        assert_eq!(got.status, 422);
        check(&got, name);
        assert!(got.text.contains(&escaped(ATTACK)));
    }
}

#[test]
fn bodies_are_bounded() {
    let fits = format!("text={}", "a".repeat(MAX_TEXT));
    for path in ["/check", "/explain"] {
        assert_eq!(post(path, fits.clone()).status, 422, "{path}");
        assert_eq!(post(path, format!("{fits}a")).status, 413, "{path}");
        assert_eq!(post(path, "a".repeat(MAX_BODY + 1)).status, 413, "{path}");
        for body in ["", "text", "text=", "x=1", "%%%", "text=%ff%fe%00"] {
            let got = post(path, body);
            assert_eq!(got.status, 422, "{path} {body}");
            assert!(got.text.contains("id=\"text-error\""), "{path} {body}");
        }
        let request = || Request::builder().method("POST").uri(path);
        let of = |kind: &str, coding: &str| {
            let request = request().header(CONTENT_TYPE, kind);
            let coded =
                if coding.is_empty() { request } else { request.header(CONTENT_ENCODING, coding) };
            let _one = POSTS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            ask(coded.body(Body::from("text=a")).unwrap()).status
        };
        assert_eq!(of("application/x-www-form-urlencoded; charset=UTF-8", ""), 422);
        assert_eq!(of("application/x-www-form-urlencoded", "gzip"), 415);
        assert_eq!(of("text/plain", ""), 415);
    }
}

#[test]
fn deep_or_endless_json_is_refused() {
    for text in ["[".repeat(500_000), "{\"a\":".repeat(100_000), "{\"intervals\":[".repeat(60_000)]
    {
        let got = paste("/explain", &text);
        assert_eq!(got.status, 422, "{text:.30}");
    }
}

#[test]
fn style_sheets_are_served_and_pages_lead_to_each_other() {
    let sheet = get("/report.css");
    assert!(sheet.status == 200 && sheet.text.contains(".l-loss{"));
    for sheet in ["/style.css", "/pages.css"] {
        assert!(crate::assets::is_asset(sheet), "{sheet}");
    }
    for (path, root) in
        [("/calc", ""), ("/calc/bdp", "../"), ("/glossary", ""), ("/check", ""), ("/explain", "")]
    {
        let page = get(path).text;
        for (to, _) in super::texts::PAGES.iter().skip(1) {
            assert!(page.contains(&format!("href=\"{root}{to}\"")), "{path} {to}");
        }
        assert_eq!(page.matches("aria-current=\"page\"").count(), 1, "{path}");
        assert!(page.contains(&format!("href=\"{root}style.css\"")), "{path}");
        assert!(!page.contains("http://") && !page.contains("https://"), "{path}");
    }
}

#[test]
fn pages_pass_the_token_on_to_this_servers_pages_alone() {
    let links = |text: &str| -> Vec<String> {
        let rest = text.split("<a ").skip(1).filter_map(|rest| rest.split("href=\"").nth(1));
        rest.map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
    };
    for path in ["/calc", "/calc/bdp", "/glossary", "/check", "/explain"] {
        let got = get(&format!("{path}?token=a-b_c.d~1"));
        let own = links(&got.text).into_iter().filter(|href| !href.starts_with('#'));
        for href in own.inspect(|href| assert!(!href.contains("//"), "{href}")) {
            assert!(href.ends_with("?token=a-b_c.d~1"), "{path}: {href}");
        }
        assert!(got.text.contains("href=\"./?token=") || got.text.contains("href=\"../?token="));
        assert!(!get(path).text.contains("token="), "{path}");
        // What is no token is not repeated.
        let long = "a".repeat(257);
        for wrong in ["", "%22%3E", "a\"b", "a<b", &long] {
            assert!(!get_raw(&format!("{path}?token={wrong}")).contains("token="), "{path}");
        }
    }
    let form = get("/calc/bdp?token=secret&rate=1gbit&rtt=100ms").text;
    let hidden = "<input type=\"hidden\" name=\"token\" value=\"secret\"";
    assert!(form.contains(hidden), "{form}");
    let sent = post("/explain?token=secret", format!("text={}", encoded(IPERF3))).text;
    assert!(sent.contains("action=\"explain?token=secret\""), "{sent}");
}

/// The text of a page whose address a browser would have escaped.
fn get_raw(path: &str) -> String {
    let request = Request::builder().uri(path.replace(['"', '<'], "%22"));
    ask(request.body(Body::empty()).unwrap()).text
}

#[test]
fn the_reports_style_sheet_is_compressed_and_tagged() {
    let ask = |name: &str, value: &str| {
        let request = Request::builder().uri("/report.css").header(name, value);
        let request = request.body(Body::empty()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let service = TowerToHyperService::new(routes::<()>().with_state(()));
        let response: Response<Body> = runtime.block_on(service.call(request)).unwrap();
        (response.status(), response.headers().clone())
    };
    let (_, headers) = ask("accept-encoding", "gzip");
    assert_eq!(headers["content-encoding"], "gzip");
    let (status, _) = ask("if-none-match", headers["etag"].to_str().unwrap());
    assert_eq!(status, 304);
}
