//! A visitor who forges: waits, and meanwhile tries to be admitted with edited tickets.
//!
//! The forger knows only what a ticket looks like from outside: base64url, with the position's
//! number somewhere in it and a signature at its end.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use suimon_model::{Instant, Rng};
use suimon_workload::Forge;

/// Bytes of a number, and of the signature.
const NUMBER: usize = 6;
const SIGNATURE: usize = 16;
/// Other visitors' tickets that are remembered for their signatures.
const OTHERS_MAX: usize = 16;

/// What is edited.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Edit {
    /// One bit, anywhere.
    Bit,
    /// The position's number, to a lower one.
    Number,
    /// The signature, to that of another visitor's ticket.
    Signature,
}

impl Edit {
    /// Returns the edits in turn, beginning with the one that is due after `sent` edits.
    pub(crate) fn in_turn(sent: u32) -> impl Iterator<Item = Edit> {
        [Edit::Bit, Edit::Number, Edit::Signature].into_iter().cycle().skip(sent as usize % 3).take(3)
    }

    /// Returns the edited ticket, or `None` if this edit is not possible. `position` is the
    /// position shown, counted from 1; `another` is another visitor's ticket.
    pub(crate) fn apply(
        self,
        ticket: &str,
        position: Option<u64>,
        another: Option<&str>,
        rng: &mut Rng,
    ) -> Option<String> {
        let genuine = URL_SAFE_NO_PAD.decode(ticket).ok()?;
        let mut bytes = genuine.clone();
        match self {
            Edit::Bit => {
                let bit = rng.below(bytes.len() * 8);
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            Edit::Number => {
                let number = position?.checked_sub(1).filter(|number| *number > 0)?;
                let written = |number: u64| number.to_be_bytes()[8 - NUMBER..].to_vec();
                let at = bytes.windows(NUMBER).position(|window| window == written(number))?;
                let lower = rng.below(usize::try_from(number).ok()?) as u64;
                bytes[at..at + NUMBER].copy_from_slice(&written(lower));
            }
            Edit::Signature => {
                let another = URL_SAFE_NO_PAD.decode(another?).ok()?;
                let (own, theirs) =
                    (bytes.len().checked_sub(SIGNATURE)?, another.len().checked_sub(SIGNATURE)?);
                bytes[own..].copy_from_slice(&another[theirs..]);
            }
        }
        (bytes != genuine).then(|| URL_SAFE_NO_PAD.encode(bytes))
    }
}

/// A visitor who forges, while waiting.
#[derive(Debug)]
pub(crate) struct Forger {
    policy: Forge,
    sent: u32,
    /// When the last edited ticket was sent, and when the own position was last polled.
    tried: Option<Instant>,
    heard: Instant,
}

impl Forger {
    /// For this long after a poll the server tells another poll to come later, which says nothing
    /// about its ticket.
    const QUIET: Duration = Duration::from_secs(2);

    /// Returns a forger whose own position was shown now.
    pub(crate) fn begin(now: Instant, policy: &Forge) -> Self {
        Forger { policy: policy.clone(), sent: 0, tried: None, heard: now }
    }

    /// Notes that the own position was polled.
    pub(crate) fn heard(&mut self, now: Instant) {
        self.heard = now;
    }

    /// Returns when to send the next edited ticket, and its index from 0; `None` if all were sent.
    pub(crate) fn next(&self) -> Option<(Instant, u32)> {
        let quiet = self.heard + Self::QUIET;
        let at = self.tried.map_or(quiet, |tried| quiet.max(tried + self.policy.every));
        (self.sent < self.policy.tickets).then_some((at, self.sent))
    }

    /// Notes that it was sent, or could not be made.
    pub(crate) fn tried(&mut self, now: Instant) {
        self.sent += 1;
        self.tried = Some(now);
    }
}

/// Counts of all forgers.
#[derive(Debug, Default)]
pub(crate) struct ForgeBooks {
    /// The report so far.
    pub(crate) so_far: ForgeReport,
    /// Recent tickets, and whose they are.
    others: VecDeque<(u32, String)>,
}

impl ForgeBooks {
    /// Remembers a ticket of `user`.
    pub(crate) fn seen(&mut self, user: u32, ticket: &str) {
        if self.others.len() == OTHERS_MAX {
            self.others.pop_front();
        }
        self.others.push_back((user, ticket.to_owned()));
    }

    /// Returns the latest ticket that is not of `user`.
    pub(crate) fn of_another(&self, user: u32) -> Option<String> {
        self.others.iter().rev().find(|(own, _)| *own != user).map(|(_, ticket)| ticket.clone())
    }

    /// Returns the summary, or `None` if nobody forged.
    pub(crate) fn report(&self) -> Option<ForgeReport> {
        (self.so_far.forgers > 0).then(|| self.so_far.clone())
    }
}

/// The results of forging.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ForgeReport {
    /// Visitors who forged: they waited like all visitors, and also sent edited tickets.
    pub forgers: u64,
    /// Of these, how many were admitted with their own ticket.
    pub forgers_entered: u64,
    /// Edited tickets that were sent, by what was edited.
    pub tickets: BTreeMap<Edit, u64>,
    /// Edited tickets that the server accepted: a poll with them returned a position's status. Must
    /// be 0.
    pub taken: u64,
    /// Admissions with an edited ticket: its holder was admitted before the turn of the holder's
    /// own position. Must be 0.
    pub entered: u64,
    /// Admissions with an edited ticket while nobody had to wait, or when the turn of the holder's
    /// own position had come. They would also have happened without a ticket.
    pub let_in_without: u64,
    /// Requests with an edited ticket that got a new ticket, as requests without one do, ...
    pub numbers: u64,
    /// ... and those that got a time to retry.
    pub put_off: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_model::seconds;

    /// Returns a ticket with this number, and a signature of this byte.
    fn ticket(number: u64, signature: u8) -> String {
        let mut bytes = vec![1, 7, 0xAB, 0xCD, 0, 1, 2, 3, 4, 0, 9];
        bytes.extend_from_slice(&number.to_be_bytes()[2..]);
        bytes.extend_from_slice(&[5; 20]);
        bytes.extend_from_slice(&[signature; SIGNATURE]);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    fn bytes(ticket: &str) -> Vec<u8> {
        URL_SAFE_NO_PAD.decode(ticket).unwrap()
    }

    #[test]
    fn each_edit_changes_what_it_says_and_nothing_else() {
        let (own, mut rng) = (ticket(300, 1), Rng::new(1));
        for _ in 0..100 {
            let bit = Edit::Bit.apply(&own, None, None, &mut rng).unwrap();
            let flipped: u32 = bytes(&own).iter().zip(bytes(&bit)).map(|(a, b)| (a ^ b).count_ones()).sum();
            assert_eq!(flipped, 1);
            let lower = bytes(&Edit::Number.apply(&own, Some(301), None, &mut rng).unwrap());
            assert_eq!((&lower[..15], &lower[17..]), (&bytes(&own)[..15], &bytes(&own)[17..]));
            assert!(u16::from_be_bytes([lower[15], lower[16]]) < 300);
        }
        let other = ticket(300, 2);
        assert_eq!(Edit::Signature.apply(&own, None, Some(&ticket(5, 2)), &mut rng), Some(other));
    }

    #[test]
    fn what_cannot_be_edited_is_not_sent() {
        let (own, mut rng) = (ticket(300, 1), Rng::new(1));
        assert_eq!(Edit::Number.apply(&own, None, None, &mut rng), None, "numbers are hidden");
        assert_eq!(Edit::Number.apply(&own, Some(1), None, &mut rng), None, "there is none before the first");
        assert_eq!(Edit::Number.apply(&own, Some(77), None, &mut rng), None, "it is not in there");
        assert_eq!(Edit::Signature.apply(&own, None, None, &mut rng), None, "nobody else is known");
        assert_eq!(Edit::Signature.apply(&own, None, Some(&own), &mut rng), None, "it is the same");
        assert_eq!(Edit::Bit.apply("no ticket!", None, None, &mut rng), None);
    }

    #[test]
    fn tickets_are_sent_in_the_pauses_and_come_to_an_end() {
        let second = |n: f64| Instant::ORIGIN + seconds(n);
        let policy = Forge { share: 1.0, tickets: 2, every: Duration::from_secs(3) };
        let mut forger = Forger::begin(second(10.0), &policy);
        assert_eq!(forger.next(), Some((second(12.0), 0)));
        forger.tried(second(12.0));
        assert_eq!(forger.next(), Some((second(15.0), 1)));
        forger.heard(second(14.0));
        assert_eq!(forger.next(), Some((second(16.0), 1)));
        forger.tried(second(16.0));
        assert_eq!(forger.next(), None);
    }

    #[test]
    fn whoever_forges_has_the_signature_of_another() {
        let mut books = ForgeBooks::default();
        assert_eq!(books.of_another(1), None);
        (0..40).for_each(|n| books.seen(n % 2, &n.to_string()));
        assert_eq!(
            (books.of_another(0).as_deref(), books.of_another(1).as_deref()),
            (Some("39"), Some("38"))
        );
        assert_eq!(books.others.len(), OTHERS_MAX);
    }
}
