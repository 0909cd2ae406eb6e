//! The frame: a file begins with [`MAGIC`] and [`VERSION`], followed by blocks.
//!
//! ```text
//! kind 1 byte · length of content, 4 bytes · CRC-32 of kind, length and content, 4 bytes · content
//! ```
//!
//! Numbers of fixed length are little-endian.

use crate::damage::{Damage, What};

/// How every recording begins. The first byte is not text and the last is a line feed, so that a
/// transfer that treats the file as text is detected.
pub const MAGIC: [u8; 8] = *b"\x96suimon\n";
/// Length of magic and version.
pub(crate) const PREFIX: usize = MAGIC.len() + 2;
/// The longest content of a block.
pub const BLOCK_BYTES_MAX: usize = 256 << 10;
/// Kind, length, checksum.
pub(crate) const FRAME: usize = 9;

/// What a block holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum BlockKind {
    Header = b'h',
    Snapshot = b's',
    Events = b'e',
    End = b'z',
}

/// Returns whether a file that begins with these bytes is a recording, of any version.
pub fn is_recording(beginning: &[u8]) -> bool {
    beginning.starts_with(&MAGIC)
}

/// Appends one block.
pub(crate) fn frame(kind: BlockKind, content: &[u8], out: &mut Vec<u8>) {
    assert!(content.len() <= BLOCK_BYTES_MAX, "the caller ends a block before it is too large");
    let begin = out.len();
    out.push(kind as u8);
    out.extend_from_slice(&(content.len() as u32).to_le_bytes());
    let checksum = crc32(&[&out[begin..], content]);
    out.extend_from_slice(&checksum.to_le_bytes());
    out.extend_from_slice(content);
}

/// Takes the block at `at`. Returns its kind, its content, and where the next begins.
pub(crate) fn unframe(bytes: &[u8], at: usize) -> Result<(BlockKind, &[u8], usize), Damage> {
    let damage = |what| Damage { at, what };
    let rest = bytes.get(at..).unwrap_or_default();
    let Some((head, rest)) = rest.split_at_checked(FRAME) else {
        return Err(Damage { at: bytes.len(), what: What::CutOff });
    };
    let kind = match head[0] {
        b'h' => BlockKind::Header,
        b's' => BlockKind::Snapshot,
        b'e' => BlockKind::Events,
        b'z' => BlockKind::End,
        _ => return Err(damage(What::Misplaced)),
    };
    let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
    if length > BLOCK_BYTES_MAX {
        return Err(damage(What::TooLong));
    }
    let Some(content) = rest.get(..length) else {
        return Err(Damage { at: bytes.len(), what: What::CutOff });
    };
    if crc32(&[&head[..5], content]).to_le_bytes() != head[5..] {
        return Err(damage(What::Checksum));
    }
    Ok((kind, content, at + FRAME + length))
}

/// Corrects the version and all checksums, for the fuzzer.
#[cfg(any(test, fuzzing))]
pub(crate) fn seal(bytes: &mut [u8]) {
    let Some(version) = bytes.get_mut(MAGIC.len()..PREFIX) else { return };
    version.copy_from_slice(&crate::damage::VERSION.to_le_bytes());
    let mut rest = &mut bytes[PREFIX..];
    while let Some((head, behind)) = rest.split_at_mut_checked(FRAME) {
        let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let Some((content, behind)) = behind.split_at_mut_checked(length) else { return };
        let checksum = crc32(&[&head[..5], content]);
        head[5..].copy_from_slice(&checksum.to_le_bytes());
        rest = behind;
    }
}

/// CRC-32 as in Ethernet and ZIP (polynomial 0xEDB88320 reflected), eight bits at a time.
fn crc32(parts: &[&[u8]]) -> u32 {
    let mut crc = u32::MAX;
    for byte in parts.iter().copied().flatten() {
        crc = crc >> 8 ^ TABLE[usize::from(crc as u8 ^ byte)];
    }
    !crc
}

static TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_one_everybody_knows() {
        assert_eq!(crc32(&[b"123456789"]), 0xCBF4_3926);
        assert_eq!(crc32(&[b"1234", b"", b"56789"]), 0xCBF4_3926);
    }
}
