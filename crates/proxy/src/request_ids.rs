//! What a request is called: by the proxy in front of us, if that is trusted, else by us.

use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use suimon_message::peer::Peer;

pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The longest id that is taken from a proxy.
const GIVEN_BYTES_MAX: usize = 128;

/// Returns what a trusted proxy calls a request, if that can stand in a log: letters, digits and
/// `-_.:/+=@`.
pub(crate) fn given(peer: &Peer, headers: &HeaderMap) -> Option<HeaderValue> {
    if !peer.is_trusted() {
        return None;
    }
    headers.get(X_REQUEST_ID).filter(|id| is_fit(id.as_bytes())).cloned()
}

fn is_fit(id: &[u8]) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:/+=@".contains(byte);
    (1..=GIVEN_BYTES_MAX).contains(&id.len()) && id.iter().all(is_plain)
}

/// Returns an id that no other request has: 32 hexadecimal digits.
pub(crate) fn fresh() -> HeaderValue {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let number = u128::from(random()) << 64 | u128::from(random());
    // Without the machinery of format!, which no other request needs in its caches.
    let id: [u8; 32] = std::array::from_fn(|at| DIGITS[(number >> (124 - 4 * at)) as usize & 0xf]);
    HeaderValue::from_bytes(&id).expect("digits are visible ASCII")
}

/// Returns an id as text.
pub(crate) fn text(id: &HeaderValue) -> &str {
    id.to_str().unwrap_or_default()
}

/// Returns a number that nobody can foretell: numbers in their order under a keyed hash, whose key
/// the system's random numbers make at the start. To name things, not to guard them.
pub(crate) fn random() -> u64 {
    static KEY: OnceLock<RandomState> = OnceLock::new();
    static NEXT: AtomicU64 = AtomicU64::new(0);
    KEY.get_or_init(RandomState::new).hash_one(NEXT.fetch_add(1, Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ids_are_of_digits_and_no_two_are_equal() {
        let ids: BTreeSet<String> = (0..1000).map(|_| text(&fresh()).to_owned()).collect();
        assert_eq!(ids.len(), 1000);
        assert!(ids.iter().all(|id| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())));
    }

    #[test]
    fn only_trusted_proxies_give_ids_and_only_ids_that_are_fit_for_a_log() {
        let trusted = [suimon_params::Network { address: [10, 0, 0, 1].into(), prefix: 32 }].into();
        let (proxy, stranger) = (
            Peer::new([10, 0, 0, 1].into(), false, &trusted),
            Peer::new([10, 0, 0, 2].into(), false, &trusted),
        );
        let asked = |peer: &Peer, id: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(X_REQUEST_ID, HeaderValue::try_from(id).unwrap());
            given(peer, &headers).map(|id| text(&id).to_owned())
        };
        assert_eq!(asked(&proxy, "a-1_b.c:d/e+f=@"), Some("a-1_b.c:d/e+f=@".to_owned()));
        assert_eq!(asked(&stranger, "a-1"), None);
        for unfit in ["", "two words", "quote\"", "<b>", &"x".repeat(GIVEN_BYTES_MAX + 1)] {
            assert_eq!(asked(&proxy, unfit), None, "{unfit}");
        }
    }
}
