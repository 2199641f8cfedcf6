//! The BDP report of a path: one line and one equation per figure.

use super::{
    Style,
    line::{Line, block, labelled},
    style,
};
use crate::bdp_rows::rows;
use model::BdpReport;

/// Column of the equations.
const COLUMN: usize = 18;

/// The BDP report of one path.
#[must_use]
pub fn bdp_report(result: &BdpReport, style: &Style) -> String {
    let lines = rows(result).map(|group| {
        let each = group.iter().flat_map(|(label, equation)| {
            labelled(style, 0, (style::STRONG, label), COLUMN, (style::PLAIN, equation))
        });
        each.collect::<Vec<_>>()
    });
    block(lines.join(&Line::new(style)))
}
