//! A drawing surface of terminal cells: eight braille dots per cell, or one ASCII mark.

/// Marks of the curves without braille.
const MARKS: [&str; 4] = ["o", "*", "x", "%"];

/// How a curve's line looks in a legend.
pub(super) fn swatch(curve: usize, unicode: bool) -> String {
    if unicode { "━━".to_owned() } else { MARKS[curve % MARKS.len()].to_owned() }
}

/// The dash of a horizontal line.
pub(super) fn dash(unicode: bool) -> &'static str {
    if unicode { "╌" } else { "-" }
}

/// The mark at a point.
pub(super) fn point(unicode: bool) -> &'static str {
    if unicode { "◉" } else { "@" }
}

#[derive(Clone, Copy, Default)]
struct Cell {
    dots: u8,
    curve: Option<usize>,
    ruled: bool,
    marked: bool,
}

pub(super) struct Canvas {
    width: usize,
    rows: usize,
    unicode: bool,
    cells: Vec<Cell>,
}

impl Canvas {
    pub(super) fn new(width: usize, rows: usize, unicode: bool) -> Self {
        Canvas { width, rows, unicode, cells: vec![Cell::default(); width * rows] }
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Dots per cell: columns, rows.
    fn dots_per_cell(&self) -> (usize, usize) {
        if self.unicode { (2, 4) } else { (1, 1) }
    }

    /// The row of dots, from the top, that a height of 0 to 1 falls on.
    fn dot_row(&self, height: f64) -> usize {
        let last = self.rows * self.dots_per_cell().1 - 1;
        let up = (height.clamp(0.0, 1.0) * last as f64).round() as usize;
        last - up.min(last)
    }

    /// The row of cells, from the top, that a height of 0 to 1 falls on.
    pub(super) fn row_of(&self, height: f64) -> usize {
        self.dot_row(height) / self.dots_per_cell().1
    }

    /// A dashed horizontal line, behind the curves.
    pub(super) fn rule(&mut self, height: f64) {
        let row = self.row_of(height);
        for cell in self.cells.iter_mut().skip(row * self.width).take(self.width) {
            cell.ruled = true;
        }
    }

    /// A curve through points of 0 to 1 in both directions, left to right.
    pub(super) fn curve(&mut self, points: &[(f64, f64)], curve: usize) {
        let columns = self.width * self.dots_per_cell().0;
        let column = |x: f64| (x.clamp(0.0, 1.0) * (columns - 1) as f64).round() as usize;
        if let [only] = points {
            self.dot(column(only.0), self.dot_row(only.1), curve);
        }
        for pair in points.windows(2) {
            let [a, b] = pair else { continue };
            let (from, to) = (column(a.0), column(b.0));
            let mut before = self.dot_row(a.1);
            for x in from..=to {
                let along = if to > from { (x - from) as f64 / (to - from) as f64 } else { 1.0 };
                let row = self.dot_row(a.1 + (b.1 - a.1) * along);
                // Fill steep segments, which would otherwise be separate dots.
                let (high, low) = if row < before { (row, before - 1) } else { (before + 1, row) };
                self.dot(x, row, curve);
                for y in high..=low {
                    self.dot(x, y, curve);
                }
                before = row;
            }
        }
    }

    /// A mark at a point in the colour of a curve, above everything else.
    pub(super) fn mark(&mut self, x: f64, y: f64, curve: usize) {
        let column = (x.clamp(0.0, 1.0) * (self.width - 1) as f64).round() as usize;
        let index = self.row_of(y) * self.width + column;
        if let Some(cell) = self.cells.get_mut(index) {
            (cell.marked, cell.curve) = (true, Some(curve));
        }
    }

    fn dot(&mut self, x: usize, y: usize, curve: usize) {
        // Unicode numbers braille dots down the left column, then the right, then the last row.
        const BITS: [[u8; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];
        let (across, up) = self.dots_per_cell();
        let index = (y / up) * self.width + x / across;
        if let Some(cell) = self.cells.get_mut(index) {
            // A cell shows one curve only: the dots of two would merge.
            if cell.curve != Some(curve) {
                cell.dots = 0;
            }
            cell.dots |= BITS[y % up][x % across];
            cell.curve = Some(curve);
        }
    }

    /// A row as spans of one curve each; `None` is background.
    pub(super) fn row(&self, row: usize) -> Vec<(Option<usize>, String)> {
        let mut pieces: Vec<(Option<usize>, String)> = Vec::new();
        for cell in self.cells.iter().skip(row * self.width).take(self.width) {
            let glyph = match (cell.curve, cell.ruled) {
                _ if cell.marked => point(self.unicode).to_owned(),
                (Some(_), _) if self.unicode => {
                    char::from_u32(0x2800 + u32::from(cell.dots)).unwrap_or(' ').to_string()
                }
                (Some(curve), _) => MARKS[curve % MARKS.len()].to_owned(),
                (None, true) => dash(self.unicode).to_owned(),
                (None, false) => " ".to_owned(),
            };
            match pieces.last_mut() {
                Some((curve, text)) if *curve == cell.curve => text.push_str(&glyph),
                _ => pieces.push((cell.curve, glyph)),
            }
        }
        pieces
    }
}
