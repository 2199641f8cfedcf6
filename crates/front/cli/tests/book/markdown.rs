//! Fenced code blocks and tables of a Markdown page.

/// A fenced code block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    /// First word of the info string: `console`, `sh`, `toml`.
    pub(crate) language: String,
    /// The other words, such as `tolerance=20%` and `no-run="needs a far host"`.
    pub(crate) options: Vec<String>,
    /// Index of the first line inside the fence.
    pub(crate) start: usize,
    /// The lines inside the fence.
    pub(crate) lines: Vec<String>,
}

/// Every fenced block of a page, in order.
pub(crate) fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (number, line) in page.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => block.lines.push(line.to_owned()),
            (None, Some(info)) => {
                let mut words = words_of(info).into_iter();
                open = Some(Block {
                    language: words.next().unwrap_or_default(),
                    options: words.collect(),
                    start: number + 1,
                    lines: Vec::new(),
                });
            }
            (None, None) => {}
        }
    }
    blocks
}

/// The words of an info string; a value in quotation marks may have spaces.
fn words_of(info: &str) -> Vec<String> {
    let (mut words, mut open, mut quoted) = (Vec::new(), String::new(), false);
    for c in info.chars().chain([' ']) {
        match c {
            '"' => quoted = !quoted,
            c if c.is_whitespace() && !quoted => {
                words.extend(Some(std::mem::take(&mut open)).filter(|word| !word.is_empty()));
            }
            c => open.push(c),
        }
    }
    words
}

/// Commands of a block with their continuation lines joined, each with the
/// lines that follow it up to the next command. In a `console` block commands
/// begin with `$ `; in an `sh` block every line is one.
pub(crate) fn commands(block: &Block) -> Vec<(String, Vec<String>)> {
    let mut commands: Vec<(String, Vec<String>)> = Vec::new();
    let mut continues = false;
    for line in &block.lines {
        if continues {
            if let Some((command, _)) = commands.last_mut() {
                continues = joined(command, line.trim_start());
            }
            continue;
        }
        let begins = match block.language.as_str() {
            "console" => line.strip_prefix("$ "),
            _ => Some(line.as_str()),
        };
        match (begins, commands.last_mut()) {
            (Some(text), _) => {
                let mut command = String::new();
                continues = joined(&mut command, text);
                commands.push((command, Vec::new()));
            }
            (None, Some((_, output))) => output.push(line.clone()),
            (None, None) => panic!("output before the first command: {line}"),
        }
    }
    commands
}

/// Appends a line; whether it ends with a backslash and so goes on.
fn joined(command: &mut String, line: &str) -> bool {
    let (text, continues) =
        line.strip_suffix('\\').map_or((line, false), |text| (text.trim_end(), true));
    if !command.is_empty() {
        command.push(' ');
    }
    command.push_str(text);
    continues
}
