//! The cookies and headers of ours beside leases, tickets and passes: their names.

use http::header::HeaderName;

/// Carries a ticket where there are no cookies.
pub const PLACE: HeaderName = HeaderName::from_static("suimon-place");

/// The language that a visitor has chosen.
pub const LANGUAGE_COOKIE: &str = "suimon-language";
/// That the page is not to look again by itself.
pub const REFRESH_COOKIE: &str = "suimon-refresh";
/// For a moment: that a code was none.
pub const CODE_COOKIE: &str = "suimon-code";
/// How often a page has tried again by itself.
pub const TRIES_COOKIE: &str = "suimon-tries";
/// The cookies by which a visitor's choices are known.
pub const CHOICE_COOKIES: [&str; 4] = [LANGUAGE_COOKIE, REFRESH_COOKIE, CODE_COOKIE, TRIES_COOKIE];
