//! The figures of `engine` or of `udp` as a picture: `--svg FILE`. A bar for each program, a group
//! for each shape of a test.

use crate::options::Options;
use bench_harness::Fallible;
use std::fmt::Write;

/// A shape of a test, and what each program reached, in the unit of the picture.
pub(crate) struct Group {
    pub(crate) shape: String,
    /// In the order of the legend; `None` where a program has no such test.
    pub(crate) rates: Vec<Option<f64>>,
}

const COLOURS: [&str; 5] = ["#0b7285", "#adb5bd", "#868e96", "#ced4da", "#495057"];
const BAR: usize = 11;
const GAP: usize = 9;
/// Width of the longest bar, and of the names before it, pixels.
const WIDTH: f64 = 460.0;
const NAMES: usize = 190;

/// Writes the file that `--svg` names; without it, nothing.
pub(crate) fn write(
    options: &Options,
    programs: &[String],
    groups: &[Group],
    unit: &str,
) -> Fallible<()> {
    if let Some(file) = &options.svg {
        std::fs::write(file, svg(programs, groups, unit))?;
    }
    Ok(())
}

/// An SVG document of bars.
fn svg(programs: &[String], groups: &[Group], unit: &str) -> String {
    let longest =
        groups.iter().flat_map(|group| &group.rates).flatten().copied().fold(1.0, f64::max);
    let step = programs.len() * BAR + GAP;
    let height = 52 + groups.len() * step;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 720 {height}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"720\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    for (at, (program, colour)) in programs.iter().zip(COLOURS).enumerate() {
        let x = 10 + at * 140;
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"10\" width=\"10\" height=\"10\" fill=\"{colour}\"/>\
             <text x=\"{}\" y=\"19\">{program}</text>",
            x + 14
        );
    }
    for (at, group) in groups.iter().enumerate() {
        let top = 34 + at * step;
        let middle = top + programs.len() * BAR / 2 + 4;
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{middle}\" text-anchor=\"end\">{}</text>",
            NAMES - 8,
            group.shape
        );
        for (row, (rate, colour)) in group.rates.iter().zip(COLOURS).enumerate() {
            let Some(rate) = rate else { continue };
            let (y, width) = (top + row * BAR, rate / longest * WIDTH);
            let _ = writeln!(
                svg,
                "<rect x=\"{NAMES}\" y=\"{y}\" width=\"{width:.1}\" height=\"{}\" \
                 fill=\"{colour}\"/><text x=\"{:.1}\" y=\"{}\" font-size=\"9\">{rate:.0}</text>",
                BAR - 1,
                NAMES as f64 + width + 4.0,
                y + 9
            );
        }
    }
    let _ = writeln!(svg, "<text x=\"{NAMES}\" y=\"{}\">{unit}</text>", height - 10);
    svg + "</svg>\n"
}
