//! Passes: what the application says of a visitor who has solved its challenge, or logged in, so
//! that they may draw a number.
//!
//! | bytes | holds |
//! |---|---|
//! | 1 | version, 1 |
//! | 1 | id of the key it is signed with |
//! | 1 | 0: good for one number; 1: for one place at a time of an account |
//! | 1 | 0 |
//! | 8 | a random number, or the account's, which is a hash of its name under our keys |
//! | 4 | seconds since 1970 it was issued at |
//! | 16 | signature |
//!
//! Which were used, and the places of accounts, are kept in memory: after a restart each may be
//! used once more.

use crate::generations::Generations;
use crate::keys::{self, Keys};
use crate::sealed::{self, Seal};
use http::HeaderValue;
use std::hash::RandomState;
use std::sync::{Mutex, MutexGuard, PoisonError};
use suimon_line::Position;
use suimon_message::signals::PassGrant;
use suimon_model::KindId;

const BYTES: usize = 32;
const VERSION: u8 = 1;
const ONCE: u8 = 0;
const ACCOUNT: u8 = 1;
/// Seconds for which one number may be drawn.
const ONCE_LIFE: u32 = 600;
/// Passes known to be used, and accounts known to have a place: the least recent are forgotten.
const USED_MAX: usize = 200_000;
const ACCOUNTS_MAX: usize = 1_000_000;
/// A visitor who comes with the same account within this many seconds of a number being drawn for
/// it is told to come again: the place is not known yet.
const DRAWING: u32 = 8;

/// The cookie's name on plain connections, and where the client's is encrypted.
pub const NAME: &str = "suimon-pass";
/// See [`NAME`].
pub const NAME_SECURE: &str = "__Host-suimon-pass";

/// A good pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pass {
    /// Good for one number.
    Once(u64),
    /// Good for one place at a time.
    Account(u64),
}

impl Pass {
    /// Characters of one.
    pub const TEXT_LEN: usize = sealed::text_len(BYTES);
}

/// What a pass is good for now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PassUse {
    /// A number may be drawn.
    Number,
    /// This place in the line of this epoch is its account's.
    Place(Position),
    /// A number is being drawn for its account.
    Later,
    /// Nothing: it was used.
    Nothing,
}

/// The place of an account: in the line of which epoch, `None` while a number is drawn, and since
/// when, seconds since 1970.
type PlaceOf = (u32, Option<Position>, u32);

/// Issues and reads passes.
#[derive(Debug)]
pub struct Passes {
    seal: Seal,
    /// The page that gives them.
    page: String,
    for_everybody: bool,
    account_life: u32,
    used: Mutex<Generations<u64, (), RandomState>>,
    accounts: Mutex<Generations<(KindId, u64), PlaceOf, RandomState>>,
}

impl Passes {
    /// Returns passes that `page` gives; those of accounts are good for `account_life` seconds.
    pub fn new(keys: &Keys, page: &str, for_everybody: bool, account_life: u32) -> Passes {
        Passes {
            seal: Seal::new("suimon pass 1", keys),
            page: page.to_owned(),
            for_everybody,
            account_life,
            used: Mutex::new(Generations::new(USED_MAX)),
            accounts: Mutex::new(Generations::new(ACCOUNTS_MAX)),
        }
    }

    /// Returns whether nobody draws a number without one while others wait. Otherwise only networks
    /// that have drawn many need one.
    pub fn for_everybody(&self) -> bool {
        self.for_everybody
    }

    /// Returns whether the application's pass header counts in an answer to this path.
    pub fn is_page(&self, path: &str) -> bool {
        path == self.page || (self.page.ends_with('/') && path.starts_with(&self.page))
    }

    /// Returns the address of the page for a visitor who is to come back to `url`, a path of this
    /// site.
    pub fn address(&self, url: &str) -> String {
        let back: String = form_urlencoded::byte_serialize(url.as_bytes()).collect();
        format!("{}?back={back}", self.page)
    }

    /// Returns the `Set-Cookie` of the pass that the application's header stands for; `None`: the
    /// system gives no random bytes.
    pub fn issue(&self, word: &PassGrant, now: u32, secure: bool) -> Option<HeaderValue> {
        let mut bytes = [0; BYTES];
        bytes[0] = VERSION;
        bytes[1] = self.seal.key();
        let life = match word {
            PassGrant::Once => {
                bytes[2] = ONCE;
                keys::fill_random(&mut bytes[4..12]).ok()?;
                ONCE_LIFE
            }
            PassGrant::Account(name) => {
                bytes[2] = ACCOUNT;
                bytes[4..12].copy_from_slice(&self.seal.number(name.as_bytes()).to_be_bytes());
                self.account_life
            }
        };
        bytes[12..16].copy_from_slice(&now.to_be_bytes());
        self.seal.sign(&mut bytes);
        let (name, flags) =
            if secure { (NAME_SECURE, "SameSite=Lax; Secure") } else { (NAME, "SameSite=Lax") };
        Some(sealed::set_cookie(name, |out| sealed::encode(&bytes, out), life, flags))
    }

    /// Returns what the cookie's `text` stands for, if it is a pass of ours that is still good.
    /// `now` is in seconds since 1970.
    pub fn read(&self, text: &[u8], now: u32) -> Option<Pass> {
        let bytes: [u8; BYTES] = sealed::decode(text)?;
        if bytes[0] != VERSION || bytes[3] != 0 || !self.seal.is_ours(&bytes) {
            return None;
        }
        let number = u64::from_be_bytes(bytes[4..12].try_into().expect("eight bytes"));
        let issued = u32::from_be_bytes(bytes[12..16].try_into().expect("four bytes"));
        let (pass, life) = match bytes[2] {
            ONCE => (Pass::Once(number), ONCE_LIFE),
            ACCOUNT => (Pass::Account(number), self.account_life),
            _ => return None,
        };
        (now.saturating_sub(issued) < life).then_some(pass)
    }

    /// Uses a pass for a place in the line of `kind` and `epoch`, and returns what it is good for.
    /// A number drawn then must be reported to [`Passes::note`].
    pub fn take(&self, pass: Pass, kind: KindId, epoch: u32, now: u32) -> PassUse {
        match pass {
            Pass::Once(number) => {
                let mut used = lock(&self.used);
                if used.find(number).is_some() {
                    return PassUse::Nothing;
                }
                used.insert(number, ());
                PassUse::Number
            }
            Pass::Account(number) => {
                let mut accounts = lock(&self.accounts);
                match accounts.find((kind, number)) {
                    Some((of, Some(position), _)) if of == epoch => PassUse::Place(position),
                    Some((of, None, since)) if of == epoch && now.saturating_sub(since) < DRAWING => {
                        PassUse::Later
                    }
                    _ => {
                        accounts.insert((kind, number), (epoch, None, now));
                        PassUse::Number
                    }
                }
            }
        }
    }

    /// Takes note of the place that was drawn with a pass.
    pub fn note(&self, pass: Pass, kind: KindId, epoch: u32, position: Position, now: u32) {
        if let Pass::Account(number) = pass {
            lock(&self.accounts).insert((kind, number), (epoch, Some(position), now));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use suimon_line::Lane;

    const NOW: u32 = 1_000_000;
    const KIND: KindId = KindId(0);
    const PLACE: Position = Position { lane: Lane::Normal, number: 7 };

    fn passes() -> Passes {
        Passes::new(&Keys::fresh().unwrap(), "/human", false, 3600)
    }

    fn pass(passes: &Passes, word: &PassGrant) -> Pass {
        let cookie = passes.issue(word, NOW, false).unwrap();
        passes.read(text_of(&cookie).as_bytes(), NOW).expect("it was issued a line ago")
    }

    fn text_of(cookie: &HeaderValue) -> String {
        let pair = cookie.to_str().unwrap().split(';').next().unwrap();
        pair.split_once('=').unwrap().1.to_owned()
    }

    fn account(name: &str) -> PassGrant {
        PassGrant::Account(name.to_owned())
    }

    #[test]
    fn a_challenge_solved_is_good_for_one_number() {
        let passes = passes();
        let (one, other) = (pass(&passes, &PassGrant::Once), pass(&passes, &PassGrant::Once));
        assert_eq!(passes.take(one, KIND, 1, NOW), PassUse::Number);
        assert_eq!(passes.take(one, KIND, 1, NOW), PassUse::Nothing);
        assert_eq!(passes.take(other, KIND, 1, NOW), PassUse::Number);
    }

    #[test]
    fn an_account_has_one_place_in_each_line_however_many_browsers_come_with_it() {
        let passes = passes();
        let own = pass(&passes, &account("4711"));
        assert_eq!(own, pass(&passes, &account("4711")));
        assert_ne!(own, pass(&passes, &account("4712")));
        assert_eq!(passes.take(own, KIND, 1, NOW), PassUse::Number);
        assert_eq!(passes.take(own, KIND, 1, NOW), PassUse::Later, "it is being drawn");
        passes.note(own, KIND, 1, PLACE, NOW);
        assert_eq!(passes.take(own, KIND, 1, NOW), PassUse::Place(PLACE));
        assert_eq!(passes.take(own, KindId(1), 1, NOW), PassUse::Number, "another line");
        assert_eq!(passes.take(own, KIND, 2, NOW), PassUse::Number, "a new one");
        assert_eq!(
            passes.take(own, KIND, 2, NOW + DRAWING),
            PassUse::Number,
            "the visitor who drew it was admitted at once"
        );
    }

    #[test]
    fn a_pass_ends() {
        let passes = passes();
        let once = text_of(&passes.issue(&PassGrant::Once, NOW, true).unwrap());
        assert!(passes.read(once.as_bytes(), NOW + ONCE_LIFE - 1).is_some());
        assert_eq!(passes.read(once.as_bytes(), NOW + ONCE_LIFE), None);
        let other = Passes::new(&Keys::fresh().unwrap(), "/human", false, 3600);
        assert_eq!(other.read(once.as_bytes(), NOW), None, "another site's");
    }

    #[test]
    fn the_way_back_is_kept_and_its_page_is_known() {
        let passes = passes();
        assert_eq!(passes.address("/buy?a=b&c"), "/human?back=%2Fbuy%3Fa%3Db%26c");
        assert!(passes.is_page("/human") && !passes.is_page("/human/x") && !passes.is_page("/"));
        let below = Passes::new(&Keys::fresh().unwrap(), "/human/", true, 3600);
        assert!(below.is_page("/human/x") && !below.is_page("/human"));
    }

    proptest! {
        #[test]
        fn nothing_but_a_pass_is_a_pass(at in 0_usize..sealed::text_len(BYTES), letter in any::<u8>(), name in "[ -~]{1,40}") {
            let passes = passes();
            let mut text = text_of(&passes.issue(&account(&name), NOW, false).unwrap()).into_bytes();
            let before = text[at];
            text[at] = letter;
            prop_assert_eq!(passes.read(&text, NOW).is_some(), letter == before);
        }

        #[test]
        fn any_bytes_are_met_without_a_stumble(text in prop::collection::vec(any::<u8>(), 0..90)) {
            prop_assert_eq!(passes().read(&text, NOW), None);
        }
    }
}
