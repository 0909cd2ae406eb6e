//! State as bytes, so that a machine can be put away at one moment and go on at another as if
//! nothing had happened.
//!
//! Whole numbers are written seven bits to a byte, the low ones first; real numbers by their bits,
//! so that they are the same after as before; lists with their length ahead. There are no names and
//! no room for change: bytes are read back by the build that wrote them, or refused. What is read
//! may come from anybody: no length is believed that the bytes left could not hold, and nothing
//! here panics.
//!
//! A struct or an enum needs one line, [`saved_struct!`](crate::saved_struct) or
//! [`saved_enum!`](crate::saved_enum), that lists its parts; the compiler sees to it that none is
//! forgotten.

use crate::{Failure, Instant, KindId, NodeId, Outcome, PoolId, RequestId, RouteId, ServiceId, SessionId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::time::Duration;

/// What can be put into bytes and brought back.
pub trait Persist: Sized {
    /// Appends it.
    fn save(&self, out: &mut Writer);

    /// Takes one from the front.
    ///
    /// # Errors
    /// Returns where, and why, the bytes are not one.
    fn load(from: &mut Reader<'_>) -> Result<Self, Broken>;
}

/// Bytes being written.
#[derive(Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

/// Bytes being read.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Bytes that are not what they should be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Broken {
    /// How many bytes were read before.
    pub at: usize,
    /// What is wrong there; reads on from "at byte N".
    pub why: &'static str,
}

/// A law of somebody else's that does not say how it is put into bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unsavable;

impl Writer {
    /// Returns a writer that appends to `bytes`.
    pub fn over(bytes: Vec<u8>) -> Self {
        Writer { bytes }
    }

    /// Returns how many bytes there are.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Appends bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends a whole number, in as few bytes as it needs.
    pub fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// Appends the difference from one number to another, in as few bytes as it needs, whichever is
    /// greater.
    pub fn step(&mut self, from: u64, to: u64) {
        let difference = to.wrapping_sub(from) as i64;
        self.number((difference << 1 ^ difference >> 63) as u64);
    }
}

impl<'a> Reader<'a> {
    /// Returns a reader at the front of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes, at: 0 }
    }

    /// Returns how many bytes were read.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Returns how many bytes are left.
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Returns the fault `why` at this place.
    pub fn broken(&self, why: &'static str) -> Broken {
        Broken { at: self.at, why }
    }

    /// Takes the next `count` bytes as they are.
    ///
    /// # Errors
    /// Returns [`Broken`] if there are fewer.
    pub fn raw(&mut self, count: usize) -> Result<&'a [u8], Broken> {
        let end = self.at.checked_add(count).filter(|end| *end <= self.bytes.len());
        let Some(end) = end else { return Err(self.broken("it ends too early")) };
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    /// Takes `N` bytes.
    ///
    /// # Errors
    /// Returns [`Broken`] if there are fewer.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Broken> {
        let mut array = [0; N];
        array.copy_from_slice(self.raw(N)?);
        Ok(array)
    }

    /// Takes a number written by [`Writer::number`].
    ///
    /// # Errors
    /// Returns [`Broken`] if there is none.
    pub fn number(&mut self) -> Result<u64, Broken> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            if shift == 63 && byte > 1 {
                break;
            }
            number |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(self.broken("a number is too long"))
    }

    /// Takes a difference written by [`Writer::step`] and returns the number it leads to.
    ///
    /// # Errors
    /// Returns [`Broken`] if there is none.
    pub fn step(&mut self, from: u64) -> Result<u64, Broken> {
        let folded = self.number()?;
        let difference = (folded >> 1) as i64 ^ -((folded & 1) as i64);
        Ok(from.wrapping_add(difference as u64))
    }

    /// Takes the length of a list, each entry of which has at least one byte.
    ///
    /// # Errors
    /// Returns [`Broken`] if there is none, or the bytes left could not hold as many.
    pub fn length(&mut self) -> Result<usize, Broken> {
        let length = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        if length > self.left() { Err(self.broken("a list is longer than what is left")) } else { Ok(length) }
    }

    /// Succeeds if nothing is left.
    ///
    /// # Errors
    /// Returns [`Broken`] if something is.
    pub fn finish(&self) -> Result<(), Broken> {
        if self.left() == 0 { Ok(()) } else { Err(self.broken("there is more than there should be")) }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}", self.at, self.why)
    }
}

impl std::error::Error for Broken {}

impl fmt::Display for Unsavable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a law is in force that does not say how it is put into bytes")
    }
}

impl std::error::Error for Unsavable {}

/// Makes a struct a [`Persist`](crate::persist::Persist): `saved_struct!(Name { field, field });`,
/// every field. Where its parts must fit each other, a condition follows: `saved_struct!(Name {
/// list, next }, |it: &Name| it.next < it.list.len());`. What is only counted for show is left out
/// and begins anew: `saved_struct!(Name { list } without { seen });`.
#[macro_export]
macro_rules! saved_struct {
    (
        $name:ident { $($field:ident),+ $(,)? } $(without { $($shown:ident),+ $(,)? })? $(, $fits:expr)? $(,)?
    ) => {
        impl $crate::persist::Persist for $name {
            fn save(&self, out: &mut $crate::persist::Writer) {
                let $name { $($field,)+ $($($shown: _,)+)? } = self;
                $($crate::persist::Persist::save($field, out);)+
            }

            fn load(from: &mut $crate::persist::Reader<'_>) -> Result<Self, $crate::persist::Broken> {
                let loaded = $name {
                    $($field: $crate::persist::Persist::load(from)?,)+
                    $($($shown: Default::default(),)+)?
                };
                $(if !$fits(&loaded) {
                    return Err(from.broken(concat!("the parts of a ", stringify!($name), " do not fit each other")));
                })?
                Ok(loaded)
            }
        }
    };
}

/// Makes an enum a [`Persist`](crate::persist::Persist): `saved_enum!(Name { 0 = One, 1 = Two(a), 2
/// = Three { b } });`, every variant with a number of its own.
#[macro_export]
macro_rules! saved_enum {
    ($name:ident { $($tag:literal = $variant:ident $(($item:ident))? $({ $($field:ident),+ })?),+ $(,)? }) => {
        impl $crate::persist::Persist for $name {
            fn save(&self, out: &mut $crate::persist::Writer) {
                match self {
                    $($name::$variant $(($item))? $({ $($field),+ })? => {
                        out.raw(&[$tag]);
                        $($crate::persist::Persist::save($item, out);)?
                        $($($crate::persist::Persist::save($field, out);)+)?
                    })+
                }
            }

            fn load(from: &mut $crate::persist::Reader<'_>) -> Result<Self, $crate::persist::Broken> {
                let [tag] = from.array()?;
                match tag {
                    $($tag => {
                        $(let $item = $crate::persist::Persist::load(from)?;)?
                        $($(let $field = $crate::persist::Persist::load(from)?;)+)?
                        Ok($name::$variant $(($item))? $({ $($field),+ })?)
                    })+
                    _ => Err(from.broken(concat!("it is no ", stringify!($name)))),
                }
            }
        }
    };
}

macro_rules! whole_numbers {
    ($($type:ty),+) => {
        $(impl Persist for $type {
            fn save(&self, out: &mut Writer) {
                out.number(*self as u64);
            }

            fn load(from: &mut Reader<'_>) -> Result<Self, Broken> {
                <$type>::try_from(from.number()?).map_err(|_| from.broken("a number is too great"))
            }
        })+
    };
}

whole_numbers!(u32, u64, usize);

impl Persist for bool {
    fn save(&self, out: &mut Writer) {
        out.raw(&[u8::from(*self)]);
    }

    fn load(from: &mut Reader<'_>) -> Result<Self, Broken> {
        match from.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(from.broken("it is neither yes nor no")),
        }
    }
}

impl Persist for f64 {
    fn save(&self, out: &mut Writer) {
        out.raw(&self.to_bits().to_le_bytes());
    }

    fn load(from: &mut Reader<'_>) -> Result<Self, Broken> {
        Ok(f64::from_bits(u64::from_le_bytes(from.array()?)))
    }
}

impl Persist for f32 {
    fn save(&self, out: &mut Writer) {
        out.raw(&self.to_bits().to_le_bytes());
    }

    fn load(from: &mut Reader<'_>) -> Result<Self, Broken> {
        Ok(f32::from_bits(u32::from_le_bytes(from.array()?)))
    }
}

impl Persist for String {
    fn save(&self, out: &mut Writer) {
        self.len().save(out);
        out.raw(self.as_bytes());
    }

    fn load(from: &mut Reader<'_>) -> Result<Self, Broken> {
        let length = from.length()?;
        let bytes = from.raw(length)?;
        std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| from.broken("a text is not UTF-8"))
    }
}

impl Persist for Duration {
    fn save(&self, out: &mut Writer) {
        self.as_secs().save(out);
        self.subsec_nanos().save(out);
    }

    fn load(from: &mut Reader<'_>) -> Result<Self, Broken> {
        let (seconds, nanos) = (u64::load(from)?, u32::load(from)?);
        if nanos < 1_000_000_000 {
            Ok(Duration::new(seconds, nanos))
        } else {
            Err(from.broken("a second has a thousand million nanoseconds"))
        }
    }
}

impl Persist for Instant {
    fn save(&self, out: &mut Writer) {
        self.as_nanos().save(out);
    }

    fn load(from: &mut Reader<'_>) -> Result<Self, Broken> {
        Ok(Instant::from_nanos(u64::load(from)?))
    }
}

/// All its bits are random, so a fixed length is the shortest.
impl Persist for SessionId {
    fn save(&self, out: &mut Writer) {
        out.raw(&self.0.to_le_bytes());
    }

    fn load(from: &mut Reader<'_>) -> Result<Self, Broken> {
        Ok(SessionId(u64::from_le_bytes(from.array()?)))
    }
}

macro_rules! wrapped_numbers {
    ($($type:ident),+) => {
        $(impl Persist for $type {
            fn save(&self, out: &mut Writer) {
                self.0.save(out);
            }

            fn load(from: &mut Reader<'_>) -> Result<Self, Broken> {
                Ok($type(Persist::load(from)?))
            }
        })+
    };
}

wrapped_numbers!(RouteId, KindId, NodeId, ServiceId, PoolId);

/// Generation and index, each as short as it is.
impl Persist for RequestId {
    fn save(&self, out: &mut Writer) {
        out.number(self.0 & 0xFFFF_FFFF);
        out.number(self.0 >> 32);
    }

    fn load(from: &mut Reader<'_>) -> Result<Self, Broken> {
        let (index, generation) = (u32::load(from)?, u32::load(from)?);
        Ok(RequestId(u64::from(generation) << 32 | u64::from(index)))
    }
}

saved_enum!(Failure { 0 = Connection, 1 = Timeout, 2 = ServerError, 3 = BadRequest });
saved_enum!(Outcome { 0 = Completed, 1 = Failed(failure), 2 = Abandoned, 3 = Declined });

impl<T: Persist> Persist for Option<T> {
    fn save(&self, out: &mut Writer) {
        self.is_some().save(out);
        if let Some(inner) = self {
            inner.save(out);
        }
    }

    fn load(from: &mut Reader<'_>) -> Result<Self, Broken> {
        if bool::load(from)? { T::load(from).map(Some) } else { Ok(None) }
    }
}

macro_rules! lists {
    ($($list:ident $(: $bound:ident)?),+) => {
        $(impl<T: Persist $(+ $bound)?> Persist for $list<T> {
            fn save(&self, out: &mut Writer) {
                self.len().save(out);
                self.iter().for_each(|entry| entry.save(out));
            }

            fn load(from: &mut Reader<'_>) -> Result<Self, Broken> {
                (0..from.length()?).map(|_| T::load(from)).collect()
            }
        })+
    };
}

lists!(Vec, VecDeque, BTreeSet: Ord);

impl<K: Persist + Ord, V: Persist> Persist for BTreeMap<K, V> {
    fn save(&self, out: &mut Writer) {
        self.len().save(out);
        for (key, value) in self {
            key.save(out);
            value.save(out);
        }
    }

    fn load(from: &mut Reader<'_>) -> Result<Self, Broken> {
        (0..from.length()?).map(|_| Ok((K::load(from)?, V::load(from)?))).collect()
    }
}

impl<A: Persist, B: Persist> Persist for (A, B) {
    fn save(&self, out: &mut Writer) {
        self.0.save(out);
        self.1.save(out);
    }

    fn load(from: &mut Reader<'_>) -> Result<Self, Broken> {
        Ok((A::load(from)?, B::load(from)?))
    }
}

impl<T: Persist, const N: usize> Persist for [T; N] {
    fn save(&self, out: &mut Writer) {
        self.iter().for_each(|entry| entry.save(out));
    }

    fn load(from: &mut Reader<'_>) -> Result<Self, Broken> {
        let entries = (0..N).map(|_| T::load(from)).collect::<Result<Vec<_>, _>>()?;
        entries.try_into().map_err(|_| from.broken("a list is not as long as it must be"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Rng, TraceHash};

    fn saved(state: &impl Persist) -> Vec<u8> {
        let mut out = Writer::default();
        state.save(&mut out);
        out.into_bytes()
    }

    fn brought_back<T: Persist + PartialEq + fmt::Debug>(state: &T) {
        let bytes = saved(state);
        let mut from = Reader::new(&bytes);
        assert_eq!(T::load(&mut from).as_ref(), Ok(state));
        assert_eq!(from.finish(), Ok(()));
        for shorter in 0..bytes.len() {
            assert!(T::load(&mut Reader::new(&bytes[..shorter])).is_err(), "{shorter} bytes of {state:?}");
        }
    }

    #[test]
    fn what_is_brought_back_is_what_was_put_away_and_no_part_of_it_is_enough() {
        [0, 1, 127, 128, u64::MAX - 1, u64::MAX].iter().for_each(brought_back);
        brought_back(&f64::NEG_INFINITY);
        brought_back(&Some(Duration::new(3, 999_999_999)));
        brought_back(&vec![(RouteId(1), 0.25_f32), (RouteId(700), 1e-9)]);
        brought_back(&BTreeMap::from([(RequestId(5 << 32 | 1), Instant::from_nanos(9))]));
        brought_back(&BTreeSet::from([(Instant::ORIGIN, SessionId(u64::MAX))]));
        brought_back(&VecDeque::from([true, false]));
        brought_back(&"GET /items/{id}".to_string());
        brought_back(&vec![
            Outcome::Completed,
            Outcome::Declined,
            Outcome::Failed(Failure::ServerError),
            Outcome::Abandoned,
        ]);
    }

    #[test]
    fn a_step_may_go_back_and_over_the_edge() {
        for (from, to) in [(0, 0), (5, 3), (3, 5), (0, u64::MAX), (u64::MAX, 0), (1 << 63, 0)] {
            let mut out = Writer::default();
            out.step(from, to);
            assert_eq!(Reader::new(&out.into_bytes()).step(from), Ok(to), "{from} to {to}");
        }
    }

    #[test]
    fn not_a_number_keeps_its_bits() {
        let bits = f64::NAN.to_bits() | 5;
        let bytes = saved(&f64::from_bits(bits));
        assert_eq!(f64::load(&mut Reader::new(&bytes)).unwrap().to_bits(), bits);
    }

    #[test]
    fn a_length_that_cannot_be_is_refused_before_anything_is_held_for_it() {
        let mut out = Writer::default();
        out.number(u64::MAX);
        assert_eq!(
            Vec::<u64>::load(&mut Reader::new(&out.into_bytes())),
            Err(Broken { at: 10, why: "a list is longer than what is left" })
        );
        assert!(Reader::new(&[0xFF; 10]).number().is_err(), "a number of more than 64 bits");
    }

    #[test]
    fn what_is_counted_for_show_begins_anew() {
        #[derive(PartialEq, Debug)]
        struct Door {
            limit: u32,
            seen: u64,
        }
        saved_struct!(Door { limit } without { seen });
        let bytes = saved(&Door { limit: 3, seen: 99 });
        assert_eq!(bytes, saved(&3_u32), "it takes no room");
        assert_eq!(Door::load(&mut Reader::new(&bytes)), Ok(Door { limit: 3, seen: 0 }));
    }

    #[test]
    fn parts_that_do_not_fit_each_other_are_refused() {
        #[derive(PartialEq, Debug)]
        struct Ring {
            values: Vec<u32>,
            next: usize,
        }
        saved_struct!(Ring { values, next }, |ring: &Ring| ring.next < ring.values.len());
        brought_back(&Ring { values: vec![1, 2], next: 1 });
        let why = Ring::load(&mut Reader::new(&saved(&Ring { values: vec![1, 2], next: 2 }))).unwrap_err();
        assert_eq!(why.to_string(), "at byte 4: the parts of a Ring do not fit each other");
    }

    #[test]
    fn random_numbers_and_hashes_go_on_where_they_were() {
        let mut rng = Rng::new(3);
        rng.bits();
        let bytes = saved(&rng);
        let mut other = Rng::load(&mut Reader::new(&bytes)).unwrap();
        assert_eq!(rng.bits(), other.bits());

        let mut hash = TraceHash::default();
        hash.word(7);
        let bytes = saved(&hash);
        let mut other = TraceHash::load(&mut Reader::new(&bytes)).unwrap();
        hash.word(8);
        other.word(8);
        assert_eq!(hash, other);
    }
}
