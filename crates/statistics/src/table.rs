//! Text tables with aligned columns.

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
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..aligns.len()).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for ((cell, align), width) in row.iter().zip(aligns).zip(&widths) {
            let padded = match align {
                Align::Left => format!("{cell:<width$}"),
                Align::Right => format!("{cell:>width$}"),
            };
            line.push_str("  ");
            line.push_str(&padded);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Returns the rows as lines of at most `width` characters. Columns that do not fit follow below,
/// with the first column repeated.
pub fn folded(aligns: &[Align], rows: &[Vec<String>], width: usize) -> String {
    let wide = |column: usize| {
        2 + rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
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
}
