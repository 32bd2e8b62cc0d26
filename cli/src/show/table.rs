//! Tables whose columns are aligned, whatever the letters are.

use unicode_width::UnicodeWidthStr;

use super::{Look, plain};

/// The longest text of a cell, in columns of a terminal.
const WIDEST: usize = 64;

/// A table with a header.
pub(crate) struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(header: &[&'static str]) -> Self {
        Self { header: header.to_vec(), rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| cut(&plain(&cell))).collect());
    }

    pub(crate) fn render(&self, look: Look) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width());
            cells.chain(self.header.get(column).map(|cell| cell.width())).max().unwrap_or(0)
        };
        let widths: Vec<_> = (0..self.header.len()).map(width).collect();
        let header: Vec<_> = self.header.iter().map(|&cell| cell.to_owned()).collect();
        let mut text = look.faint(&line(&header, &widths)) + "\n";
        for row in &self.rows {
            text += &line(row, &widths);
            text.push('\n');
        }
        text
    }
}

/// Returns names and values below each other. Nothing is cut.
pub(crate) fn pairs(pairs: &[(&str, String)], look: Look) -> String {
    let width = pairs.iter().map(|(name, _)| name.width()).max().unwrap_or(0);
    let line = |(name, value): &(&str, String)| {
        let name = format!("{name}{}", " ".repeat(width - name.width()));
        format!("{}  {value}\n", look.faint(&name))
    };
    pairs.iter().map(line).collect()
}

/// Returns a line of cells, each as wide as its column.
fn line(cells: &[String], widths: &[usize]) -> String {
    let padded = cells.iter().zip(widths).map(|(cell, &width)| {
        let missing = width.saturating_sub(cell.width());
        format!("{cell}{}", " ".repeat(missing))
    });
    padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}

/// Cuts a text that is too wide for a column.
fn cut(text: &str) -> String {
    if text.width() <= WIDEST {
        return text.to_owned();
    }
    let mut short = String::new();
    for character in text.chars() {
        if short.width() + 2 >= WIDEST {
            break;
        }
        short.push(character);
    }
    short + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_also_with_wide_letters() {
        let mut table = Table::new(&["KEY", "STATE"]);
        table.row(["订单".into(), "running".into()]);
        table.row(["a-long-key".into(), "settled".into()]);
        let text = table.render(Look::PLAIN);
        assert_eq!(text, "KEY         STATE\n订单        running\na-long-key  settled\n");
    }

    #[test]
    fn a_cell_can_neither_move_the_cursor_nor_take_the_whole_line() {
        let mut table = Table::new(&["KEY"]);
        table.row(["a\u{1b}[2J\nb".into()]);
        table.row(["x".repeat(300)]);
        let text = table.render(Look::PLAIN);
        assert!(!text.contains('\u{1b}') && text.lines().count() == 3, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= WIDEST), "{text}");
    }

    #[test]
    fn pairs_are_aligned() {
        let text = pairs(&[("key", "7".into()), ("log id", "8".into())], Look::PLAIN);
        assert_eq!(text, "key     7\nlog id  8\n");
    }
}
