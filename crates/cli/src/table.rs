//! Tables that fit the columns there are.

use crate::terminal::wrapped;
use suimon_statistics::table::{Align, columns, folded, width, widths};

/// A column: its heading, how it is aligned, and how early it is left out where there is no room for all:
/// the highest number first, and never number 0.
pub(crate) type Column = (&'static str, Align, u8);

/// Columns that sentences need at the least to stand beside the other cells.
const SENTENCE_COLUMNS_MIN: usize = 30;
/// Columns before a sentence that stands below the other cells.
const INDENT: usize = 6;

/// Rows of numbers below headings, or rows without headings of which the last cell is a sentence.
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
    ends_with_sentence: bool,
}

/// As much of a table of numbers as fits into the columns.
pub(crate) struct Narrow {
    pub(crate) headings: String,
    pub(crate) rows: Vec<String>,
    /// Headings of columns that say something and are left out.
    pub(crate) left_out: Vec<&'static str>,
}

impl Table {
    pub(crate) fn of_numbers(columns: &[Column], rows: Vec<Vec<String>>) -> Table {
        Table { columns: columns.to_vec(), rows, ends_with_sentence: false }
    }

    pub(crate) fn of_sentences(aligns: &[Align], rows: Vec<Vec<String>>) -> Table {
        let columns = aligns.iter().map(|align| ("", *align, 0)).collect();
        Table { columns, rows, ends_with_sentence: true }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns all of the table in lines of at most `room` columns if possible; none if there is no row.
    pub(crate) fn whole(&self, room: usize) -> Vec<String> {
        if self.rows.is_empty() {
            return Vec::new();
        }
        if self.ends_with_sentence {
            return self.sentences(room).concat();
        }
        let all: Vec<usize> = (0..self.columns.len()).collect();
        let (aligns, rows) = self.of_columns(&all);
        folded(&aligns, &rows, room).lines().map(str::to_owned).collect()
    }

    /// Returns all of the table as text.
    pub(crate) fn text(&self, room: usize) -> String {
        self.whole(room).iter().map(|line| format!("{line}\n")).collect()
    }

    /// Returns the rows, each in as many lines as its sentence needs.
    pub(crate) fn sentences(&self, room: usize) -> Vec<Vec<String>> {
        let aligns = self.aligns();
        let before = aligns.len().saturating_sub(1);
        let beside = 2 + widths(before, &self.rows).iter().map(|width| width + 2).sum::<usize>();
        let cells = columns(&aligns[..before], &self.rows);
        let row = |(cells, row): (&str, &Vec<String>)| {
            beside_or_below(cells, beside, row.last().map_or("", String::as_str), room)
        };
        cells.lines().zip(&self.rows).map(row).collect()
    }

    /// Returns the most important columns that fit into `room` columns. One that has nothing but zeros is
    /// the least important, whatever it is.
    pub(crate) fn narrow(&self, room: usize) -> Narrow {
        let says_something = |at: &usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(*at));
            cells.into_iter().any(|cell| !matches!(cell.as_str(), "" | "0" | "0.0" | "none" | "–"))
        };
        let mut by_rank: Vec<usize> = (0..self.columns.len()).collect();
        by_rank.sort_by_key(|at| (self.columns[*at].2 > 0 && !says_something(at), self.columns[*at].2));
        let (_, rows) = self.of_columns(&(0..self.columns.len()).collect::<Vec<_>>());
        let widths = widths(self.columns.len(), &rows);
        let mut left = room;
        let mut kept = Vec::new();
        for at in by_rank {
            if self.columns[at].2 == 0 || widths[at] + 2 <= left {
                left = left.saturating_sub(widths[at] + 2);
                kept.push(at);
            }
        }
        kept.sort_unstable();
        let left_out = (0..self.columns.len()).filter(|at| !kept.contains(at) && says_something(at));
        let left_out = left_out.map(|at| self.columns[at].0).collect();
        let (aligns, rows) = self.of_columns(&kept);
        let text = columns(&aligns, &rows);
        let mut lines = text.lines().map(str::to_owned);
        Narrow { headings: lines.next().unwrap_or_default(), rows: lines.collect(), left_out }
    }

    fn aligns(&self) -> Vec<Align> {
        self.columns.iter().map(|(_, align, _)| *align).collect()
    }

    /// Returns the alignments and the rows of these columns, the headings first.
    fn of_columns(&self, kept: &[usize]) -> (Vec<Align>, Vec<Vec<String>>) {
        let headings = kept.iter().map(|at| self.columns[*at].0.to_owned()).collect();
        let of_row = |row: &Vec<String>| kept.iter().filter_map(|at| row.get(*at).cloned()).collect();
        let rows = std::iter::once(headings).chain(self.rows.iter().map(of_row)).collect();
        (kept.iter().map(|at| self.columns[*at].1).collect(), rows)
    }
}

/// Returns the cells of a row with a sentence, which begins in column `beside`, or below if there is hardly
/// any room.
pub(crate) fn beside_or_below(cells: &str, beside: usize, sentence: &str, room: usize) -> Vec<String> {
    let left = room.saturating_sub(beside);
    let fits = left >= SENTENCE_COLUMNS_MIN || width(sentence) <= left;
    let (indent, left) = if fits { (beside, left) } else { (INDENT, room.saturating_sub(INDENT)) };
    let mut lines: Vec<String> = Vec::new();
    if !fits {
        lines.push(cells.to_owned());
    }
    for part in wrapped(sentence, left) {
        let start = if fits && lines.is_empty() { cells } else { "" };
        let blank = " ".repeat(indent.saturating_sub(width(start)));
        lines.push(format!("{start}{blank}{part}").trim_end().to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use Align::{Left, Right};

    fn row(cells: &[&str]) -> Vec<String> {
        cells.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_says_nothing_is_left_out_first_and_what_says_something_is_named() {
        let columns = [
            ("route", Left, 0),
            ("limit", Right, 1),
            ("failed", Right, 2),
            ("p99", Right, 3),
            ("done", Right, 4),
        ];
        let rows = vec![row(&["GET /", "3", "0", "20 ms", "1234"]), row(&["other", "4", "0", "1 s", "7"])];
        let table = Table::of_numbers(&columns, rows);
        let all = table.narrow(80);
        assert_eq!(all.headings, "  route  limit  failed    p99  done");
        assert_eq!(all.rows[0], "  GET /      3       0  20 ms  1234");
        assert!(all.left_out.is_empty());
        let some = table.narrow(30);
        assert_eq!((some.headings.as_str(), some.left_out.len()), ("  route  limit    p99  done", 0));
        let few = table.narrow(22);
        assert_eq!((few.headings.as_str(), few.left_out), ("  route  limit    p99", vec!["done"]));
        assert_eq!(table.narrow(3).rows, ["  GET /", "  other"]);
    }

    #[test]
    fn sentences_stand_beside_the_cells_or_below_them() {
        let rows = vec![
            row(&["2 s ago", "GET /search", "more sessions end than before, which is good"]),
            row(&["12 s ago", "other", "as it was"]),
        ];
        let table = Table::of_sentences(&[Right, Left, Left], rows);
        let wide = [
            "   2 s ago  GET /search  more sessions end than before, which is good",
            "  12 s ago  other        as it was",
        ];
        assert_eq!(table.whole(80), wide);
        assert_eq!(
            table.whole(60),
            [
                "   2 s ago  GET /search  more sessions end than before,",
                "                         which is good",
                "  12 s ago  other        as it was",
            ]
        );
        assert_eq!(
            table.whole(39),
            [
                "   2 s ago  GET /search",
                "      more sessions end than before,",
                "      which is good",
                "  12 s ago  other        as it was",
            ]
        );
    }
}
