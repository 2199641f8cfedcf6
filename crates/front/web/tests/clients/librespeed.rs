//! LibreSpeed's page and command line.

use crate::http::Client;
use crate::server::Server;
use serde_json::json;

#[test]
fn pings_and_addresses_by_every_path() {
    let server = Server::start(|_| ());
    // One connection: a ping that closed it would take twice the time.
    let mut client = Client::new(server.address);
    for base in ["", "/backend"] {
        for suffix in ["", ".php"] {
            let ping = client.get(&format!("{base}/empty{suffix}?r=0.123"));
            assert_eq!((ping.status, ping.header("content-length")), (200, Some("0")));
            assert!(ping.header("cache-control").unwrap().contains("no-store"));
            assert_eq!(ping.header("connection"), None);
            assert_eq!(ping.header("access-control-allow-origin"), None);
            let address = client.get(&format!("{base}/getIP{suffix}?isp=true&distance=km&r=0.1"));
            let expected = json!({"processedString": "127.0.0.1", "rawIspInfo": ""});
            assert_eq!(address.json(), expected);
            let garbage = client.get(&format!("{base}/garbage{suffix}?r=0.2&ckSize=1"));
            assert_eq!((garbage.status, garbage.body.len()), (200, 1 << 20));
        }
    }
}

#[test]
fn garbage_has_the_size_asked_for_and_cannot_be_compressed() {
    let server = Server::start(|_| ());
    let mut client = Client::new(server.address);
    for (query, mebibytes) in
        [("ckSize=3", 3), ("", 4), ("ckSize=x", 4), ("ckSize=-1", 4), ("ckSize=0", 4)]
    {
        let garbage = client.get(&format!("/garbage?{query}"));
        assert_eq!(garbage.body.len(), mebibytes << 20, "{query}");
        assert_eq!(garbage.header("content-type"), Some("application/octet-stream"));
        assert_eq!(garbage.header("content-encoding"), None);
    }
    let body = client.get("/garbage?ckSize=2").body;
    let mut packed = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut packed, &body).unwrap();
    assert!(packed.finish().unwrap().len() >= body.len());
    for query in ["ckSize=1024", "ckSize=1025", "ckSize=18446744073709551615"] {
        let mut client = Client::new(server.address);
        client
            .send(format!("GET /garbage?{query} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())
            .unwrap();
        let head = client.head();
        assert!(head.contains("content-length: 1073741824\r\n"), "{query}: {head}");
    }
}

#[test]
fn uploads_are_read_whole_then_answered() {
    let server = Server::start(|_| ());
    let mut client = Client::new(server.address);
    // The page's worker sets Content-Encoding, so a page of another origin asks first.
    let asks = "Origin: http://a.example\r\nAccess-Control-Request-Method: POST\r\n\
                Access-Control-Request-Headers: content-encoding\r\n";
    let allowed = client.request("OPTIONS", "/backend/empty.php?cors=true&r=0.1", asks, b"");
    assert_eq!(allowed.status, 204);
    assert_eq!(allowed.header("access-control-allow-origin"), Some("*"));
    assert!(allowed.header("access-control-allow-headers").unwrap().contains("Content-Encoding"));
    let headers = "Content-Encoding: identity\r\nContent-Length: 2000000\r\n";
    let answer = client.request("POST", "/empty?cors=true", headers, &vec![7; 2_000_000]);
    assert_eq!((answer.status, answer.body.len()), (200, 0));
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    // The command line's body has no length.
    let mut chunks = b"10000\r\n".to_vec();
    chunks.extend([1; 0x10000]);
    chunks.extend(b"\r\n0\r\n\r\n");
    let answer = client.request("POST", "/empty", "Transfer-Encoding: chunked\r\n", &chunks);
    assert_eq!(answer.status, 200);
    assert_eq!(client.get("/empty").status, 200, "the connection goes on");
}

#[test]
fn the_server_list_leads_back_here() {
    let server = Server::start(|_| ());
    let mut client = Client::new(server.address);
    let request =
        format!("GET /.well-known/librespeed HTTP/1.1\r\nHost: {}\r\n\r\n", server.address);
    client.send(request.as_bytes()).unwrap();
    let list = client.answer().json();
    let [entry] = list.as_array().unwrap().as_slice() else { panic!("{list}") };
    assert_eq!(entry["server"], format!("http://{}/", server.address));
    for name in ["dlURL", "ulURL", "pingURL", "getIpURL"] {
        let path = entry[name].as_str().unwrap();
        assert_eq!(client.get(&format!("/{path}?ckSize=1")).status, 200, "{name}");
    }
}

const BOUNDARY: &str = "----WebKitFormBoundaryLmN0";

/// A result as the page sends it.
fn form(fields: &[(&str, &str)]) -> String {
    let mut body: String = fields
        .iter()
        .map(|(name, value)| {
            format!(
                "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
            )
        })
        .collect();
    body.push_str(&format!("--{BOUNDARY}--\r\n"));
    body
}

#[test]
fn results_are_stored_and_shown() {
    let server = Server::start(|_| ());
    let mut client = Client::new(server.address);
    let kind = format!("multipart/form-data; boundary={BOUNDARY}");
    let body = form(&[
        ("ispinfo", r#"{"processedString":"192.0.2.7","rawIspInfo":""}"#),
        ("dl", "93.51"),
        ("ul", "40.20"),
        ("ping", "12.00"),
        ("jitter", "1.10"),
        ("log", "a\r\nb"),
        ("extra", ""),
    ]);
    let stored = client.post("/results/telemetry.php", &kind, body.as_bytes());
    let id = stored.text().strip_prefix("id ").unwrap().to_owned();
    let result = client.get(&format!("/results/json?id={id}")).json();
    assert_eq!((&result["download"], &result["upload"]), (&json!(93.51), &json!(40.2)));
    assert_eq!((&result["ping"], &result["jitter"]), (&json!(12.0), &json!(1.1)));
    assert!(result["ispinfo"].as_str().unwrap().contains("192.0.2.7"));
    assert!(result["timestamp"].as_u64().unwrap() > 1_700_000_000);
    let page = client.get(&format!("/results/?id={id}"));
    assert!(page.text().contains("93.51 Mbit/s"), "{}", page.text());
    assert!(page.header("content-type").unwrap().starts_with("text/html"));
    let urlencoded = "application/x-www-form-urlencoded";
    let stored = client.post("/results/telemetry", urlencoded, b"dl=1&ul=2&ping=&jitter=");
    assert!(stored.text().starts_with("id "));
    assert_ne!(stored.text(), format!("id {id}"));
}

#[test]
fn forged_results_are_refused_or_escaped_and_ids_are_not_guessed() {
    let server = Server::start(|_| ());
    let mut client = Client::new(server.address);
    let kind = format!("multipart/form-data; boundary={BOUNDARY}");
    const SCRIPT: &str = "\"'><script>alert(1)</script>";
    for name in ["dl", "ul", "ping", "jitter"] {
        let answer = client.post("/results/telemetry", &kind, form(&[(name, SCRIPT)]).as_bytes());
        assert_eq!(
            (answer.status, answer.text()),
            (400, format!("{name} is not a number\n").as_str())
        );
    }
    let fields = [("ispinfo", SCRIPT), ("log", SCRIPT), ("extra", SCRIPT), (SCRIPT, SCRIPT)];
    let stored = client.post("/results/telemetry", &kind, form(&fields).as_bytes());
    let id = stored.text().strip_prefix("id ").unwrap().to_owned();
    let page = client.get(&format!("/results/?id={id}"));
    assert!(page.text().contains("&lt;script&gt;") && !page.text().contains("<script"));
    assert!(page.header("content-security-policy").unwrap().contains("default-src 'none'"));
    let json = client.get(&format!("/results/json?id={id}"));
    assert_eq!(json.header("content-type"), Some("application/json"));
    assert_eq!(json.header("x-content-type-options"), Some("nosniff"));
    let mut near = id.clone().into_bytes();
    near[31] = if near[31] == b'0' { b'1' } else { b'0' };
    let near = String::from_utf8(near).unwrap();
    for guess in ["1", "", "..", "%00", &near] {
        assert_eq!(client.get(&format!("/results/?id={guess}")).status, 404, "{guess}");
        assert_eq!(client.get(&format!("/results/json?id={guess}")).status, 404, "{guess}");
    }
    let answer = client.post("/results/telemetry", &kind, b"--x\r\n\r\nno such boundary");
    assert_eq!(answer.status, 400);
    // What is too long is refused before it is read.
    let mut client = Client::new(server.address);
    let endless =
        "POST /results/telemetry HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n";
    client.send(endless.as_bytes()).unwrap();
    assert_eq!(client.answer().status, 413);
}
