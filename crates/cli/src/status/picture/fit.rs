//! Shares the lines of a terminal among the sections of the picture.

use crate::table::Table;
use crate::terminal::{Line, Size};

/// Rows of a section with their title, in the order in which they matter.
pub(super) struct Section {
    title: &'static str,
    /// What a row is, of several.
    rows_are: &'static str,
    /// Faint, beside the title: columns that had no room.
    note: String,
    headings: Option<Line>,
    rows: Vec<Row>,
    /// Rows that are not among them.
    more: usize,
    /// Never left out if the section is shown.
    alarms: Vec<Line>,
    /// Left out before any row is.
    details: Vec<Line>,
    /// The section with the lowest is served first.
    rank: u8,
    /// Rows that are served before details of other sections.
    few: usize,
}

struct Row {
    short: Line,
    /// All of it, in more than one line; empty if `short` is all.
    long: Vec<Line>,
}

impl Section {
    /// Returns a section with as many columns of the table as fit.
    pub(super) fn of_numbers(
        title: &'static str,
        rows_are: &'static str,
        table: &Table,
        columns: usize,
    ) -> Section {
        let narrow = table.narrow(columns);
        let note = match narrow.left_out.as_slice() {
            [] => String::new(),
            left_out => format!("  no room for: {}", left_out.join(", ")),
        };
        let rows = narrow.rows.iter().map(|row| Line::default().plain(row)).collect();
        let headings = Some(Line::default().bold(&narrow.headings));
        Section { note, headings, ..Section::of_lines(title, rows_are, rows) }
    }

    /// Returns a section whose sentences are cut where there is no room for all of them.
    pub(super) fn of_sentences(
        title: &'static str,
        rows_are: &'static str,
        table: &Table,
        columns: usize,
    ) -> Section {
        let whole = table.sentences(usize::MAX).into_iter();
        let row = |(short, long): (Vec<String>, Vec<String>)| Row {
            short: Line::default().plain(&short.concat()),
            long: match long.len() {
                1 => Vec::new(),
                _ => long.iter().map(|line| Line::default().plain(line)).collect(),
            },
        };
        let rows = whole.zip(table.sentences(columns)).map(row).collect();
        Section { rows, ..Section::of_lines(title, rows_are, Vec::new()) }
    }

    /// Returns a section of lines.
    pub(super) fn of_lines(title: &'static str, rows_are: &'static str, lines: Vec<Line>) -> Section {
        let rows = lines.into_iter().map(|short| Row { short, long: Vec::new() }).collect();
        Section {
            title,
            rows_are,
            note: String::new(),
            headings: None,
            rows,
            more: 0,
            alarms: Vec::new(),
            details: Vec::new(),
            rank: u8::MAX,
            few: usize::MAX,
        }
    }

    pub(super) fn rank(self, rank: u8, few: usize) -> Section {
        Section { rank, few, ..self }
    }

    pub(super) fn more(self, more: usize) -> Section {
        Section { more, ..self }
    }

    pub(super) fn alarms(self, alarms: Vec<Line>) -> Section {
        Section { alarms, ..self }
    }

    pub(super) fn details(self, details: Vec<Line>) -> Section {
        Section { details, ..self }
    }

    /// Returns whether there is anything to be shown.
    pub(super) fn is_shown(&self) -> bool {
        !self.rows.is_empty()
    }

    /// Returns the lines beside rows and details.
    fn frame(&self, is_airy: bool) -> usize {
        let headings = usize::from(self.headings.is_some());
        // Without air, headings tell what the rows are.
        self.alarms.len() + if is_airy { 2 + headings } else { 1 }
    }

    /// Returns the lines of the smallest part that tells something.
    fn least(&self) -> usize {
        // One row, and how many more there are.
        self.wants().min(2)
    }

    /// Returns the lines that all rows take.
    fn wants(&self) -> usize {
        self.rows.len() + usize::from(self.more > 0)
    }

    fn draw(&self, share: &Share, is_airy: bool, lines: &mut Vec<Line>) {
        let title = Line::default().bold(self.title).faint(&self.note);
        if is_airy {
            lines.extend([Line::default(), title]);
            lines.extend(self.headings.clone());
        } else {
            lines.push(self.headings.clone().unwrap_or(title));
        }
        let mut lines_left = share.longer;
        let shown = self.shown(share.rows);
        for row in &self.rows[..shown] {
            match row.long.len().checked_sub(1) {
                Some(more) if more > 0 && more <= lines_left => {
                    lines_left -= more;
                    lines.extend(row.long.iter().cloned());
                }
                _ => lines.push(row.short.clone()),
            }
        }
        let more = self.rows.len() - shown + self.more;
        if more > 0 {
            let more = format!("  and {more} more {}", self.rows_are);
            lines.push(Line::default().faint(&more));
        }
        lines.extend(self.alarms.iter().cloned());
        lines.extend(self.details[..share.details].iter().cloned());
    }

    /// Returns how many rows are shown in so many lines: the last says how many there are more.
    fn shown(&self, lines: usize) -> usize {
        if self.more == 0 && self.rows.len() <= lines {
            self.rows.len()
        } else {
            self.rows.len().min(lines.saturating_sub(1))
        }
    }

    /// Returns how many more lines would show all of the sentences in the rows of this share.
    fn longer(&self, share: &Share) -> usize {
        let shown = &self.rows[..self.shown(share.rows)];
        shown.iter().map(|row| row.long.len().saturating_sub(1)).sum()
    }
}

/// How many lines a section has, beside its frame.
#[derive(Clone, Copy, Default)]
struct Share {
    /// With the line that says how many rows are left out.
    rows: usize,
    details: usize,
    /// Lines for sentences that need more than one.
    longer: usize,
}

/// Returns what fits on a terminal of this size: all of `head`, then of each section at least one row, and
/// so on by rank. A section that has no room at all is named in the last line.
pub(super) fn fit(mut head: Vec<Line>, sections: &[Section], size: Size) -> Vec<Line> {
    head.truncate(size.lines);
    let room = size.lines - head.len();
    let airy: usize = sections.iter().map(|section| section.frame(true) + section.least()).sum();
    let is_airy = airy <= room;
    let dense: usize = sections.iter().map(|section| section.frame(false) + section.least()).sum();
    let is_told = !is_airy && dense > room;
    let shares = share(sections, is_airy, room.saturating_sub(usize::from(is_told)));
    let mut left_out = Vec::new();
    for (section, share) in sections.iter().zip(&shares) {
        match share {
            Some(share) => section.draw(share, is_airy, &mut head),
            None => left_out.push(section.title),
        }
    }
    if !left_out.is_empty() && head.len() < size.lines {
        head.push(Line::default().faint(&format!("no room for: {}", left_out.join(", "))));
    }
    head
}

/// Returns how many of `room` lines each section gets; nothing if it is not shown.
fn share(sections: &[Section], is_airy: bool, mut room: usize) -> Vec<Option<Share>> {
    let mut by_rank: Vec<usize> = (0..sections.len()).collect();
    by_rank.sort_by_key(|at| sections[*at].rank);
    let mut shares: Vec<Option<Share>> = vec![None; sections.len()];
    for at in &by_rank {
        let least = sections[*at].least();
        let Some(left) = room.checked_sub(sections[*at].frame(is_airy) + least) else { continue };
        room = left;
        shares[*at] = Some(Share { rows: least, ..Share::default() });
    }
    /// Gives what is wanted beyond what is there, as far as there is room.
    fn grow(given: &mut usize, wanted: usize, room: &mut usize) {
        let more = wanted.saturating_sub(*given).min(*room);
        *given += more;
        *room -= more;
    }
    let rounds: [fn(&Section, &mut Share, &mut usize); 5] = [
        |section, share, room| {
            let few = section.wants().min(section.few.saturating_add(1));
            grow(&mut share.rows, few, room);
        },
        |section, share, room| grow(&mut share.details, section.details.len(), room),
        // Numbers first: there are more rows of them that matter.
        |section, share, room| {
            if section.headings.is_some() {
                grow(&mut share.rows, section.wants(), room);
            }
        },
        |section, share, room| {
            let longer = section.longer(share);
            grow(&mut share.longer, longer, room);
        },
        |section, share, room| grow(&mut share.rows, section.wants(), room),
    ];
    for round in rounds {
        for at in &by_rank {
            if let Some(share) = &mut shares[*at] {
                round(&sections[*at], share, &mut room);
            }
        }
    }
    shares
}
