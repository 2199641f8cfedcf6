//! Results that visitors keep: whole runs, links, deletion, comparison.

use crate::page::{Conversation, Server, ask, carry_out, hello, hello_by_requests, short};
use longhaul::StopFlag;
use longhaul::explain::{self, ExplainDocument, ExplainRequest};
use record::Measurement;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::sync::Mutex;
use tempfile::TempDir;
use web::WebRequest;

/// An address reads two results at a time, in all servers of this process.
static ONE: Mutex<()> = Mutex::new(());

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    folder
}

fn with_history(folder: &TempDir) -> WebRequest {
    WebRequest { history: Some(folder.path().join("history.db")), ..short() }
}

fn request(server: &Server, method: &str, target: &str, headers: &str) -> (u16, String) {
    let _one = ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let host = server.address;
    let head = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
    let (status, answer) = ask(host, &format!("{head}{headers}\r\n"));
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body).to_owned();
    (status, if method == "HEAD" { answer } else { body })
}

fn get(server: &Server, target: &str) -> (u16, String) {
    request(server, "GET", target, "")
}

fn run_of(told: &Conversation) -> String {
    told.messages[0]["run"].as_str().unwrap().to_owned()
}

/// Keeps a run: its ID and its secret.
fn keep(server: &Server, run: &str) -> (String, String) {
    let (status, body) =
        request(server, "POST", &format!("/api/run/{run}/keep"), "Content-Length: 0\r\n");
    assert_eq!(status, 200, "{body}");
    let receipt: Value = serde_json::from_str(&body).unwrap();
    let text = |name: &str| receipt[name].as_str().unwrap().to_owned();
    (text("id"), text("secret"))
}

#[test]
fn a_kept_result_is_a_page_files_and_a_measurement_that_explains_itself() {
    let folder = folder();
    let server = Server::start(with_history(&folder));
    let told = carry_out(server.address, &hello_by_requests());
    assert_eq!(told.messages[0]["history"], true);
    let run = run_of(&told);
    let result = told.messages.last().unwrap();
    let (id, secret) = keep(&server, &run);
    assert!(id != run && secret != id && id.len() == 32 && secret.len() == 32);

    let (status, page) = get(&server, &format!("/result/{id}"));
    assert_eq!(status, 200, "{page}");
    assert!(page.contains("<svg") && page.contains("What limited the transfer"), "{page}");
    assert!(page.contains("Download, several connections") && !page.contains("<script"));
    assert!(!page.contains(&secret) && !page.contains(&run));

    let (status, text) = get(&server, &format!("/result/{id}.json"));
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, &document["schema"]), (200, &json!("longhaul.web-run/1")));
    assert_eq!(document["result"]["download"], result["download"]);
    assert_eq!(document["result"]["finding"]["sentence"], result["finding"]["sentence"]);
    // Nothing says who it was.
    assert!(!text.contains("127.0.0.1") && !text.contains(&run), "{text}");

    let steps = told.of("step-result");
    let measured = steps.iter().find(|step| step["kind"] == "download").unwrap();
    let name = format!("/result/{id}/measurement-{}.json", measured["step"]);
    let (status, text) = get(&server, &name);
    assert_eq!(status, 200);
    assert!(!text.contains("127.0.0.1"));
    let read: Measurement = serde_json::from_str(&text).unwrap();
    assert!(read.streams[0].sender.len() > 3);
    let file = folder.path().join("measurement.json");
    fs::write(&file, &text).unwrap();
    let explained = explain::run(&ExplainRequest::new(&file), &mut |_| (), &StopFlag::new());
    let Ok(ExplainDocument::Transfers(explained)) = explained else { panic!("{explained:?}") };
    assert_eq!(json!(explained[0].finding.sentence), measured["sentence"]);

    let (status, csv) = get(&server, &format!("/result/{id}.csv"));
    assert_eq!(status, 200);
    let mut rows = csv.lines();
    let columns = rows.next().unwrap().split(',').count();
    assert!(rows.clone().all(|row| row.split(',').count() == columns));
    assert!(rows.clone().filter(|row| row.starts_with("sample,")).count() > 20);
    assert!(rows.any(|row| row.starts_with("probe,")));

    // Once, and not without its run; deleted by its secret alone.
    let again = request(&server, "POST", &format!("/api/run/{run}/keep"), "Content-Length: 0\r\n");
    assert_eq!(again.0, 404);
    let delete = |secret: &str| {
        let header = format!("Authorization: Bearer {secret}\r\n");
        request(&server, "DELETE", &format!("/result/{id}"), &header).0
    };
    assert_eq!((delete(&id), delete(""), delete(&"0".repeat(32))), (403, 403, 403));
    assert_eq!(request(&server, "DELETE", &format!("/result/{id}"), "").0, 403);
    assert_eq!(get(&server, &format!("/result/{id}")).0, 200);
    assert_eq!((delete(&secret), delete(&secret)), (200, 404));
    for target in [format!("/result/{id}"), format!("/result/{id}.json"), name] {
        assert_eq!(get(&server, &target).0, 404, "{target}");
    }
}

#[test]
fn steps_have_intervals_and_results_are_compared_by_them() {
    let folder = folder();
    let server = Server::start(WebRequest { step_seconds: 1.0, ..with_history(&folder) });
    let told = carry_out(server.address, &hello());
    let mut counted = 0;
    for step in told.of("step-result").iter().filter(|step| step["interval"].is_array()) {
        let (low, high) = (step["interval"][0].as_f64().unwrap(), step["interval"][1].as_f64());
        let rate = step["rate"].as_f64().unwrap();
        assert!(low < high.unwrap() && low < rate * 1.2 && high.unwrap() > rate * 0.8, "{step}");
        counted += 1;
    }
    assert!(counted >= 3, "{counted}");
    let intervals = &told.messages.last().unwrap()["intervals"];
    assert!(intervals["rtt_idle"].is_array());
    let is_plain = |step: &&&Value| step["congestion"] == "cubic" || step["congestion"].is_null();
    let of_one = |step: &&&Value| step["kind"] == "upload" && step["flows"] == 1;
    let results = told.of("step-result");
    let one = results.iter().filter(is_plain).find(of_one).unwrap();
    assert_eq!(intervals["upload_one"], one["interval"]);
    let (first, _) = keep(&server, &run_of(&told));
    let other = carry_out(server.address, &hello());
    let (second, _) = keep(&server, &run_of(&other));
    let (status, page) = get(&server, &format!("/compare?a={first}&b=http%3A%2F%2Fx%2F{second}"));
    assert_eq!(status, 200);
    assert!(page.contains("Download, 1 connection") && page.contains("bit/s – "), "{page}");
    // With itself nothing differs.
    let (_, same) = get(&server, &format!("/compare?a={first}&b={first}"));
    assert!(same.contains("cannot tell: the intervals overlap") && !same.contains("higher"));
    assert_eq!(get(&server, "/compare").0, 200);
    let (status, page) = get(&server, &format!("/compare?a={first}&b=%22%3E%3Cscript%3E"));
    assert_eq!(status, 404);
    assert!(!page.contains("<script") && page.contains("One of the results is not here"));
}

#[test]
fn without_a_file_nothing_is_kept() {
    let server = Server::start(short());
    let told = carry_out(server.address, &hello());
    assert_eq!(told.messages[0]["history"], false);
    let target = format!("/api/run/{}/keep", run_of(&told));
    assert_eq!(request(&server, "POST", &target, "Content-Length: 0\r\n").0, 404);
    assert_eq!(get(&server, "/compare").0, 404);
    let wrong = WebRequest { history: Some("/nonexistent/history.db".into()), ..short() };
    let flag = StopFlag::new();
    let problem = web::serve(&wrong, &mut |_| (), &flag, &flag).unwrap_err();
    assert!(problem.message.contains("cannot open /nonexistent/history.db"), "{problem:?}");
}

#[test]
fn pages_of_other_sites_keep_and_delete_nothing() {
    let folder = folder();
    let server = Server::start(WebRequest { token: Some("t".to_owned()), ..with_history(&folder) });
    let foreign = "Origin: http://evil.example\r\nContent-Length: 0\r\n";
    let target = format!("/api/run/{}/keep", "0".repeat(32));
    assert_eq!(request(&server, "POST", &target, foreign).0, 403);
    // A link needs no token: its ID is one. Guesses find nothing.
    let id = "0".repeat(32);
    for target in [
        format!("/result/{id}"),
        format!("/result/{id}.json"),
        format!("/result/{id}.exe"),
        format!("/result/{id}/measurement-1.json"),
        format!("/result/{id}/measurement--1.json"),
        format!("/result/{id}/../../history.db"),
        "/result/..%2fhistory.db".to_owned(),
        "/result/'%20OR%201=1".to_owned(),
    ] {
        assert_eq!(get(&server, &target).0, 404, "{target}");
    }
    // The answer to a preflight permits no header of another site's page.
    let preflight = "Origin: http://evil.example\r\nAccess-Control-Request-Method: DELETE\r\n";
    let (status, answer) = request(&server, "OPTIONS", &format!("/result/{id}"), preflight);
    assert!(status == 405 && !answer.to_lowercase().contains("access-control-allow"), "{answer}");
}

/// Replaces every text of a document, whatever it stands for.
fn forge(value: &mut Value, attack: &str) {
    match value {
        Value::String(text) if text != "download" && text != "upload" => {
            *text = attack.to_owned();
        }
        Value::Array(all) => all.iter_mut().for_each(|one| forge(one, attack)),
        Value::Object(all) => all.values_mut().for_each(|one| forge(one, attack)),
        _ => {}
    }
}

#[test]
fn html_in_a_stored_document_is_text() {
    let folder = folder();
    let file = folder.path().join("history.db");
    let server = Server::start(with_history(&folder));
    let (id, _) = keep(&server, &run_of(&carry_out(server.address, &hello())));
    let (_, text) = get(&server, &format!("/result/{id}.json"));
    let attack = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>=1+1";
    let mut document: Value = serde_json::from_str(&text).unwrap();
    document["steps"][0]["experiment"] = json!("x");
    document["result"]["invalid_because"] = json!(["x"]);
    document["result"]["finding"]["experiments"] = json!(["x"]);
    document["result"]["remedies"] = json!([{"where": "x", "line": "x", "why": "x"}]);
    forge(&mut document, attack);
    let connection = rusqlite::Connection::open(&file).unwrap();
    let set = |text: &str| {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(text.as_bytes()).unwrap();
        let packed = packer.finish().unwrap();
        connection.execute("UPDATE run SET document = ?1", [packed]).unwrap();
    };
    set(&document.to_string());
    let (status, page) = get(&server, &format!("/result/{id}"));
    assert_eq!(status, 200);
    assert!(page.contains("&lt;script&gt;alert(1)"), "{page}");
    assert!(!page.contains("<script") && !page.contains("<img src=x"), "{page}");
    let (_, compared) = get(&server, &format!("/compare?a={id}&b={id}"));
    assert!(!compared.contains("<script") && !compared.contains("<img src=x"), "{compared}");
    let (_, csv) = get(&server, &format!("/result/{id}.csv"));
    assert!(!csv.contains('=') && !csv.contains('<'), "{csv:.400}");
    // Numbers without sense, or no document at all.
    for forged in [
        "null",
        "[]",
        r#"{"at":18446744073709551615,"result":{"rtt_idle":1e308,"download":{"one_flow":-1}}}"#,
        r#"{"steps":{"a":1},"result":{"intervals":{"rtt_idle":[5,1]},"rtt_idle":"x"}}"#,
        r#"{"steps":[{"step":4294967296,"flows":-1,"probes":{"own":[[1],[],7]}},null,[[]]]}"#,
    ] {
        set(forged);
        for form in ["", ".csv", ".json"] {
            assert_eq!(get(&server, &format!("/result/{id}{form}")).0, 200, "{forged} {form}");
        }
        assert_eq!(get(&server, &format!("/compare?a={id}&b={id}")).0, 200);
    }
}
