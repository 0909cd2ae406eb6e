//! Who may reach what: whoever shows the token or a certificate, or is on this machine where nothing
//! is asked for, has all of it; others have what is public.

use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// The least characters of a token.
pub const TOKEN_CHARS_MIN: usize = 32;
/// How long whoever sends a wrong token waits for an answer.
pub(crate) const WRONG_TOKEN_DELAY: Duration = Duration::from_millis(500);
/// The least time between two words in the log about wrong tokens.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// What is asked of those who reach the listener.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AccessParams {
    /// The file of the token; `None`: no token is asked for.
    pub token_file: Option<PathBuf>,
    /// Paths that are answered to everybody.
    pub public: Vec<String>,
    /// Whether those on this machine need nothing: so where neither token nor certificate is asked
    /// for.
    pub trusts_loopback: bool,
}

/// Who may reach what.
#[derive(Debug, Default)]
pub struct Access {
    params: AccessParams,
    token: RwLock<Option<Token>>,
    refused: [AtomicU64; Denied::ALL.len()],
    warned: Mutex<Option<Instant>>,
}

/// A secret, which is never shown.
pub struct Token(Vec<u8>);

/// Who sends a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Peer {
    /// The address; `None`: somebody who could open the Unix socket.
    pub(crate) address: Option<IpAddr>,
    /// Whether a certificate was shown that the settings trust.
    pub(crate) is_certified: bool,
}

/// Why a request is not answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Denied {
    /// It shows nothing, and must.
    Nothing,
    /// It shows a wrong token.
    WrongToken,
    /// It is from another machine, and nothing could be shown.
    Elsewhere,
    /// It is a command that a web page from elsewhere may have sent.
    Page,
}

impl Denied {
    /// Every reason there is.
    pub(crate) const ALL: [Denied; 4] =
        [Denied::Nothing, Denied::WrongToken, Denied::Elsewhere, Denied::Page];

    /// Returns the short name in metrics; it never changes.
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Denied::Nothing => "no_token",
            Denied::WrongToken => "wrong_token",
            Denied::Elsewhere => "not_local",
            Denied::Page => "web_page",
        }
    }
}

impl Access {
    /// Returns the access that the parameters describe.
    ///
    /// # Errors
    /// A sentence about a token file that cannot be used.
    pub fn load(params: AccessParams) -> Result<Access, String> {
        let access = Access { params, ..Access::default() };
        access.use_token(access.read_token()?);
        Ok(access)
    }

    /// Returns the token that is in the file now, if there is a file.
    ///
    /// # Errors
    /// A sentence about a token file that cannot be used.
    pub fn read_token(&self) -> Result<Option<Token>, String> {
        self.params.token_file.as_deref().map(Token::read).transpose()
    }

    /// Asks for this token from now on.
    pub fn use_token(&self, token: Option<Token>) {
        *self.token.write().unwrap_or_else(PoisonError::into_inner) = token;
    }

    /// Returns whether there is a token that would be taken.
    pub(crate) fn asks_for_token(&self) -> bool {
        self.params.token_file.is_some()
    }

    /// Returns why a request is not answered, if it is not.
    pub(crate) fn check(&self, peer: Peer, path: &str, headers: &HeaderMap) -> Result<(), Denied> {
        if peer.address.is_none() || peer.is_certified {
            return Ok(());
        }
        let is_local = peer.address.is_some_and(|address| address.to_canonical().is_loopback());
        if self.params.trusts_loopback && is_local {
            return Ok(());
        }
        let shown = shown(headers);
        if let Some(shown) = &shown
            && let Some(token) = &*self.token.read().unwrap_or_else(PoisonError::into_inner)
        {
            return if token.is(shown) { Ok(()) } else { Err(Denied::WrongToken) };
        }
        if self.params.public.iter().any(|public| public == path) {
            return Ok(());
        }
        Err(if self.params.trusts_loopback { Denied::Elsewhere } else { Denied::Nothing })
    }

    /// Counts a request that is not answered, and says so in the log now and then.
    pub(crate) fn note(&self, denied: Denied, peer: Peer) {
        self.refused[denied as usize].fetch_add(1, Relaxed);
        if denied != Denied::WrongToken {
            return;
        }
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.is_none_or(|at| at.elapsed() >= WARN_EVERY) {
            *warned = Some(Instant::now());
            let peer = peer.address.map_or_else(|| "a Unix socket".to_owned(), |address| address.to_string());
            tracing::warn!(
                "the admin listener refused a wrong token from {peer}; more are counted in suimon_admin_refused_requests_total, and told once a minute"
            );
        }
    }

    /// Returns how many requests were not answered, by reason.
    pub(crate) fn refused(&self) -> [(&'static str, u64); Denied::ALL.len()] {
        Denied::ALL.map(|denied| (denied.code(), self.refused[denied as usize].load(Relaxed)))
    }
}

impl Token {
    fn read(path: &Path) -> Result<Token, String> {
        let name = path.display();
        let wrong = |why: String| format!("admin.token_file: {name}: {why}");
        let found = fs::metadata(path).map_err(|error| wrong(error.to_string()))?;
        if found.mode() & 0o007 != 0 {
            return Err(wrong(format!(
                "others may read or write it (mode {:04o}); take that away: chmod o-rwx {name}",
                found.mode() & 0o7777
            )));
        }
        let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        let token = text.trim();
        if token.chars().count() < TOKEN_CHARS_MIN || !token.chars().all(|it| it.is_ascii_graphic()) {
            return Err(wrong(format!(
                "must hold one token of at least {TOKEN_CHARS_MIN} printed ASCII characters without spaces, such as `openssl rand -hex 32` makes"
            )));
        }
        Ok(Token(token.as_bytes().to_vec()))
    }

    /// Returns whether `shown` is this token, in a time that says nothing but its length.
    fn is(&self, shown: &[u8]) -> bool {
        let pairs = self.0.iter().zip(shown);
        let differs = pairs.fold(0, |differs, (own, other)| std::hint::black_box(differs | (own ^ other)));
        self.0.len() == shown.len() && differs == 0
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

/// Returns the token that a request shows: as a bearer, or as the password that a browser asks for.
fn shown(headers: &HeaderMap) -> Option<Vec<u8>> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let space = value.iter().position(|byte| *byte == b' ')?;
    let (scheme, rest) = (&value[..space], value[space..].trim_ascii());
    if scheme.eq_ignore_ascii_case(b"bearer") {
        return Some(rest.to_vec());
    }
    if !scheme.eq_ignore_ascii_case(b"basic") {
        return None;
    }
    let pair = STANDARD.decode(rest).ok()?;
    let colon = pair.iter().position(|byte| *byte == b':')?;
    Some(pair[colon + 1..].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use std::os::unix::fs::PermissionsExt;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    fn file(text: &str, mode: u32) -> (tempfile::TempDir, AccessParams) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let params = AccessParams { token_file: Some(path), ..AccessParams::default() };
        (folder, params)
    }

    fn headers(authorization: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(value) = authorization {
            headers.insert(header::AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    fn peer(address: &str) -> Peer {
        Peer { address: Some(address.parse().unwrap()), is_certified: false }
    }

    #[test]
    fn a_token_must_be_long_and_nobody_elses_to_read() {
        for (text, mode, part) in [
            (TOKEN, 0o644, "chmod o-rwx"),
            ("short", 0o600, "at least 32"),
            ("0123456789abcdef 0123456789abcdef", 0o600, "without spaces"),
            ("", 0o600, "at least 32"),
        ] {
            let (_folder, params) = file(text, mode);
            let why = Access::load(params).unwrap_err();
            assert!(why.contains(part) && !why.contains("0123456789"), "{why}");
        }
        let (_folder, params) = file(&format!("{TOKEN}\n"), 0o640);
        let access = Access::load(params.clone()).unwrap();
        assert!(!format!("{access:?}").contains(TOKEN));
        let next = "f".repeat(40);
        fs::write(params.token_file.unwrap(), &next).unwrap();
        let bearer = |token: &str| headers(Some(&format!("Bearer {token}")));
        assert_eq!(access.check(peer("10.0.0.1"), "/", &bearer(TOKEN)), Ok(()));
        access.use_token(access.read_token().unwrap());
        assert_eq!(access.check(peer("10.0.0.1"), "/", &bearer(TOKEN)), Err(Denied::WrongToken));
        assert_eq!(access.check(peer("10.0.0.1"), "/", &bearer(&next)), Ok(()));
    }

    #[test]
    fn with_a_token_everybody_needs_it_but_for_what_is_public_and_on_a_socket() {
        let (_folder, mut params) = file(TOKEN, 0o600);
        params.public = vec!["/metrics".to_owned()];
        let access = Access::load(params).unwrap();
        let basic = format!("Basic {}", STANDARD.encode(format!("anna:{TOKEN}")));
        for (shown, wanted) in [
            (None, Err(Denied::Nothing)),
            (Some("Bearer 0123456789abcdef0123456789abcdeX"), Err(Denied::WrongToken)),
            (Some("Bearer 0123456789abcdef0123456789abcde"), Err(Denied::WrongToken)),
            (Some("Bearer 0123456789abcdef0123456789abcdef0"), Err(Denied::WrongToken)),
            (Some("Bearer"), Err(Denied::Nothing)),
            (Some("Digest 0123456789abcdef0123456789abcdef"), Err(Denied::Nothing)),
            (Some(&*format!("bearer  {TOKEN}")), Ok(())),
            (Some(&*basic), Ok(())),
        ] {
            for address in ["127.0.0.1", "10.0.0.1"] {
                assert_eq!(access.check(peer(address), "/api/state", &headers(shown)), wanted, "{shown:?}");
            }
        }
        assert_eq!(access.check(peer("10.0.0.1"), "/metrics", &headers(None)), Ok(()));
        let wrong = headers(Some("Bearer x"));
        assert_eq!(access.check(peer("10.0.0.1"), "/metrics", &wrong), Err(Denied::WrongToken));
        let socket = Peer { address: None, is_certified: false };
        assert_eq!(access.check(socket, "/api/state", &headers(None)), Ok(()));
        let certified = Peer { is_certified: true, ..peer("10.0.0.1") };
        assert_eq!(access.check(certified, "/api/state", &headers(None)), Ok(()));
    }

    #[test]
    fn where_nothing_is_asked_for_this_machine_has_all_and_others_what_is_public() {
        let public = vec!["/healthz".to_owned()];
        let params = AccessParams { token_file: None, public, trusts_loopback: true };
        let access = Access::load(params).unwrap();
        let none = headers(None);
        for (address, path, wanted) in [
            ("127.0.0.1", "/api/state", Ok(())),
            ("::1", "/api/state", Ok(())),
            ("::ffff:127.0.0.1", "/api/state", Ok(())),
            ("10.0.0.1", "/api/state", Err(Denied::Elsewhere)),
            ("10.0.0.1", "/healthz", Ok(())),
            ("10.0.0.1", "/healthz/", Err(Denied::Elsewhere)),
        ] {
            assert_eq!(access.check(peer(address), path, &none), wanted, "{address} {path}");
        }
        access.note(Denied::Elsewhere, peer("10.0.0.1"));
        assert_eq!(access.refused()[2], ("not_local", 1));
    }
}
