//! Lists of public servers. Two formats, recognised by their content:
//!
//! - lines `HOST PORTS RATE LOCATION`, where RATE may be `-` and `#` begins a comment;
//! - the JSON of public lists: an array of objects with the fields `IP/HOST`, `PORT`, `GB/S`,
//!   `SITE`, `COUNTRY`, `PROVIDER`, such as iperf3serverlist.net exports.
//!
//! Everything in a list was written by others: names are checked, texts shortened.

use serde_json::{Map, Value};
use std::collections::HashSet;
use units::BitRate;

/// Servers of a list at most: the public ones are a few hundred.
pub const MAX_SERVERS: usize = 2_000;

/// Characters of a location, and of a name (RFC 1035, section 2.3.4) at most.
const MAX_LOCATION: usize = 80;
const MAX_NAME: usize = 253;

/// iperf3's port, where a list has none.
const PORT: u16 = 5201;

/// Why a list cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    /// Neither format.
    #[error(
        "{problem}; a list has lines HOST PORTS RATE LOCATION (speedtest.example.net 5201-5210 10gbit \
         Amsterdam, NL), or is JSON: [{{\"IP/HOST\": …, \"PORT\": …, \"GB/S\": …, \"SITE\": …}}]"
    )]
    Format {
        /// What is wrong, with its line or entry.
        problem: FormatError,
    },
    /// Too many servers.
    #[error("more than {MAX_SERVERS} servers: shorten the list")]
    TooMany,
}

/// The part of a list that is in neither format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum FormatError {
    #[error("it lists no servers")]
    Empty,
    #[error("line {line}: {problem}")]
    Line { line: usize, problem: EntryError },
    #[error("it starts like JSON but is invalid: {0}")]
    NotJson(String),
    #[error("this JSON is not a list of servers")]
    OtherJson,
    #[error("entry {entry}: {problem}")]
    Entry { entry: usize, problem: EntryError },
}

/// A wrong part of a server's line or entry, shortened for messages.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum EntryError {
    #[error("'{0}' is not a port or port range")]
    Ports(String),
    #[error("'{0}' is not a host name or address")]
    Host(String),
    #[error(transparent)]
    Rate(#[from] units::ParseError),
    #[error("it is not an object")]
    NotAnObject,
    #[error("it lacks the field IP/HOST")]
    NoHost,
}

/// A server of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedServer {
    /// Name or address.
    pub host: String,
    /// First and last port.
    pub ports: (u16, u16),
    /// Its rate, if known.
    pub rate: Option<BitRate>,
    /// Site, country, provider.
    pub location: String,
}

/// The servers of a list, each once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerList {
    /// At least one.
    pub servers: Vec<ListedServer>,
}

impl From<FormatError> for ListError {
    fn from(problem: FormatError) -> Self {
        ListError::Format { problem }
    }
}

impl ServerList {
    /// Reads a list.
    ///
    /// # Errors
    /// [`ListError`], in one line.
    pub fn parse(text: &str) -> Result<Self, ListError> {
        let mut servers = match text.trim_start().starts_with(['[', '{']) {
            true => of_json(text)?,
            false => of_lines(text)?,
        };
        let mut known = HashSet::new();
        servers.retain(|server| known.insert((server.host.clone(), server.ports)));
        if servers.is_empty() {
            return Err(FormatError::Empty.into());
        }
        Ok(ServerList { servers })
    }
}

fn of_lines(text: &str) -> Result<Vec<ListedServer>, ListError> {
    let mut servers = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default();
        if line.trim().is_empty() {
            continue;
        }
        if servers.len() >= MAX_SERVERS {
            return Err(ListError::TooMany);
        }
        let wrong = |problem| FormatError::Line { line: number, problem };
        servers.push(of_line(line).map_err(|problem| ListError::from(wrong(problem)))?);
    }
    Ok(servers)
}

fn of_line(line: &str) -> Result<ListedServer, EntryError> {
    let mut fields = line.split_whitespace();
    let mut field = || fields.next().unwrap_or_default();
    let (host, given_ports, rate) = (field(), field(), field());
    let ports = ports(given_ports).ok_or_else(|| EntryError::Ports(short(given_ports)))?;
    let rate = match rate {
        "" | "-" => None,
        rate => Some(rate.parse::<BitRate>()?),
    };
    let location = location(&[&fields.collect::<Vec<_>>().join(" ")]);
    Ok(ListedServer { host: host_name(host)?, ports, rate, location })
}

fn of_json(text: &str) -> Result<Vec<ListedServer>, ListError> {
    let document: Value =
        serde_json::from_str(text).map_err(|error| FormatError::NotJson(error.to_string()))?;
    let entries = match &document {
        Value::Array(entries) => entries,
        Value::Object(object) => match field(object, &["servers"]) {
            Some(Value::Array(entries)) => entries,
            _ => return Err(FormatError::OtherJson.into()),
        },
        _ => return Err(FormatError::OtherJson.into()),
    };
    if entries.len() > MAX_SERVERS {
        return Err(ListError::TooMany);
    }
    let read = |(number, entry): (usize, &Value)| {
        let server = entry.as_object().ok_or(EntryError::NotAnObject).and_then(of_object);
        server.map_err(|problem| FormatError::Entry { entry: number, problem }.into())
    };
    (1..).zip(entries).map(read).collect()
}

fn of_object(entry: &Map<String, Value>) -> Result<ListedServer, EntryError> {
    let text = |names: &[&str]| -> String {
        match field(entry, names) {
            Some(Value::String(text)) => text.trim().to_owned(),
            Some(Value::Number(number)) => number.to_string(),
            _ => String::new(),
        }
    };
    let host = text(&["IP/HOST", "HOST", "IP", "ADDRESS"]);
    if host.is_empty() {
        return Err(EntryError::NoHost);
    }
    // Some exports have the command: iperf3 -c HOST -p 5201-5210.
    let after = |option: &str| {
        let mut words = host.split_whitespace().skip_while(|word| *word != option);
        words.nth(1).map(str::to_owned)
    };
    let name = after("-c").unwrap_or_else(|| host.clone());
    let given_ports = match text(&["PORT", "PORTS"]) {
        none if none.is_empty() => after("-p").unwrap_or_else(|| PORT.to_string()),
        given => given,
    };
    let ports = ports(&given_ports).ok_or_else(|| EntryError::Ports(short(&given_ports)))?;
    let rate = match text(&["GB/S", "GBPS"]) {
        none if none.is_empty() => text(&["RATE"]).parse::<BitRate>().ok(),
        given => gigabits(&given),
    };
    let location = location(&[
        &text(&["SITE", "CITY", "LOCATION"]),
        &text(&["COUNTRY"]),
        &text(&["PROVIDER"]),
    ]);
    Ok(ListedServer { host: host_name(&name)?, ports, rate, location })
}

/// A field by one of its names, in any case.
fn field<'a>(object: &'a Map<String, Value>, names: &[&str]) -> Option<&'a Value> {
    names.iter().find_map(|name| {
        object.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    })
}

/// `10`, `2x10` (two links of 10), and `1-10` or `25/100`, of which the least is certain, in
/// Gbit/s.
fn gigabits(text: &str) -> Option<BitRate> {
    let least = text
        .split(['-', '/', ',', ' '])
        .filter_map(|part| {
            let (count, each) = part.split_once(['x', 'X', '*']).unwrap_or(("1", part));
            Some(count.parse::<f64>().ok()? * each.parse::<f64>().ok()?)
        })
        .filter(|gbps| gbps.is_finite() && *gbps > 0.0)
        .reduce(f64::min)?;
    Some(BitRate::from_bps_f64(least * 1e9))
}

/// `5201`, `5201-5210`; of `5201,5202` the first.
fn ports(text: &str) -> Option<(u16, u16)> {
    let first_group = text.split([',', ';']).next().unwrap_or_default();
    let (first, last) = first_group.split_once('-').unwrap_or((first_group, first_group));
    let port = |text: &str| text.trim().parse::<u16>().ok().filter(|port| *port > 0);
    let range = (port(first)?, port(last)?);
    (range.0 <= range.1).then_some(range)
}

/// A name or address that may be given to the resolver.
fn host_name(text: &str) -> Result<String, EntryError> {
    let text = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let is_sound = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '%');
    let starts = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == ':');
    if starts && text.len() <= MAX_NAME && text.chars().all(is_sound) {
        Ok(text.to_owned())
    } else {
        Err(EntryError::Host(short(text)))
    }
}

/// The parts that are not empty, shortened.
fn location(parts: &[&str]) -> String {
    let parts: Vec<&str> =
        parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty()).collect();
    let text: String = parts.join(", ").chars().filter(|c| !c.is_control()).collect();
    text.chars().take(MAX_LOCATION).collect()
}

/// The beginning of a text for a message.
fn short(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(host: &str, ports: (u16, u16), gbps: Option<f64>, location: &str) -> ListedServer {
        let rate = gbps.map(|gbps| BitRate::from_bps_f64(gbps * 1e9));
        ListedServer { host: host.to_owned(), ports, rate, location: location.to_owned() }
    }

    #[test]
    fn lines_have_host_ports_rate_and_location() {
        let list = ServerList::parse(
            "# of our own\n\nspeedtest.example.net 5201-5210 10gbit Amsterdam, NL # fast\n\
             [2001:db8::1]\t5201 - Here\nlab 5201\nlab 5201 1gbit twice\r\n",
        );
        let expected = [
            server("speedtest.example.net", (5201, 5210), Some(10.0), "Amsterdam, NL"),
            server("2001:db8::1", (5201, 5201), None, "Here"),
            server("lab", (5201, 5201), None, ""),
        ];
        assert_eq!(list.unwrap().servers, expected);
    }

    #[test]
    fn the_public_list_is_read() {
        let list = ServerList::parse(
            r#"[{"IP/HOST":"iperf.example.net","PORT":"9200-9240","OPTIONS":"-6","GB/S":"10",
                 "CONTINENT":"Europe","COUNTRY":"FR","SITE":"Paris","PROVIDER":"Example"},
                {"IP/HOST":"-c 192.0.2.7","PORT":5002,"GB/S":"2x10","COUNTRY":"DE"},
                {"IP/HOST":"iperf3 -c a.example.org -p 5201-5203","GB/S":"1-10"},
                {"host":"b.example.org","port":"5201,5202","rate":"2.5gbit","location":"Bern"},
                {"IP/HOST":"c.example.org","PORT":"","GB/S":""}]"#,
        );
        let expected = [
            server("iperf.example.net", (9200, 9240), Some(10.0), "Paris, FR, Example"),
            server("192.0.2.7", (5002, 5002), Some(20.0), "DE"),
            server("a.example.org", (5201, 5203), Some(1.0), ""),
            server("b.example.org", (5201, 5201), Some(2.5), "Bern"),
            server("c.example.org", (5201, 5201), None, ""),
        ];
        assert_eq!(list.unwrap().servers, expected);
    }

    #[test]
    fn anything_else_is_refused_in_one_line_that_says_what_a_list_is() {
        for (text, part) in [
            ("", "no server"),
            ("# nothing\n", "no server"),
            ("a.example.net 5201\nThe quick brown fox", "line 2: 'quick' is not a port"),
            ("a.example.net 99999", "line 1: '99999' is not a port"),
            ("a.example.net 5210-5201", "line 1: '5210-5201' is not a port"),
            ("-oProxyCommand=x 5201", "is not a host name"),
            ("a.example.net 5201 fast", "is not a rate"),
            ("[{\"IP/HOST\":\"a\"", "starts like JSON"),
            ("{\"end\":{}}", "not a list of servers"),
            ("[1]", "entry 1: it is not an object"),
            ("[{\"PORT\":1}]", "entry 1: it lacks the field IP/HOST"),
            ("[{\"IP/HOST\":\"a;b\"}]", "entry 1: 'a;b' is not a host name"),
            ("[]", "no server"),
        ] {
            let error = ServerList::parse(text).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("HOST PORTS RATE"), "{text}: {error}");
            assert!(!error.contains('\n'), "{error}");
        }
        let many = "a.example.net 5201\n".repeat(MAX_SERVERS + 1);
        assert_eq!(ServerList::parse(&many), Err(ListError::TooMany));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_list_or_not(text in ".{0,200}") {
            if let Ok(list) = ServerList::parse(&text) {
                proptest::prop_assert!(!list.servers.is_empty());
            }
        }
    }
}
