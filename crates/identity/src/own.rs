//! The cookies and headers of ours beside leases, tickets and passes: their names.

use http::header::HeaderName;

/// Carries a ticket where there are no cookies.
pub const TICKET: HeaderName = HeaderName::from_static("suimon-ticket");

/// The language that a visitor has chosen.
pub const LANGUAGE_COOKIE: &str = "suimon-language";
/// That the page must not poll by itself.
pub const REFRESH_COOKIE: &str = "suimon-refresh";
/// For a moment: that a code was wrong.
pub const CODE_COOKIE: &str = "suimon-code";
/// How often a page has been retried automatically.
pub const TRIES_COOKIE: &str = "suimon-tries";
/// The cookies that keep a visitor's choices.
pub const CHOICE_COOKIES: [&str; 4] = [LANGUAGE_COOKIE, REFRESH_COOKIE, CODE_COOKIE, TRIES_COOKIE];
