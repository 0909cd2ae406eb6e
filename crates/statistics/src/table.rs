//! Text tables with aligned columns.

use unicode_width::UnicodeWidthChar;

/// Stands in place of a character that would do something to the terminal.
const HARMLESS: char = '\u{fffd}';

/// Returns how many columns of a terminal the character takes: two for those of East Asia, none for an
/// accent that stands on the one before.
pub fn columns_of(character: char) -> usize {
    character.width().unwrap_or(0)
}

/// Returns how many columns of a terminal the text takes.
pub fn width(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// Returns the text without control characters: names come from paths that strangers ask for, and could
/// move the cursor or turn the text around.
pub fn harmless(text: &str) -> String {
    let turns = |letter| matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().map(|letter| if letter.is_control() || turns(letter) { HARMLESS } else { letter }).collect()
}

/// How a column is aligned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// Returns a table of headings and rows: the first column is text, the others are numbers.
pub fn numbers(headings: &[&str], rows: &[Vec<String>]) -> String {
    let headings = headings.iter().map(|text| (*text).to_owned()).collect();
    let all: Vec<Vec<String>> = std::iter::once(headings).chain(rows.iter().cloned()).collect();
    columns(&text_first(&all), &all)
}

/// Returns the alignment of such rows' columns.
pub fn text_first(rows: &[Vec<String>]) -> Vec<Align> {
    let columns = rows.first().map_or(0, Vec::len);
    (0..columns).map(|column| if column == 0 { Align::Left } else { Align::Right }).collect()
}

/// Returns the rows as lines, each column as wide as its widest entry; the first row is the
/// heading.
pub fn columns(aligns: &[Align], rows: &[Vec<String>]) -> String {
    let widths = widths(aligns.len(), rows);
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for ((cell, align), width) in row.iter().zip(aligns).zip(&widths) {
            let cell = harmless(cell);
            // By columns: the widths of `format!` count characters.
            let blank = " ".repeat(width.saturating_sub(self::width(&cell)));
            line.push_str("  ");
            match align {
                Align::Left => line.extend([cell, blank]),
                Align::Right => line.extend([blank, cell]),
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Returns how wide the widest entry of each column is.
pub fn widths(columns: usize, rows: &[Vec<String>]) -> Vec<usize> {
    let widest = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| width(&harmless(cell))).max().unwrap_or(0)
    };
    (0..columns).map(widest).collect()
}

/// Returns the rows as lines of at most `width` columns. Columns that do not fit follow below,
/// with the first column repeated.
pub fn folded(aligns: &[Align], rows: &[Vec<String>], width: usize) -> String {
    let widths = widths(aligns.len(), rows);
    let wide = |column: usize| 2 + widths[column];
    let mut blocks: Vec<Vec<usize>> = vec![vec![0]];
    let mut used = wide(0);
    for column in 1..aligns.len() {
        let block = blocks.last_mut().expect("there is one from the beginning");
        if used + wide(column) > width && block.len() > 1 {
            blocks.push(vec![0, column]);
            used = wide(0) + wide(column);
        } else {
            block.push(column);
            used += wide(column);
        }
    }
    let block = |kept: &Vec<usize>| {
        let of_row = |row: &Vec<String>| kept.iter().filter_map(|at| row.get(*at).cloned()).collect();
        columns(
            &kept.iter().map(|at| aligns[*at]).collect::<Vec<_>>(),
            &rows.iter().map(of_row).collect::<Vec<_>>(),
        )
    };
    blocks.iter().map(block).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_entry() {
        let rows =
            [vec!["route".to_string(), "limit".to_string()], vec!["GET /ü".to_string(), "3".to_string()]];
        assert_eq!(columns(&[Align::Left, Align::Right], &rows), "  route   limit\n  GET /ü      3\n");
        assert_eq!(numbers(&["route", "limit"], &rows[1..]), columns(&text_first(&rows), &rows));
    }

    #[test]
    fn wide_characters_take_two_columns_and_accents_none() {
        assert_eq!([width("GET /水門"), width("e\u{301}te\u{301}"), width("× 2")], [9, 3, 3]);
        let rows = [
            vec!["水門".to_string(), "1".to_string()],
            vec!["gate 7".to_string(), "12".to_string()],
            vec!["e\u{301}te\u{301}".to_string(), "3".to_string()],
        ];
        let table = columns(&[Align::Left, Align::Right], &rows);
        assert_eq!(table, "  水門     1\n  gate 7  12\n  e\u{301}te\u{301}      3\n");
    }

    #[test]
    fn a_name_cannot_command_the_terminal() {
        let name = "GET /\u{1b}[2J\u{9b}7m\u{202e}x\n".to_string();
        let table = columns(&[Align::Left], &[vec![name]]);
        assert_eq!(table, "  GET /\u{fffd}[2J\u{fffd}7m\u{fffd}x\u{fffd}\n");
    }
}
