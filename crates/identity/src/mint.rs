//! Tickets, leases and invitations made and read as the gateway makes and reads them, for attempts
//! to forge them: `experiments/ticket-forgery` does so, and so do the tests here.

use crate::invite::Invites;
use crate::keys::Keys;
use crate::lease::Leases;
use crate::ticket::{Ticket, Tickets};
use suimon_line::{Lane, Position};
use suimon_model::{KindId, SessionId};

/// Seconds for which tickets and leases are good.
const LIFE: u32 = 86_400;

/// What a visitor keeps for us and cannot change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SignedItem {
    /// A place in line.
    Ticket,
    /// A session that was admitted.
    Lease,
    /// A place in a lane of its own, as it stands in a link.
    Invitation,
}

impl SignedItem {
    /// All of them.
    pub const ALL: [SignedItem; 3] = [SignedItem::Ticket, SignedItem::Lease, SignedItem::Invitation];
}

/// Makes true ones, and says of any text whether it is accepted as one. All happens at one moment.
#[derive(Debug)]
pub struct Mint {
    tickets: Tickets,
    leases: Leases,
    invites: Invites,
    kinds: usize,
}

impl Mint {
    /// The moment, seconds since 1970.
    pub const NOW: u32 = 1_800_000_000;

    /// Returns the mint of a gateway with these keys and with sessions of these kinds. Two names
    /// that leases cannot distinguish are returned as an error.
    ///
    /// # Errors
    /// If two names have the same tag.
    pub fn new(keys: &Keys, kinds: &[&str]) -> Result<Mint, (String, String)> {
        let leases = Leases::new(keys.clone(), LIFE, None, kinds.iter().copied())?;
        let tags = leases.tags();
        Ok(Mint {
            tickets: Tickets::new(keys, LIFE, 600, tags.clone()),
            invites: Invites::new(keys, tags),
            leases,
            kinds: kinds.len(),
        })
    }

    /// Returns the text of a true one for a session of the kind of this index. Different numbers
    /// make different ones.
    pub fn make(&self, kept: SignedItem, kind: usize, number: u64) -> String {
        let kind = KindId(kind as u32);
        let some = |below: u64| (number % below) as u32;
        let text = match kept {
            SignedItem::Ticket => {
                let ticket = Ticket {
                    kind,
                    position: Position { lane: Lane::ALL[some(4) as usize], number },
                    epoch: 7,
                    start: 1 + some(2) as u16,
                    drawn: Self::NOW - 60 - some(3600),
                    heard: Self::NOW - some(60),
                    again_after: 2 + some(58) as u16,
                    fewest_ahead: some(100_000),
                    turn_by: Self::NOW + some(7200),
                    moved: some(3) as u16,
                };
                let mut text = Vec::new();
                self.tickets.write(&ticket, &mut text);
                text
            }
            SignedItem::Lease => {
                let cookie = self.leases.issue(kind, SessionId(number), Self::NOW - some(3600), false);
                let value = cookie.as_bytes().split(|byte| matches!(byte, b'=' | b';')).nth(1);
                value.unwrap_or_default().to_vec()
            }
            SignedItem::Invitation => {
                self.invites.text(kind, Self::NOW + 1 + some(3600), number.to_be_bytes()).into_bytes()
            }
        };
        String::from_utf8(text).expect("base64url is ASCII")
    }

    /// Returns whether `text` is accepted as a true one, of whatever kind.
    pub fn takes(&self, kept: SignedItem, text: &[u8]) -> bool {
        match kept {
            SignedItem::Ticket => self.tickets.read(text, Self::NOW).is_some(),
            SignedItem::Lease => self.leases.check(text, Self::NOW).is_some(),
            SignedItem::Invitation => {
                (0..self.kinds).any(|kind| self.invites.read(text, KindId(kind as u32), Self::NOW).is_some())
            }
        }
    }
}

#[cfg(test)]
mod tests;
