//! Aligned text.

/// Returns rows under their headings; the first column is text, the others are numbers and stand to the right.
pub(crate) fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let cell = |row: &[String], column: usize| row.get(column).cloned().unwrap_or_default();
    let heading: Vec<String> = headings.iter().map(|text| (*text).to_string()).collect();
    let all = || std::iter::once(&heading).chain(rows);
    let widths: Vec<usize> = (0..headings.len())
        .map(|column| all().map(|row| cell(row, column).chars().count()).max().unwrap_or(0))
        .collect();
    let mut out = String::new();
    for row in all() {
        let line: Vec<String> = (0..headings.len())
            .map(|column| {
                let (text, width) = (cell(row, column), widths[column]);
                if column == 0 { format!("{text:<width$}") } else { format!("{text:>width$}") }
            })
            .collect();
        out += format!("  {}", line.join("  ")).trim_end();
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows =
            [vec!["none".to_string(), "7".to_string()], vec!["suimon".to_string(), "42.5".to_string()]];
        assert_eq!(table(&["method", "per s"], &rows), "  method  per s\n  none        7\n  suimon   42.5\n");
    }
}
