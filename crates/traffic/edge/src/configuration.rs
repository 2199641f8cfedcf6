//! nginx's configuration for an edge, as text.
//!
//! Nothing in it is a user's text: addresses and numbers are formatted from their types, and an
//! [`Origin`], a [`CacheDirectory`] and a [`Pseudonym`] have only characters without a meaning in a
//! configuration.

use crate::access_log::{self, CacheStatus};
use crate::origin::{Origin, Scheme};
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use units::{BitRate, ByteCount};

/// The slowest origin for which one client at a time fetches a slice: below, nginx lets the next
/// one fetch it as well.
pub const MIN_RATE: BitRate = BitRate::from_bps(1_000_000);

/// Time for the origin's answer to begin, within a lock's.
const ANSWER: Duration = Duration::from_secs(60);
/// A lock for whole objects, whose size is unknown.
const WHOLE_OBJECT: Duration = Duration::from_secs(3600);

/// Settings of an edge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EdgeConfig {
    /// The only server that it fetches from.
    pub origin: Origin,
    /// Where clients connect.
    pub listen: SocketAddr,
    /// Size of the parts in which objects are fetched and stored; `None`: as a whole.
    pub slice: Option<ByteCount>,
    /// Most bytes of the cache.
    pub max_size: ByteCount,
    /// How long objects are fresh of which the origin says nothing; `None`: they are not stored.
    pub fresh: Option<Duration>,
    /// Where the cache is.
    pub cache: CacheDirectory,
    /// Its name in Via.
    pub pseudonym: Pseudonym,
    /// By whose certificates an origin with TLS is verified.
    pub authorities: Authorities,
    /// True for a root that cannot become another user, as in a sandbox: nginx's workers keep it.
    pub keeps_user: bool,
}

/// A file with certificates of authorities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Authorities(&'static str);

/// The directory of cached objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CacheDirectory {
    /// Below nginx's own, removed with it.
    Private,
    /// An absolute path, which stays.
    At(CachePath),
}

/// An absolute path of unreserved characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachePath(String);

/// A name in Via, by which an edge knows a request that it has forwarded itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pseudonym(String);

/// Where logs go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Standard output and standard error.
    Streams,
    /// Files below nginx's directory, with the URIs of requests.
    Files,
}

impl std::str::FromStr for CachePath {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let is_name =
            |name: &str| !["", ".", ".."].contains(&name) && name.bytes().all(is_unreserved);
        match text.strip_prefix('/') {
            Some(names) if text.len() <= 1024 && names.split('/').all(is_name) => {
                Ok(CachePath(text.to_owned()))
            }
            _ => Err("give an absolute path of letters, digits, '-', '.' and '_'"),
        }
    }
}

impl CachePath {
    /// As text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Pseudonym {
    /// `longhaul-edge`, and a number that no other edge has.
    #[must_use]
    pub fn of(number: u64) -> Self {
        Pseudonym(format!("longhaul-edge-{number:016x}"))
    }
}

impl EdgeConfig {
    /// How long the others wait for the request that fetches a slice: longer than [`MIN_RATE`]
    /// needs for it.
    #[must_use]
    pub fn lock_time(&self) -> Duration {
        match self.slice {
            Some(slice) => ANSWER + MIN_RATE.time_for(slice),
            None => WHOLE_OBJECT,
        }
    }
}

impl Authorities {
    /// Where distributions have the file, Debian first.
    pub const ALL: [Authorities; 4] = [
        Authorities("/etc/ssl/certs/ca-certificates.crt"),
        Authorities("/etc/pki/tls/certs/ca-bundle.crt"),
        Authorities("/etc/ssl/ca-bundle.pem"),
        Authorities("/etc/ssl/cert.pem"),
    ];

    /// Its path.
    #[must_use]
    pub fn path(self) -> &'static Path {
        Path::new(self.0)
    }
}

/// The configuration. Paths are relative to nginx's prefix, which must be its working directory:
/// `cd DIR && nginx -p . -c edge.conf`.
#[must_use]
pub fn configuration(of: &EdgeConfig, output: Output) -> String {
    [main_part(of, output), logs(output), clients(), cache(of), upstream(of), server(of)].concat()
}

fn main_part(of: &EdgeConfig, output: Output) -> String {
    let errors = match output {
        Output::Streams => "stderr",
        Output::Files => "error.log",
    };
    let user = if of.keeps_user { "user root root;\n" } else { "" };
    format!(
        "# An edge cache by longhaul boost edge. Needs nginx 1.13 or later with the modules slice, \
         ssl and\n# stub_status. In a directory of its own: cd DIR && nginx -p . -c edge.conf\n\
         {user}daemon off;\npid nginx.pid;\nerror_log {errors} warn;\n\
         # One, as each would have connections to the origin of its own.\nworker_processes 1;\n\
         worker_rlimit_nofile 8192;\nworker_shutdown_timeout 10s;\n\
         events {{ worker_connections 4096; }}\n\nhttp {{\n"
    )
}

fn logs(output: Output) -> String {
    let (file, uri) = match output {
        Output::Streams => ("/dev/stdout", ""),
        Output::Files => ("access.log", "\\t$request_uri"),
    };
    format!(
        "    # A line for each request and, with a request length of 0, each further slice.\n    \
         log_format edge escape=json '{}{uri}';\n    access_log {file} edge;\n    \
         log_subrequest on;\n\n",
        access_log::FORMAT
    )
}

/// Limits of clients, and what is fetched on their behalf.
fn clients() -> String {
    "    server_tokens off;
    default_type application/octet-stream;
    client_header_timeout 10s;
    client_body_timeout 10s;
    client_max_body_size 1k;
    large_client_header_buffers 4 8k;
    send_timeout 60s;
    keepalive_timeout 65s;
    reset_timedout_connection on;
    limit_conn_zone $binary_remote_addr zone=clients:1m;
    limit_conn clients 512;
    limit_conn_status 429;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;

"
    .to_owned()
}

fn cache(of: &EdgeConfig) -> String {
    // Below the user's directory, as nginx makes it one of its workers' user.
    let directory = match &of.cache {
        CacheDirectory::Private => "cache".to_owned(),
        CacheDirectory::At(path) => format!("{}/objects", path.as_str()),
    };
    let mut text = format!(
        "    proxy_cache_path {directory} levels=1:2 keys_zone=edge:32m max_size={} inactive=30d \
         use_temp_path=off;\n    # Cache-Status (RFC 9211).\n    map $upstream_cache_status \
         $cache_status {{\n        default '';\n",
        of.max_size.bytes()
    );
    for status in CacheStatus::ALL {
        let parameters = status.parameters();
        let _ = writeln!(text, "        {} 'longhaul-edge; {parameters}';", status.name());
    }
    text + "    }\n\n"
}

fn upstream(of: &EdgeConfig) -> String {
    format!(
        "    # The only server that this edge connects to; a name is resolved at the start.\n    \
         upstream origin {{\n        server {} max_fails=0;\n        keepalive 32;\n    }}\n\n",
        of.origin.server()
    )
}

fn server(of: &EdgeConfig) -> String {
    let (listen, Pseudonym(pseudonym)) = (of.listen, &of.pseudonym);
    format!(
        "    # Connections and requests, for this host alone.
    server {{
        listen unix:status.sock;
        access_log off;
        location = /status {{ stub_status; }}
        location / {{ return 404; }}
    }}

    server {{
        listen {listen};
        # A loop: this edge has forwarded the request before.
        if ($http_via ~ {pseudonym}) {{ return 508; }}
        location / {{
            limit_except GET {{ deny all; }}
{}{}{}        }}
    }}
}}
",
        caching(of),
        forwarding(of),
        tls(of)
    )
}

fn caching(of: &EdgeConfig) -> String {
    let (origin, lock) = (&of.origin, of.lock_time().as_secs());
    let slice = match of.slice {
        Some(size) => format!(
            "            # Objects are fetched and stored in slices, so that a range does not fetch \
             the whole.\n            slice {};\n            proxy_set_header Range $slice_range;\n            \
             # nginx cannot renew a slice in the background: the request would have no range.\n            \
             proxy_cache_background_update off;\n            proxy_cache_key \
             '{origin} $request_uri $slice_range';\n",
            size.bytes()
        ),
        None => format!(
            "            proxy_cache_background_update on;\n            proxy_cache_key \
             '{origin} $request_uri';\n"
        ),
    };
    let fresh = of.fresh.map_or(String::new(), |time| {
        format!(
            "            # Where the origin says nothing.\n            proxy_cache_valid 200 206 301 \
             {}s;\n",
            time.as_secs()
        )
    });
    format!(
        "            proxy_cache edge;
{slice}{fresh}            # One request fetches, the others wait, longer than the slowest slice takes.
            proxy_cache_lock on;
            proxy_cache_lock_timeout {lock}s;
            proxy_cache_lock_age {lock}s;
            proxy_cache_revalidate on;
            # Stale while another request renews it, and while the origin fails (RFC 5861).
            proxy_cache_use_stale updating error timeout http_500 http_502 http_503 http_504;
            # Answers to credentials and cookies are neither stored nor taken from the cache.
            proxy_cache_bypass $http_authorization $http_cookie;
            proxy_no_cache $http_authorization $http_cookie;
            add_header Cache-Status $cache_status always;
"
    )
}

fn forwarding(of: &EdgeConfig) -> String {
    let (origin, Pseudonym(pseudonym)) = (&of.origin, &of.pseudonym);
    let (scheme, prefix) = (origin.scheme().name(), origin.prefix());
    // A prefix replaces the location's: `..` cannot leave it, as nginx resolves it before.
    let path = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
    format!(
        "            # Only headers that the key has, or that do not change the answer.
            proxy_pass_request_headers off;
            proxy_pass_request_body off;
            proxy_set_header Host {authority};
            proxy_set_header Via '1.1 {pseudonym}';
            proxy_set_header Authorization $http_authorization;
            proxy_set_header Cookie $http_cookie;
            proxy_set_header Connection '';
            proxy_http_version 1.1;
            proxy_redirect {scheme}://{authority}{prefix}/ /;
            proxy_connect_timeout 10s;
            proxy_read_timeout {answer}s;
            proxy_buffers 16 32k;
            proxy_buffer_size 32k;
            proxy_max_temp_file_size 0;
            proxy_pass {scheme}://origin{path};
",
        authority = origin.authority(),
        answer = ANSWER.as_secs(),
    )
}

fn tls(of: &EdgeConfig) -> String {
    if of.origin.scheme() == Scheme::Http {
        return String::new();
    }
    // A name for SNI and the certificate; an address has no SNI (RFC 6066, section 3).
    let host = of.origin.host();
    let host = of.origin.name().unwrap_or(host.trim_matches(['[', ']']));
    let sni = if of.origin.name().is_some() { "on" } else { "off" };
    format!(
        "            proxy_ssl_server_name {sni};
            proxy_ssl_name {host};
            proxy_ssl_protocols TLSv1.2 TLSv1.3;
            proxy_ssl_verify on;
            proxy_ssl_verify_depth 5;
            proxy_ssl_trusted_certificate {};
",
        of.authorities.0
    )
}

#[cfg(test)]
mod tests;
