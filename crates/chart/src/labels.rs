//! Names beside lines: their widths, and places where they do not overlap.

/// Size of ordinary text, pixels.
pub(crate) const TEXT: f64 = 13.0;
/// Distance between two names' base lines, pixels.
pub(crate) const LEADING: f64 = 16.0;
/// How much wider bold letters are; more than in most fonts, because some readers have wide ones.
const BOLD: f64 = 1.14;

/// Returns the approximate width of the text, in pixels, in a sans-serif font of 13 pixels. The
/// estimate is rather too wide than too narrow, because the reader's font is unknown.
pub(crate) fn width(text: &str) -> f64 {
    text.chars().map(|character| share(character) * TEXT).sum()
}

/// Returns the approximate width of the text in the bold font of names, in pixels.
pub(crate) fn bold_width(text: &str) -> f64 {
    width(text) * BOLD
}

/// Returns the text, cut and ended with an ellipsis if it is wider than `room` pixels.
pub(crate) fn fitted(text: &str, room: f64) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = share('…') * TEXT;
    for character in text.chars() {
        used += share(character) * TEXT;
        if used > room {
            break;
        }
        kept.push(character);
    }
    format!("{}…", kept.trim_end())
}

/// Returns the text, cut if it is wider than `room` pixels in the bold font.
pub(crate) fn fitted_bold(text: &str, room: f64) -> String {
    // Slightly more room than measured, so that rounding does not cut the widest name.
    fitted(text, room / BOLD + 0.01)
}

/// Returns places for names whose wanted places are `wanted`. Each is as near to its own as
/// possible, with `LEADING` between neighbours and in the same order. All lie between `top` and
/// `bottom` while there is room.
pub(crate) fn spread(wanted: &[f64], top: f64, bottom: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|a, b| wanted[*a].total_cmp(&wanted[*b]).then(a.cmp(b)));
    // Groups of names that touch: the sum of the places that its members want for the group's first
    // name, and the number of members.
    let mut groups: Vec<(f64, usize)> = Vec::new();
    let last_place = |count: usize| (bottom - (count as f64 - 1.0) * LEADING).max(top);
    let place = |(sum, count): (f64, usize)| (sum / count as f64).clamp(top, last_place(count));
    for index in order.iter().copied() {
        let mut group = (wanted[index], 1);
        while let Some(before) = groups.last().copied() {
            if place(before) + before.1 as f64 * LEADING <= place(group) {
                break;
            }
            groups.pop();
            group = (before.0 + group.0 - group.1 as f64 * before.1 as f64 * LEADING, before.1 + group.1);
        }
        groups.push(group);
    }
    let mut places = vec![top; wanted.len()];
    let mut remaining = order.into_iter();
    for group in groups {
        let first = place(group);
        for (offset, index) in remaining.by_ref().take(group.1).enumerate() {
            places[index] = first + offset as f64 * LEADING;
        }
    }
    places
}

/// Returns the character's width as a share of the font size.
fn share(character: char) -> f64 {
    match character {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' => 0.3,
        ' ' | 'f' | 't' | 'r' | '(' | ')' | '/' | '[' | ']' | '-' | '\u{202f}' => 0.38,
        'm' | 'w' | 'M' | 'W' | '@' | '…' | '%' => 0.92,
        'A'..='Z' => 0.7,
        _ if !character.is_ascii() && character > '\u{2e80}' => 1.0,
        _ => 0.6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_have_room_stay_where_they_are() {
        assert_eq!(spread(&[100.0, 20.0, 60.0], 0.0, 200.0), [100.0, 20.0, 60.0]);
    }

    #[test]
    fn names_that_would_touch_part_evenly_and_keep_their_order() {
        let places = spread(&[52.0, 50.0, 150.0], 0.0, 200.0);
        assert_eq!(places, [59.0, 43.0, 150.0]);
    }

    #[test]
    fn names_stay_inside_while_there_is_room() {
        let places = spread(&[0.0, 0.0, 0.0], 0.0, 200.0);
        assert_eq!(places, [0.0, LEADING, 2.0 * LEADING]);
        let places = spread(&[200.0, 200.0], 0.0, 200.0);
        assert_eq!(places, [200.0 - LEADING, 200.0]);
    }

    #[test]
    fn too_many_names_run_over_the_bottom_but_never_over_each_other() {
        let places = spread(&[5.0; 10], 0.0, 50.0);
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= LEADING - 1e-9), "{places:?}");
    }

    #[test]
    fn long_names_are_cut() {
        assert_eq!(fitted("GET /search", 200.0), "GET /search");
        let cut = fitted("POST /checkout/{id}/payment/confirmation", 100.0);
        assert!(cut.ends_with('…') && width(&cut) <= 100.0, "{cut}");
    }
}
