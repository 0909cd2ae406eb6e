//! The ticket: a signed cookie that says which place in line a visitor holds, and what they were
//! shown.
//!
//! Fixed width, sealed (see [`crate::sealed`]): 71 characters for 53 bytes.
//!
//! | bytes | holds |
//! |---|---|
//! | 1 | version, 1 |
//! | 1 | id of the key it is signed with |
//! | 2 | tag of the session's kind |
//! | 1 | lane |
//! | 4 | epoch of the line: another line's ticket is no place in this one |
//! | 2 | which start of the gateway gave the number: after a crash a number may be given again, the session it begins never |
//! | 6 | number |
//! | 4 | seconds since 1970 it was drawn at |
//! | 4 | seconds since 1970 of its holder's last poll |
//! | 2 | seconds until the next poll was due |
//! | 4 | the fewest people ahead they were shown |
//! | 4 | seconds since 1970 by which they were told it would be their turn |
//! | 2 | how often the place has gone to another device |
//! | 16 | signature |
//!
//! All that is known of a waiting visitor is in here and nowhere else. It says nothing of who they
//! are.

use crate::keys::Keys;
use crate::sealed::{self, MAC, Seal};
use bytes::Bytes;
use http::HeaderValue;
use suimon_line::{Lane, Position};
use suimon_model::{KindId, SessionId};

const BYTES: usize = 53;
const VERSION: u8 = 1;
/// Numbers have 48 bits.
const NUMBER_MAX: u64 = (1 << 48) - 1;

/// How the names of its cookies begin, on plain connections and where the client's connection is
/// encrypted. The kind's tag follows, so that each line has its own.
pub const PREFIX: &str = "suimon-ticket-";
/// See [`PREFIX`].
pub const PREFIX_SECURE: &str = "__Host-suimon-ticket-";

/// What a ticket says. Times are seconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticket {
    /// The kind of session it is for.
    pub kind: KindId,
    /// Its place in that line.
    pub position: Position,
    /// The line it was drawn in.
    pub epoch: u32,
    /// Which start of the gateway drew it.
    pub start: u16,
    /// When it was drawn.
    pub drawn: u32,
    /// When its holder polled last.
    pub heard: u32,
    /// Seconds.
    pub again_after: u16,
    /// The fewest people ahead that its holder was shown.
    pub fewest_ahead: u32,
    /// The latest time of its turn, as its holder was told.
    pub turn_by: u32,
    /// How often the place has gone to another device.
    pub moved: u16,
}

/// Writes and reads tickets.
#[derive(Debug)]
pub struct Tickets {
    seal: Seal,
    life: u32,
    hold: u32,
    /// By kind.
    tags: Vec<[u8; 2]>,
}

impl Ticket {
    /// Characters of one.
    pub const TEXT_LEN: usize = sealed::text_len(BYTES);
}

impl Tickets {
    /// Returns tickets of the kinds with these tags, good for `life` seconds after their holder's
    /// last poll; a turn is held for `hold` seconds.
    pub fn new(keys: &Keys, life: u32, hold: u32, tags: Vec<[u8; 2]>) -> Self {
        Tickets { seal: Seal::new("suimon ticket 1", keys), life, hold, tags }
    }

    /// Returns for how long a turn is held, seconds.
    pub fn hold(&self) -> u32 {
        self.hold
    }

    /// Returns the `Set-Cookie` of a ticket.
    pub fn cookie(&self, ticket: &Ticket, secure: bool) -> HeaderValue {
        self.set_cookie(ticket.kind, Some(ticket), secure)
    }

    /// Returns the `Set-Cookie` that takes a ticket for a session of `kind` back.
    pub fn withdraw(&self, kind: KindId, secure: bool) -> HeaderValue {
        self.set_cookie(kind, None, secure)
    }

    fn set_cookie(&self, kind: KindId, ticket: Option<&Ticket>, secure: bool) -> HeaderValue {
        let (prefix, flags) =
            if secure { (PREFIX_SECURE, "SameSite=Lax; Secure") } else { (PREFIX, "SameSite=Lax") };
        let [high, low] = self.tag(kind);
        let name = format_args!("{prefix}{high:02x}{low:02x}");
        match ticket {
            Some(ticket) => sealed::set_cookie(name, |out| self.write(ticket, out), self.life, flags),
            None => sealed::set_cookie(name, |_| {}, 0, flags),
        }
    }

    /// Returns the ticket as the value of a header, for clients that keep no cookies.
    pub fn header(&self, ticket: &Ticket) -> HeaderValue {
        let mut text = Vec::with_capacity(sealed::text_len(BYTES));
        self.write(ticket, &mut text);
        HeaderValue::from_maybe_shared(Bytes::from(text)).expect("base64url is visible ASCII")
    }

    /// Appends the ticket's text.
    pub fn write(&self, ticket: &Ticket, out: &mut Vec<u8>) {
        let mut bytes = [0; BYTES];
        bytes[0] = VERSION;
        bytes[1] = self.seal.key();
        bytes[2..4].copy_from_slice(&self.tag(ticket.kind));
        bytes[4] = ticket.position.lane.index() as u8;
        bytes[5..9].copy_from_slice(&ticket.epoch.to_be_bytes());
        bytes[9..11].copy_from_slice(&ticket.start.to_be_bytes());
        bytes[11..17].copy_from_slice(&ticket.position.number.min(NUMBER_MAX).to_be_bytes()[2..]);
        bytes[17..21].copy_from_slice(&ticket.drawn.to_be_bytes());
        bytes[21..25].copy_from_slice(&ticket.heard.to_be_bytes());
        bytes[25..27].copy_from_slice(&ticket.again_after.to_be_bytes());
        bytes[27..31].copy_from_slice(&ticket.fewest_ahead.to_be_bytes());
        bytes[31..35].copy_from_slice(&ticket.turn_by.to_be_bytes());
        bytes[35..37].copy_from_slice(&ticket.moved.to_be_bytes());
        self.seal.sign(&mut bytes);
        sealed::encode(&bytes, out);
    }

    /// Returns what the text says, if it is a ticket of ours that is still good at `now`.
    pub fn read(&self, text: &[u8], now: u32) -> Option<Ticket> {
        let bytes: [u8; BYTES] = sealed::decode(text)?;
        if bytes[0] != VERSION || !self.seal.is_ours(&bytes) {
            return None;
        }
        let two = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let four = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let kind = self.tags.iter().position(|tag| *tag == bytes[2..4])?;
        let lane = *Lane::ALL.get(usize::from(bytes[4]))?;
        let number = bytes[11..17].iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        let drawn = four(17);
        // A visitor who goes on asking keeps the place, however long it takes. A ticket issued
        // while the clock was ahead is good as long as others: the clock may have been set right
        // since.
        let is_good = now.saturating_sub(four(21)) < self.life && drawn.saturating_sub(now) < self.life;
        is_good.then(|| Ticket {
            kind: KindId(kind as u32),
            position: Position { lane, number },
            epoch: four(5),
            start: two(9),
            drawn,
            heard: four(21),
            again_after: two(25),
            fewest_ahead: four(27),
            turn_by: four(31),
            moved: two(35),
        })
    }

    /// Returns the session that a ticket begins: the same for every client that presents it, and
    /// for none without.
    pub fn session(&self, ticket: &Ticket) -> SessionId {
        let mut words = [0; 17];
        words[..2].copy_from_slice(&self.tag(ticket.kind));
        words[2] = ticket.position.lane.index() as u8;
        words[3..7].copy_from_slice(&ticket.epoch.to_be_bytes());
        words[7..9].copy_from_slice(&ticket.start.to_be_bytes());
        words[9..].copy_from_slice(&ticket.position.number.to_be_bytes());
        SessionId(self.seal.number(&words))
    }

    fn tag(&self, kind: KindId) -> [u8; 2] {
        self.tags.get(kind.index()).copied().unwrap_or_default()
    }
}

const _: () = assert!(BYTES == 37 + MAC, "the table above says what is where");

#[cfg(test)]
mod tests;
