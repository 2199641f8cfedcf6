//! The bench's own options.

use bench_harness::{Arguments, Fallible};

/// What was asked for.
#[derive(Debug)]
pub(crate) struct Options {
    /// The parts to measure: all but the long one if none is named.
    pub(crate) parts: Vec<&'static str>,
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
        mut arguments: Arguments,
        known: &[(&'static str, &'static str)],
    ) -> Fallible<Self> {
        let svg = arguments.value("--svg")?;
        let rounds = arguments.count("--rounds")?;
        let shapes = arguments.value("--shapes")?;
        let is_all = arguments.is_empty();
        let mut parts = arguments.parts(known)?;
        parts.retain(|part| !is_all || *part != "engine");
        let options = Options { parts, svg, rounds, shapes };
        let is_engine = options.parts.iter().all(|part| part.starts_with("engine"));
        if (options.rounds.is_some() || options.shapes.is_some()) && !is_engine {
            return Err("--rounds and --shapes are of the engine: name that part".into());
        }
        let has_picture = |part: &str| part == "udp" || part.starts_with("engine");
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
