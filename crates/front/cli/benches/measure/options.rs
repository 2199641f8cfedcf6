//! The bench's own options.

use crate::Fallible;

/// What was asked for.
#[derive(Debug, Default)]
pub(crate) struct Options {
    /// Names of the parts to measure; without any, all but the long ones.
    pub(crate) parts: Vec<String>,
    /// `--svg FILE`: a picture of the figures.
    pub(crate) svg: Option<String>,
    /// `--rounds N`.
    pub(crate) rounds: Option<usize>,
    /// `--shapes 'veth -P 4 -R,loopback -P 1'`: those of the engine alone.
    shapes: Option<String>,
}

impl Options {
    /// Reads the command line. `known` are the names of the parts.
    pub(crate) fn read(
        arguments: impl IntoIterator<Item = String>,
        known: &[&str],
    ) -> Fallible<Self> {
        let mut options = Options::default();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            match &*argument {
                // What cargo adds.
                "--bench" => {}
                "--svg" => options.svg = Some(value()?),
                "--rounds" => options.rounds = Some(value()?.parse()?),
                "--shapes" => options.shapes = Some(value()?),
                name if known.contains(&name) => options.parts.push(argument),
                name => return Err(format!("{name}: the parts are {}", known.join(", ")).into()),
            }
        }
        let is_engine = options.parts.iter().all(|part| part.starts_with("engine"));
        let of_engine = options.rounds.is_some() || options.shapes.is_some();
        if of_engine && (options.parts.is_empty() || !is_engine) {
            return Err("--rounds and --shapes are of the engine: name that part".into());
        }
        if options.rounds == Some(0) {
            return Err("--rounds is at least 1".into());
        }
        let has_picture = |part: &String| part == "udp" || part.starts_with("engine");
        if options.svg.is_some() && !matches!(&options.parts[..], [part] if has_picture(part)) {
            return Err("--svg is of one part, udp or engine: name it".into());
        }
        Ok(options)
    }

    /// Whether a shape of the engine is to be measured.
    pub(crate) fn includes(&self, shape: &str) -> bool {
        let list = self.shapes.as_ref();
        list.is_none_or(|list| list.split(',').any(|one| one.trim() == shape))
    }
}
