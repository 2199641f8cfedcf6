//! The command lines of runs and boxes.

use super::request::{BoostVerifyRequest, VerifiedTest};
use crate::boost::BoxSettings;
use crate::boost::program::{NameServer, ProgramRequest};
use crate::{Fault, Problem};
use std::ffi::OsString;
use std::path::Path;

/// This program.
pub(super) fn own() -> Result<OsString, Problem> {
    let own = std::env::current_exe()
        .map_err(|error| Problem::new(Fault::Host, format!("cannot find this program: {error}")))?;
    Ok(own.into_os_string())
}

fn with(first: OsString, words: &[&str]) -> Vec<OsString> {
    std::iter::once(first).chain(words.iter().map(Into::into)).collect()
}

fn flag(words: &mut Vec<OsString>, name: &str, value: impl Into<OsString>) {
    words.extend([OsString::from(name), value.into()]);
}

/// The command that is compared.
pub(super) fn command(request: &BoostVerifyRequest) -> Result<Vec<OsString>, Problem> {
    match request.test() {
        None => Ok(request.boost.command.clone()),
        Some(test) => self::test(own()?, &test),
    }
}

/// A test with its result as JSON.
pub(super) fn test(program: OsString, test: &VerifiedTest) -> Result<Vec<OsString>, Problem> {
    let mut words = with(program, &["test", "--json"]);
    flag(&mut words, "-p", test.port.to_string());
    flag(&mut words, "-t", test.seconds.to_string());
    if test.streams > 1 {
        flag(&mut words, "-P", test.streams.to_string());
    }
    if test.reverse {
        words.push("-R".into());
    }
    words.extend(["--".into(), test.host.clone().into()]);
    Ok(words)
}

/// The same command behind `boost run`, which writes what it carried to `report`.
pub(super) fn boosted(
    request: &BoostVerifyRequest,
    command: &[OsString],
    report: &Path,
) -> Result<Vec<OsString>, Problem> {
    let boost = &request.boost;
    let mut words = with(own()?, &["boost", "run"]);
    match &boost.far {
        None => words.push("--solo".into()),
        Some(far) => {
            flag(&mut words, "--far", far);
            for file in &boost.settings.key_files {
                flag(&mut words, "--key-file", file);
            }
            if boost.settings.insecure {
                words.push("--insecure".into());
            }
            lanes(&mut words, boost);
        }
    }
    if boost.name_server == NameServer::Near {
        flag(&mut words, "--dns", "near");
    }
    for port in &boost.ports {
        flag(&mut words, "--port", port.to_string());
    }
    flag(&mut words, "--lanes", boost.lanes.to_string());
    settings(&mut words, &boost.settings);
    flag(&mut words, "--report", report);
    words.push("--".into());
    words.extend_from_slice(command);
    Ok(words)
}

/// What the flows share, and what is compressed, towards a far box.
fn lanes(words: &mut Vec<OsString>, boost: &ProgramRequest) {
    if boost.mux {
        words.push("--mux".into());
    }
    if boost.udt {
        words.push("--udt".into());
    }
    if let Some(count) = boost.connections {
        flag(words, "--connections", count.to_string());
    }
    compression(words, &boost.settings);
}

fn compression(words: &mut Vec<OsString>, settings: &BoxSettings) {
    if settings.compress {
        words.push("--compress".into());
    }
}

/// Congestion control and buffers of lanes.
fn settings(words: &mut Vec<OsString>, settings: &BoxSettings) {
    if let Some(congestion) = &settings.congestion {
        flag(words, "--congestion", congestion);
    }
    if let Some(buffer) = settings.buffer {
        flag(words, "--buffer", buffer.bytes().to_string());
    }
}

/// A program on a host of a lab.
pub(super) fn on_host(
    lab: &str,
    host: &str,
    command: &[OsString],
) -> Result<Vec<OsString>, Problem> {
    let mut words = with(own()?, &["lab", "exec", "--lab", lab, host]);
    words.extend_from_slice(command);
    Ok(words)
}

/// The near box of a lab: a gateway of the hosts behind `device`, for `ports`, or all.
pub(super) fn near(
    request: &BoostVerifyRequest,
    device: &str,
    ports: &str,
    key: &Path,
) -> Result<Vec<OsString>, Problem> {
    let mut words = with(own()?, &["boost", "near", "--far", "far", "--json", "--verbose"]);
    flag(&mut words, "--key-file", key);
    flag(&mut words, "--interface", device);
    flag(&mut words, "--transparent", ports);
    flag(&mut words, "--lanes", request.boost.lanes.to_string());
    lanes(&mut words, &request.boost);
    settings(&mut words, &request.boost.settings);
    Ok(words)
}

/// The far box of a lab, which connects to every address.
pub(super) fn far(request: &BoostVerifyRequest, key: &Path) -> Result<Vec<OsString>, Problem> {
    let mut words = with(own()?, &["boost", "far", "--listen", "0.0.0.0:7425"]);
    flag(&mut words, "--key-file", key);
    flag(&mut words, "--allow", "0.0.0.0/0:*");
    compression(&mut words, &request.boost.settings);
    settings(&mut words, &request.boost.settings);
    Ok(words)
}

/// Longhaul's server.
pub(super) fn server(port: u16) -> Result<Vec<OsString>, Problem> {
    Ok(with(own()?, &["server", "-p", &port.to_string()]))
}

/// A CUBIC flow.
pub(super) fn cubic(test: &VerifiedTest) -> Result<Vec<OsString>, Problem> {
    let mut words = self::test(own()?, test)?;
    let at = words.len().saturating_sub(2);
    words.splice(at..at, ["-C".into(), "cubic".into()]);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn what_is_verified_is_what_was_asked_for() {
        let mut request = BoostVerifyRequest::default();
        request.boost.far = Some("192.0.2.1".to_owned());
        let said = |request: &BoostVerifyRequest| {
            let file = Path::new("file");
            let own = [
                boosted(request, &["true".into()], file).unwrap(),
                near(request, "near0", "all", file).unwrap(),
                far(request, file).unwrap(),
            ];
            own.map(|words| {
                ["--mux", "--compress"].map(|flag| words.iter().any(|word| word == flag))
            })
        };
        assert_eq!(said(&request), [[false, false]; 3]);
        request.boost.mux = true;
        assert_eq!(said(&request), [[true, false], [true, false], [false, false]]);
        request.boost.connections = Some(4);
        let near = near(&request, "near0", "all", Path::new("file")).unwrap();
        assert!(near.windows(2).any(|words| words == ["--connections", "4"]), "{near:?}");
        (request.boost.mux, request.boost.connections) = (false, None);
        request.boost.settings.compress = true;
        assert_eq!(said(&request), [[false, true]; 3]);
        // Without a far box there are no lanes.
        request.boost.far = None;
        assert!(!said(&request)[0][1]);
    }
}
