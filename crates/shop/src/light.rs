//! A light page's work: it renders the table of goods and folds it into a fingerprint, a fixed
//! number of times. A real page is assembled from many rendered and fingerprinted fragments in the
//! same way.

use std::fmt::Write;
use std::hash::{DefaultHasher, Hasher};

use crate::catalogue::Item;

/// Returns the table of goods, with the fingerprint of `renderings` renderings beneath.
pub(crate) fn table(items: &[Item], renderings: u32) -> String {
    let mut fingerprint = DefaultHasher::new();
    let mut html = String::new();
    for rendering in 0..renderings {
        html = render(items, rendering);
        fingerprint.write(html.as_bytes());
    }
    html.push_str(&format!("<p>Fingerprint {:016x}</p>\n", fingerprint.finish()));
    html
}

/// Returns the text with HTML's special characters escaped.
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            plain => safe.push(plain),
        }
    }
    safe
}

fn render(items: &[Item], rendering: u32) -> String {
    let mut html = String::from("<table>\n");
    for Item { id, name, price } in items {
        let name = escape(&name.to_uppercase());
        writeln!(html, "<tr id=\"row-{rendering}-{id}\"><td>{name}</td><td>{price}</td></tr>")
            .expect("writing to a String cannot fail");
    }
    html.push_str("</table>\n");
    html
}
