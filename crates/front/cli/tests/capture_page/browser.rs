//! A page in headless Chromium, and what a script says of it.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Begins and ends what the script returns, in the document that Chromium prints.
const MARKS: [&str; 2] = ["<pre>RESULT:", ":RESULT</pre>"];

/// Whether Chromium is there.
pub(crate) fn is_installed() -> bool {
    let version = Command::new("chromium").arg("--version").output();
    version.is_ok_and(|output| output.status.success())
}

/// Chromium without network, for at most a minute; its profile is in `folder`.
pub(crate) fn chromium(folder: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.args(["60", "chromium", "--headless", "--no-sandbox", "--disable-gpu"]);
    command.args(["--host-resolver-rules=MAP * ~NOTFOUND", "--window-size=1400,1000"]);
    command.arg(format!("--user-data-dir={}", folder.join("profile").display()));
    command.env("HOME", folder).env("XDG_CACHE_HOME", folder);
    command
}

/// Opens the page and runs `script`, the body of a function that returns a value, after the
/// page's own scripts; `errors` in it are those of the page.
pub(crate) fn run(page: &Path, folder: &Path, script: &str) -> Result<Value, String> {
    let html = std::fs::read_to_string(page).map_err(|error| error.to_string())?;
    // Before the page's Content-Security-Policy, which permits no script but its own.
    let ours = format!(
        "<head><script>const errors = [];\
         addEventListener('error', (event) => errors.push(event.message));\
         addEventListener('securitypolicyviolation', (event) =>\
         errors.push(event.violatedDirective));\
         addEventListener('load', () => {{ let result; \
         try {{ result = (() => {{ {script} }})(); }} \
         catch (error) {{ result = String(error.stack); }} \
         document.documentElement.innerHTML = '<pre></pre>'; \
         document.querySelector('pre').textContent = \
         'RESULT:' + JSON.stringify(result).replace(/[<>&]/g, '?') + ':RESULT'; }});</script>"
    );
    let html = html.replacen("<head>", &ours, 1);
    let copy = folder.join("with-script.html");
    std::fs::write(&copy, html).map_err(|error| error.to_string())?;
    let mut command = chromium(folder);
    command.arg("--dump-dom").arg(format!("file://{}", copy.display()));
    let output = command.output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let result = text.split_once(MARKS[0]).and_then(|(_, rest)| rest.split_once(MARKS[1]));
    let (result, _) = result.ok_or_else(|| {
        format!("no result: {text:.300}; {}", String::from_utf8_lossy(&output.stderr))
    })?;
    serde_json::from_str(result).map_err(|error| format!("{error}: {result}"))
}
