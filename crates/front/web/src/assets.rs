//! The page: files that are part of the program.

use axum::body::Body;
use axum::http::header::{self, HeaderValue};
use axum::http::{HeaderMap, Response, StatusCode};
use flate2::{Compression, write::GzEncoder};
use std::io::Write;
use std::sync::OnceLock;

/// A file as it is served.
struct Asset {
    path: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

/// What is computed of the files at the first request.
static PREPARED: OnceLock<Vec<Prepared>> = OnceLock::new();

/// What is computed of a file.
pub(crate) struct Prepared {
    tag: String,
    compressed: Option<Vec<u8>>,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! assets {
    ($($path:literal, $kind:expr, $file:literal;)*) => {
        const ASSETS: &[Asset] = &[$(Asset {
            path: $path,
            kind: $kind,
            bytes: include_bytes!(concat!("../assets/", $file)),
        },)*];
    };
}

assets! {
    "/", "text/html; charset=utf-8", "index.html";
    "/favicon.svg", "image/svg+xml", "favicon.svg";
    "/style.css", "text/css; charset=utf-8", "style.css";
    "/pages.css", "text/css; charset=utf-8", "pages.css";
    "/app.js", SCRIPT, "app.js";
    "/charts.js", SCRIPT, "charts.js";
    "/datagrams.js", SCRIPT, "datagrams.js";
    "/dom.js", SCRIPT, "dom.js";
    "/families.js", SCRIPT, "families.js";
    "/flows.js", SCRIPT, "flows.js";
    "/format.js", SCRIPT, "format.js";
    "/health.js", SCRIPT, "health.js";
    "/history.js", SCRIPT, "history.js";
    "/historyview.js", SCRIPT, "historyview.js";
    "/legs.js", SCRIPT, "legs.js";
    "/legsprotocol.js", SCRIPT, "legsprotocol.js";
    "/legsview.js", SCRIPT, "legsview.js";
    "/keep.js", SCRIPT, "keep.js";
    "/page.js", SCRIPT, "page.js";
    "/probes.js", SCRIPT, "probes.js";
    "/protocol.js", SCRIPT, "protocol.js";
    "/results.js", SCRIPT, "results.js";
    "/run.js", SCRIPT, "run.js";
    "/texts.js", SCRIPT, "texts.js";
    "/worker.js", SCRIPT, "worker.js";
}

/// Whether there is a file of this path.
pub(crate) fn is_asset(path: &str) -> bool {
    ASSETS.iter().any(|asset| asset.path == path)
}

/// The answer to a request for a file; `None` if there is no such file.
pub(crate) fn answer(path: &str, headers: &HeaderMap) -> Option<Response<Body>> {
    let index = ASSETS.iter().position(|asset| asset.path == path)?;
    let all = PREPARED.get_or_init(|| ASSETS.iter().map(|asset| prepare(asset.bytes)).collect());
    let (asset, prepared) = (ASSETS.get(index)?, all.get(index)?);
    Some(served(asset.bytes, asset.kind, prepared, headers))
}

/// The answer with a file, as the request's headers accept it.
pub(crate) fn served(
    bytes: &'static [u8],
    kind: &'static str,
    prepared: &'static Prepared,
    headers: &HeaderMap,
) -> Response<Body> {
    let has = |name: header::HeaderName, wanted: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        value.split(',').any(|one| {
            let (its, weight) = one.split_once(';').unwrap_or((one, ""));
            // A weight of 0 is "not acceptable" (RFC 9110, section 12.4.2).
            let weight = weight.trim().strip_prefix("q=").and_then(|q| q.trim().parse().ok());
            its.trim() == wanted && weight.is_none_or(|weight: f64| weight > 0.0)
        })
    };
    let is_known = has(header::IF_NONE_MATCH, &prepared.tag);
    let compressed =
        prepared.compressed.as_deref().filter(|_| has(header::ACCEPT_ENCODING, "gzip"));
    let body: &'static [u8] = match compressed {
        _ if is_known => &[],
        Some(bytes) => bytes,
        None => bytes,
    };
    let mut response = Response::new(Body::from(body));
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let fields = response.headers_mut();
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    fields.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if let Ok(tag) = HeaderValue::from_str(&prepared.tag) {
        fields.insert(header::ETAG, tag);
    }
    if compressed.is_some() && !is_known {
        fields.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

pub(crate) fn prepare(bytes: &[u8]) -> Prepared {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    let compressed = gzip.write_all(bytes).and_then(|()| gzip.finish()).ok();
    let compressed = compressed.filter(|compressed| compressed.len() < bytes.len());
    // FNV-1a, 64 bits: a page of another version has another tag.
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    Prepared { tag: format!("\"{hash:016x}\""), compressed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_tagged_and_compressed() {
        let mut headers = HeaderMap::new();
        let plain = answer("/", &headers).unwrap();
        let tag = plain.headers()[header::ETAG].clone();
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("br, gzip;q=0.9"));
        assert_eq!(answer("/", &headers).unwrap().headers()[header::CONTENT_ENCODING], "gzip");
        headers.insert(header::IF_NONE_MATCH, tag);
        assert_eq!(answer("/", &headers).unwrap().status(), StatusCode::NOT_MODIFIED);
        assert!(answer("/../Cargo.toml", &headers).is_none());
    }

    /// What the browser loads before it paints: what the page names, and nothing else.
    fn first_paint() -> Vec<&'static Asset> {
        let page = std::str::from_utf8(ASSETS[0].bytes).unwrap();
        let named = |asset: &&Asset| {
            asset.path == "/" || page.contains(&format!("\"{}\"", &asset.path[1..]))
        };
        ASSETS.iter().filter(named).collect()
    }

    #[test]
    fn the_page_is_small() {
        assert!(ASSETS.iter().map(|asset| asset.bytes.len()).sum::<usize>() <= 300_000);
        let first = first_paint();
        assert!(first.iter().any(|asset| asset.path == "/app.js"));
        let compressed = first.iter().map(|asset| prepare(asset.bytes).compressed.unwrap().len());
        assert!(compressed.sum::<usize>() <= 80_000);
    }

    #[test]
    fn every_file_is_served_and_loads_only_such() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/assets");
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(name == "index.html" || is_asset(&format!("/{name}")), "{name}");
        }
        let mut loaded = 0;
        for asset in ASSETS.iter().filter(|asset| asset.kind == SCRIPT) {
            let text = std::str::from_utf8(asset.bytes).unwrap();
            // A namespace is only a name.
            let text = text.replace("http://www.w3.org/2000/svg", "");
            assert!(!text.contains("://"), "{}", asset.path);
            // Imports, workers and dynamic imports, but not types.
            for part in text.split('"').filter(|part| part.starts_with("./")) {
                assert!(is_asset(&part[1..]), "{}: {part}", asset.path);
                loaded += usize::from(part.ends_with(".js"));
            }
        }
        assert!(loaded > 20, "{loaded}");
    }
}
