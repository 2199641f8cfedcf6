//! The JSON Schemas in docs/reference/schemas: each is the one of its type, and holds for what is
//! printed. `LONGHAUL_WRITE_SCHEMAS=1` writes them.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use longhaul::{Request, StopFlag};
use schemars::{Schema, schema_for};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Every document by the name of its file: its `schema` member without the prefix.
fn schemas() -> BTreeMap<&'static str, Schema> {
    use longhaul::{
        boost, capture, copy, doctor, explain, lab, ndt7, pcap, responsiveness, server, sim, study,
    };
    use longhaul::{test, tune};
    BTreeMap::from([
        ("baseline-1", schema_for!(record::BaselineReport)),
        ("bdp-1", schema_for!(model::BdpReport)),
        ("boost-1", schema_for!(boost::BoostDocument)),
        ("boost-plan-1", schema_for!(record::BoostPlan)),
        ("edge-1", schema_for!(boost::edge::EdgeDocument)),
        ("edge-event-1", schema_for!(boost::edge::EdgeLine<'static>)),
        ("boost-event-1", schema_for!(boost::BoostLine<'static>)),
        ("boost-status-1", schema_for!(record::BoostStatus)),
        ("boost-verify-1", schema_for!(record::BoostVerification)),
        ("calc-1", schema_for!(model::calc::CalcResult)),
        ("capture-1", schema_for!(capture::CaptureDocument)),
        ("copy-1", schema_for!(copy::CopyDocument)),
        ("doctor-1", schema_for!(doctor::DoctorDocument)),
        ("doctor-commands-2", schema_for!(doctor::DoctorCommands)),
        ("explain", schema_for!(explain::ExplainDocument)),
        ("find-rate-1", schema_for!(record::FindRateReport)),
        ("interfaces-1", schema_for!(record::InterfacesReport)),
        ("lab", schema_for!(lab::LabDocument)),
        ("lab-exec-1", schema_for!(lab::ExecDocument)),
        ("lab-set-1", schema_for!(lab::SetDocument)),
        ("loop-2", schema_for!(record::LoopReport)),
        ("measurement-3", schema_for!(record::Measurement)),
        ("pasted-1", schema_for!(doctor::PastedReport)),
        ("ndt7-1", schema_for!(ndt7::Ndt7Document)),
        ("path", schema_for!(record::PathReport)),
        ("pcap", schema_for!(pcap::PcapDocument)),
        ("ping-1", schema_for!(record::PingReport)),
        ("problem", schema_for!(longhaul::Problem)),
        ("repeat-2", schema_for!(record::RepeatReport)),
        ("responsiveness-1", schema_for!(responsiveness::ResponsivenessDocument)),
        ("server-event-1", schema_for!(server::ServerLine<'static>)),
        ("sim-1", schema_for!(sim::SimResult)),
        ("sim-advice-1", schema_for!(record::SimAdvice)),
        ("sim-comparison-1", schema_for!(record::SimComparison)),
        ("study-1", schema_for!(record::StudyReport)),
        ("study-comparison-1", schema_for!(record::StudyComparison)),
        ("study-list-1", schema_for!(study::StudyList)),
        ("test-2", schema_for!(test::TestReport)),
        ("trace-1", schema_for!(record::TraceReport)),
        ("tune", schema_for!(tune::TuneDocument)),
        ("watch-2", schema_for!(record::WatchReport)),
    ])
}

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/schemas"))
}

#[test]
fn the_reference_has_the_schema_of_each_document() {
    for (name, schema) in schemas() {
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        let file = folder().join(format!("{name}.json"));
        if std::env::var_os("LONGHAUL_WRITE_SCHEMAS").is_some() {
            std::fs::create_dir_all(folder()).unwrap();
            std::fs::write(&file, &text).unwrap();
        }
        let kept = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(
            kept == text,
            "{name}: LONGHAUL_WRITE_SCHEMAS=1 cargo test -p longhaul --test schemas"
        );
    }
}

fn kept(name: &str) -> Value {
    let text = std::fs::read_to_string(folder().join(format!("{name}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn assert_valid(name: &str, document: &Value) {
    let schema = kept(name);
    let wrong = Validator { root: &schema }.wrong(&schema, document);
    assert!(wrong.is_none(), "{name}: {}", wrong.unwrap_or_default());
}

/// The keywords of JSON Schema (2020-12) that the generator writes; any other one is an error.
struct Validator<'a> {
    root: &'a Value,
}

impl Validator<'_> {
    /// What is wrong with a value; `None` if it is valid.
    fn wrong(&self, schema: &Value, value: &Value) -> Option<String> {
        let Some(schema) = schema.as_object() else {
            return (schema == &Value::Bool(false)).then(|| format!("{value} is not expected"));
        };
        schema.iter().find_map(|(keyword, rule)| self.wrong_by(keyword, rule, schema, value))
    }

    fn wrong_by(
        &self,
        keyword: &str,
        rule: &Value,
        schema: &serde_json::Map<String, Value>,
        value: &Value,
    ) -> Option<String> {
        let refused = |holds: bool| (!holds).then(|| format!("{value} is not {keyword} {rule}"));
        let below = |at: &str, wrong: Option<String>| wrong.map(|wrong| format!("{at}: {wrong}"));
        let valid = |one: &&Value| self.wrong(one, value).is_none();
        match keyword {
            "$schema" | "$defs" | "title" | "description" | "default" | "format" => None,
            "$ref" => {
                let pointer = rule.as_str().unwrap().trim_start_matches('#');
                self.wrong(self.root.pointer(pointer).unwrap(), value)
            }
            "type" => refused(match rule {
                Value::Array(kinds) => kinds.iter().any(|kind| is_of(kind, value)),
                kind => is_of(kind, value),
            }),
            "const" => refused(rule == value),
            "enum" => refused(rule.as_array().unwrap().contains(value)),
            "minimum" => refused(value.as_f64().is_none_or(|n| n >= rule.as_f64().unwrap())),
            "maximum" => refused(value.as_f64().is_none_or(|n| n <= rule.as_f64().unwrap())),
            "exclusiveMaximum" => {
                refused(value.as_f64().is_none_or(|n| n < rule.as_f64().unwrap()))
            }
            "minItems" => {
                refused(value.as_array().is_none_or(|a| a.len() as u64 >= rule.as_u64().unwrap()))
            }
            "maxItems" => {
                refused(value.as_array().is_none_or(|a| a.len() as u64 <= rule.as_u64().unwrap()))
            }
            "allOf" => rule.as_array().unwrap().iter().find_map(|one| self.wrong(one, value)),
            "anyOf" => refused(rule.as_array().unwrap().iter().any(|one| valid(&one))),
            "oneOf" => refused(rule.as_array().unwrap().iter().filter(valid).count() == 1),
            "items" => {
                let first = schema.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len);
                let items = value.as_array().into_iter().flatten().skip(first);
                items
                    .enumerate()
                    .find_map(|(at, item)| below(&at.to_string(), self.wrong(rule, item)))
            }
            "prefixItems" => {
                let pairs =
                    rule.as_array().unwrap().iter().zip(value.as_array().into_iter().flatten());
                pairs
                    .enumerate()
                    .find_map(|(at, (one, item))| below(&at.to_string(), self.wrong(one, item)))
            }
            "required" => {
                let missing = |name: &&Value| value.get(name.as_str().unwrap()).is_none();
                let is_object = value.is_object();
                let found = rule.as_array().unwrap().iter().find(missing).filter(|_| is_object);
                found.map(|name| format!("{name} is missing"))
            }
            "properties" => rule.as_object().unwrap().iter().find_map(|(name, one)| {
                below(name, value.get(name).and_then(|member| self.wrong(one, member)))
            }),
            "additionalProperties" => {
                let named = schema.get("properties").and_then(Value::as_object);
                let is_other = |name: &str| named.is_none_or(|named| !named.contains_key(name));
                let others =
                    value.as_object().into_iter().flatten().filter(|(name, _)| is_other(name));
                others.into_iter().find_map(|(name, member)| below(name, self.wrong(rule, member)))
            }
            other => panic!("the keyword {other} is not known here"),
        }
    }
}

fn is_of(kind: &Value, value: &Value) -> bool {
    match kind.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        other => panic!("the type {other} is not known here"),
    }
}

/// The document of a request in JSON.
fn document(request: Value) -> Value {
    let request: Request = serde_json::from_value(request).unwrap();
    let document = longhaul::run(request, &mut |_| {}, &StopFlag::new());
    serde_json::to_value(document.unwrap_or_else(|problem| panic!("{problem}"))).unwrap()
}

#[test]
fn documents_are_valid() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let ping = json!({"host": "127.0.0.1", "method": {"tcp": port}, "count": 2, "interval": 0.01});
    assert_valid("ping-1", &document(json!({ "ping": ping })));
    let link = json!({"link": {"path": "rate=100mbit,rtt=173ms", "window": 65536}});
    let settings = json!({"compressible": 2.5, "edge_rtt": 4_000_000});
    let plan = json!({"boost-plan": {"source": link, "settings": settings}});
    assert_valid("boost-plan-1", &document(plan));
    let path = json!({"link": "rate=5mbit,rtt=20ms"});
    let flows = json!({"path": path, "flows": ["cubic", "bbr,start=1s"], "seconds": 3.0});
    assert_valid("sim-1", &document(json!({ "sim": flows })));
    let advise = json!({"link": "rate=2mbit,rtt=20ms", "seconds": 2.0, "runs": 2, "seed": 1});
    assert_valid("sim-advice-1", &document(json!({ "sim-advise": advise })));
    assert_valid("study-list-1", &document(json!("study-list")));
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../cli/tests/corpus/loss-middle.pcap.gz");
    let explained = document(json!({"explain": {"file": corpus}}));
    assert_valid("explain", &explained);
    let mut wrong = explained;
    wrong[0]["finding"] = json!("none");
    let schema = kept("explain");
    assert!(Validator { root: &schema }.wrong(&schema, &wrong).is_some(), "it takes anything");
    for view in ["summary", "hierarchy"] {
        assert_valid("pcap", &document(json!({"pcap": {"files": [corpus], "view": view}})));
    }
    for view in ["conversations", "endpoints", "streams", "handshakes", "expert", "io"] {
        let request = json!({"pcap": {"files": [corpus], "view": {view: {}}}});
        assert_valid("pcap", &document(request));
    }
    let kept = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../fuzz/seeds/baseline/lab"
    ));
    assert_valid("baseline-1", &serde_json::from_str(&kept.unwrap()).unwrap());
    let problem = longhaul::Problem::new(longhaul::Fault::Peer, "no answer");
    assert_valid("problem", &serde_json::to_value(problem).unwrap());
}
