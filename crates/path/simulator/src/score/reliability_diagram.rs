//! The reliability diagram: how often findings of a probability are right.

use std::fmt::Write;

/// The side of the plot and its margin, px.
const SIDE: f64 = 360.0;
const MARGIN: f64 = 48.0;

/// The diagram as SVG. `bins`: mean probability, share right and number of findings of each.
#[must_use]
pub fn reliability_diagram(bins: &[(f64, f64, usize)]) -> String {
    let size = SIDE + 2.0 * MARGIN;
    let x = |probability: f64| MARGIN + SIDE * probability;
    let y = |share: f64| MARGIN + SIDE * (1.0 - share);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {size} {size}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{size}\" height=\"{size}\" fill=\"#fff\"/>\n"
    );
    for tick in 0..=5 {
        let at = f64::from(tick) / 5.0;
        let (right, bottom) = (x(at), y(at));
        let (first, last) = (x(0.0), x(1.0));
        let _ = write!(
            svg,
            "<path d=\"M{first} {bottom}H{last}M{right} {first}V{last}\" stroke=\"#ddd\"/>\n\
             <text x=\"{right}\" y=\"{}\" text-anchor=\"middle\">{at}</text>\n\
             <text x=\"{}\" y=\"{}\" text-anchor=\"end\">{at}</text>\n",
            last + 16.0,
            first - 6.0,
            bottom + 4.0
        );
    }
    let (low, high) = (x(0.0), x(1.0));
    let _ = write!(
        svg,
        "<path d=\"M{low} {high}L{high} {low}\" stroke=\"#888\" stroke-dasharray=\"4\"/>\n\
         <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">probability of the finding</text>\n\
         <text x=\"{low}\" y=\"{}\">share of findings that are right</text>\n",
        (low + high) / 2.0,
        high + 36.0,
        low - 16.0
    );
    for (probability, right, count) in bins {
        // 95 % of the shares that a calibrated model would show.
        let spread = 1.96 * (probability * (1.0 - probability) / (*count as f64).max(1.0)).sqrt();
        let at = x(*probability);
        let (top, bottom) =
            (y((probability + spread).min(1.0)), y((probability - spread).max(0.0)));
        let _ = write!(
            svg,
            "<path d=\"M{at} {top}V{bottom}\" stroke=\"#9ab\" stroke-width=\"6\"/>\n\
             <circle cx=\"{at}\" cy=\"{}\" r=\"4\" fill=\"#246\"/>\n",
            y(*right)
        );
    }
    svg + "</svg>\n"
}
