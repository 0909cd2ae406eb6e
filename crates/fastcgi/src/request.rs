//! The gateway's side: a request as records.

use crate::record::{CONTENT_MAX, HEADER, Header, Kind};

/// The role of a worker that answers requests.
const RESPONDER: u16 = 1;
const KEEP_CONNECTION: u8 = 1;
/// Lengths below this take one byte, others four.
const SHORT: usize = 128;
/// The highest bit of a length of four bytes.
const LONG: u32 = 1 << 31;

/// Returns the record that begins a request. `keeps`: whether the worker should keep the connection
/// open afterwards.
pub fn begin(keeps: bool) -> [u8; 2 * HEADER] {
    let [role_high, role_low] = RESPONDER.to_be_bytes();
    let flags = if keeps { KEEP_CONNECTION } else { 0 };
    let mut bytes = [0; 2 * HEADER];
    bytes[..HEADER].copy_from_slice(&Header::new(Kind::Begin, 8).bytes());
    bytes[HEADER..HEADER + 3].copy_from_slice(&[role_high, role_low, flags]);
    bytes
}

/// Returns the header of a piece of the body; `length` 0 ends the body.
pub const fn stdin(length: u16) -> [u8; HEADER] {
    Header::new(Kind::Stdin, length).bytes()
}

/// The environment of a request, as a worker reads it.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    pairs: Vec<u8>,
}

impl Environment {
    /// Removes all variables, and keeps the memory.
    pub fn clear(&mut self) {
        self.pairs.clear();
    }

    /// Adds a variable whose value is the concatenation of `parts`.
    ///
    /// # Panics
    /// If the name or the value has 2 GiB or more.
    pub fn add(&mut self, name: &[&[u8]], value: &[&[u8]]) {
        for parts in [name, value] {
            let length = parts.iter().map(|part| part.len()).sum::<usize>();
            match u8::try_from(length) {
                Ok(short) if length < SHORT => self.pairs.push(short),
                _ => {
                    let long = u32::try_from(length).ok().filter(|length| *length < LONG);
                    let long = long.expect("heads are bounded far below 2 GiB");
                    self.pairs.extend_from_slice(&(long | LONG).to_be_bytes());
                }
            }
        }
        name.iter().chain(value).for_each(|part| self.pairs.extend_from_slice(part));
    }

    /// Returns the variables with their values, in the order in which they were added.
    pub fn pairs(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut rest = &self.pairs[..];
        std::iter::from_fn(move || {
            let (name, after) = length(rest)?;
            let (value, after) = length(after)?;
            let (pair, after) = after.split_at(name + value);
            rest = after;
            Some(pair.split_at(name))
        })
    }

    /// Appends it to `out` as records, with the one that ends it.
    pub fn write(&self, out: &mut Vec<u8>) {
        for piece in self.pairs.chunks(CONTENT_MAX) {
            let length = u16::try_from(piece.len()).expect("a chunk is at most CONTENT_MAX bytes");
            out.extend_from_slice(&Header::new(Kind::Params, length).bytes());
            out.extend_from_slice(piece);
        }
        out.extend_from_slice(&Header::new(Kind::Params, 0).bytes());
    }
}

/// Reads the length of a name or a value, and returns what follows it; `None`: there is none.
fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    if let (first @ 0..128, rest) = bytes.split_first()? {
        return Some((usize::from(*first), rest));
    }
    let (four, rest) = bytes.split_first_chunk::<4>()?;
    Some(((u32::from_be_bytes(*four) & !LONG) as usize, rest))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reads records of an environment as a worker does.
    pub(crate) fn read(mut bytes: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut pairs = vec![];
        loop {
            let (header, rest) = bytes.split_first_chunk::<HEADER>().unwrap();
            let header = Header::read(*header).unwrap();
            assert_eq!(header.kind, Kind::Params);
            let (content, rest) = rest.split_at(header.content.into());
            bytes = rest;
            if content.is_empty() {
                break;
            }
            pairs.extend_from_slice(content);
        }
        assert!(bytes.is_empty());
        let (mut rest, mut read) = (&pairs[..], vec![]);
        while !rest.is_empty() {
            let [name, value] = [(); 2].map(|()| {
                let long = rest[0] >= 128;
                let (length, after) = rest.split_at(if long { 4 } else { 1 });
                rest = after;
                length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)) & 0x7FFF_FFFF
            });
            let (own, after) = rest.split_at(name);
            let (text, after) = after.split_at(value);
            read.push((own.to_vec(), text.to_vec()));
            rest = after;
        }
        read
    }

    #[test]
    fn a_request_begins_as_specified() {
        assert_eq!(begin(true), [1, 1, 0, 1, 0, 8, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0]);
        assert_eq!(begin(false), [1, 1, 0, 1, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(stdin(258), [1, 5, 0, 1, 1, 2, 0, 0]);
    }

    #[test]
    fn an_environment_of_many_records_is_read_back() {
        let mut environment = Environment::default();
        let long = vec![b'v'; 3 * CONTENT_MAX];
        for (name, value) in [(&b"A"[..], &long[..]), (&[b'n'; 128], b""), (b"B", &[b'w'; 127])] {
            environment.add(&[name], &[value]);
        }
        let mut bytes = vec![];
        environment.write(&mut bytes);
        let expected =
            vec![(b"A".to_vec(), long), (vec![b'n'; 128], vec![]), (b"B".to_vec(), vec![b'w'; 127])];
        assert_eq!(read(&bytes), expected);
    }

    proptest! {
        #[test]
        fn every_variable_is_read_back(
            pairs in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..200), prop::collection::vec(any::<u8>(), 0..400)), 0..20),
        ) {
            let mut environment = Environment::default();
            for (name, value) in &pairs {
                let (half, rest) = value.split_at(value.len() / 2);
                environment.add(&[name], &[half, rest]);
            }
            let mut bytes = vec![];
            environment.write(&mut bytes);
            let own: Vec<_> = environment.pairs().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
            prop_assert_eq!(&own, &pairs);
            prop_assert_eq!(read(&bytes), pairs);
        }
    }
}
