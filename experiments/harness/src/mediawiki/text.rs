//! The little of HTML, forms and pictures that a visit needs.

use std::fmt::Write as _;

/// What PNG's checksum is reckoned with.
const CRC_POLYNOMIAL: u32 = 0xedb8_8320;
/// The greatest prime below 2^16, by which zlib's checksum is reckoned.
const ADLER_MODULUS: u32 = 65_521;
/// The most bytes in a stored block of zlib.
const STORED_MAX: usize = 65_535;

/// Returns `text` as a form's value: all but letters, digits and `-._~` in hexadecimal.
pub(super) fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing into a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// Returns the value of the first `<input>` of this name.
pub(super) fn input(html: &str, name: &str) -> Option<String> {
    let wanted = format!("name=\"{name}\"");
    let tags = html.split("<input").skip(1).filter_map(|rest| rest.split('>').next());
    let tag = tags.into_iter().find(|tag| tag.contains(&wanted))?;
    let value = tag.split("value=\"").nth(1).map_or("", |rest| rest.split('"').next().unwrap_or(""));
    Some(value.replace("&quot;", "\"").replace("&#039;", "'").replace("&amp;", "&"))
}

/// Returns what a reader sees of `html`, words by single spaces, with each number as `#` and `name`
/// as `NAME`: the same for two visitors who see the same at different times.
pub(super) fn visible(html: &str, name: &str) -> String {
    let mut text = html.to_string();
    for (begin, end) in [("<!--", "-->"), ("<script", "</script>"), ("<style", "</style>"), ("<", ">")] {
        text = without(&text, begin, end);
    }
    let text = text.replace(name, "NAME");
    let blotted = text.split_whitespace().map(|word| {
        let mut out = String::new();
        for c in word.chars() {
            if !c.is_ascii_digit() {
                out.push(c);
            } else if !out.ends_with('#') {
                out.push('#');
            }
        }
        out
    });
    blotted.collect::<Vec<_>>().join(" ")
}

/// Returns `text` without what is between `begin` and the next `end`, both included; an open end
/// takes all.
fn without(text: &str, begin: &str, end: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, inside)) = rest.split_once(begin) {
        out.push_str(before);
        out.push(' ');
        rest = inside.split_once(end).map_or("", |(_, behind)| behind);
    }
    out + rest
}

/// Returns a picture of noise as PNG, of `side` by `side` pixels, not compressed: of the same length
/// for every seed.
pub(super) fn png(side: u32, seed: u32) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let mut pixels = Vec::new();
    for _ in 0..side {
        // The row is as it is.
        pixels.extend([0]);
        for _ in 0..side * 3 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            pixels.push(state.to_be_bytes()[0]);
        }
    }
    let mut packed = vec![0x78, 0x01];
    let blocks = pixels.chunks(STORED_MAX);
    let last = blocks.len() - 1;
    for (number, block) in blocks.enumerate() {
        let length = u16::try_from(block.len()).expect("a block is at most 65535 bytes long");
        packed.push(u8::from(number == last));
        packed.extend(length.to_le_bytes());
        packed.extend((!length).to_le_bytes());
        packed.extend(block);
    }
    packed.extend(adler(&pixels).to_be_bytes());
    let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
    // Eight bits of red, green and blue each.
    let head = [&side.to_be_bytes()[..], &side.to_be_bytes(), &[8, 2, 0, 0, 0]].concat();
    for (kind, content) in [(b"IHDR", &head), (b"IDAT", &packed), (b"IEND", &Vec::new())] {
        let length = u32::try_from(content.len()).expect("pictures are small");
        let chunk = [&kind[..], content].concat();
        out.extend(length.to_be_bytes());
        out.extend(&chunk);
        out.extend(crc(&chunk).to_be_bytes());
    }
    out
}

fn crc(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { (crc >> 1) ^ CRC_POLYNOMIAL } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc)))
}

fn adler(bytes: &[u8]) -> u32 {
    let (low, high) = bytes.iter().fold((1, 0), |(low, high), byte| {
        let low = (low + u32::from(*byte)) % ADLER_MODULUS;
        (low, (high + low) % ADLER_MODULUS)
    });
    high << 16 | low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_standards() {
        assert_eq!(crc(b"123456789"), 0xcbf4_3926);
        assert_eq!(adler(b"Wikipedia"), 0x11e6_0398);
        assert_eq!(png(2, 1).len(), png(2, 2).len());
    }

    #[test]
    fn two_visitors_see_the_same_text() {
        let html = |name: &str, at: &str| {
            format!("<p class=\"a\">By <b>{name}</b>,<!-- 5 s --> at {at}</p><script>x={at}</script>")
        };
        let seen = visible(&html("Alpha", "17:05"), "Alpha");
        assert_eq!(seen, visible(&html("Omega", "9:12"), "Omega"));
        assert_eq!(seen, "By NAME , at #:#");
    }

    #[test]
    fn a_field_of_a_form_is_found_by_its_name() {
        let html =
            "<input id=\"a\" value=\"x\" name=\"b\"/><input name=\"token\" value=\"ab+\\\" type=\"hidden\">";
        assert_eq!(input(html, "token").as_deref(), Some("ab+\\"));
        assert_eq!(input(html, "b").as_deref(), Some("x"));
        assert_eq!(input(html, "c"), None);
    }

    #[test]
    fn values_of_forms_are_encoded() {
        assert_eq!(encoded("a b+\\é"), "a%20b%2B%5C%C3%A9");
    }
}
