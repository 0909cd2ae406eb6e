//! What holds for clients that use HTTPS, and what all answers carry.

use http::header::{HeaderName, HeaderValue};
use std::time::Duration;

/// What holds for clients that use HTTPS, whether TLS ends here or at a trusted proxy.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HttpsParams {
    /// Whether requests by plain HTTP are sent to HTTPS.
    pub redirect: bool,
    /// The host that they are sent to. `None`: the one that was asked for.
    pub redirect_host: Option<String>,
    /// The port that they are sent to. `None`: that of the TLS listener where clients reach the
    /// plain one at its own port, else 443.
    pub redirect_port: Option<u16>,
    /// What browsers are told by `Strict-Transport-Security`. `None`: nothing.
    pub hsts: Option<Hsts>,
}

/// HTTP Strict Transport Security (RFC 6797): browsers come by HTTPS alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hsts {
    /// For how long. Zero: no longer.
    pub max_age: Duration,
    /// Whether it holds for all hosts below this one.
    pub subdomains: bool,
    /// Whether browsers may be shipped with it.
    pub preload: bool,
}

impl Hsts {
    /// The least time with which browsers are shipped.
    pub const PRELOAD_LEAST: Duration = Duration::from_secs(31_536_000);

    /// Returns the header's value.
    pub fn value(&self) -> HeaderValue {
        let subdomains = if self.subdomains { "; includeSubDomains" } else { "" };
        let preload = if self.preload { "; preload" } else { "" };
        let text = format!("max-age={}{subdomains}{preload}", self.max_age.as_secs());
        HeaderValue::try_from(text).expect("digits and words")
    }
}

/// A header that answers carry unless they have one of its name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResponseHeader {
    /// Its name.
    pub name: HeaderName,
    /// Its value.
    pub value: HeaderValue,
}

/// Headers that frame a message, belong to one connection, say what a body is, how it may be stored
/// or who somebody is: what is true of one answer is not true of all.
const NEVER: &[&str] = &[
    "age",
    "allow",
    "cache-control",
    "cdn-cache-control",
    "connection",
    "date",
    "etag",
    "expires",
    "keep-alive",
    "last-modified",
    "location",
    "pragma",
    "proxy-authenticate",
    "proxy-connection",
    "proxy-status",
    "retry-after",
    "set-cookie",
    "surrogate-control",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "vary",
    "www-authenticate",
    "x-request-id",
];
/// Likewise, whatever follows; and what is between gateway and application, or of a protocol above.
const NEVER_PREFIXES: &[&str] = &["content-", "grpc-", "sec-websocket-", "suimon-", "suimon_"];
/// Of those, the ones that say what a browser may do with a page.
const POLICIES: &[&str] = &["content-security-policy", "content-security-policy-report-only"];

impl ResponseHeader {
    /// The most of them.
    pub const MOST: usize = 32;

    /// Returns the header that `text` says, such as `X-Content-Type-Options: nosniff`.
    ///
    /// # Errors
    /// What would be allowed; reads on from "must be".
    pub fn parse(text: &str) -> Result<ResponseHeader, String> {
        let form = || "a name, a colon and a value, such as \"X-Content-Type-Options: nosniff\"".to_owned();
        let (name, value) = text.split_once(':').ok_or_else(form)?;
        let name = HeaderName::try_from(name).map_err(|_| form())?;
        let value = value.trim();
        if value.is_empty() || !value.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) {
            return Err(form());
        }
        let value = HeaderValue::try_from(value).map_err(|_| form())?;
        let own = name.as_str();
        if own == "strict-transport-security" {
            return Err("another header: https.hsts is the setting for this one".to_owned());
        }
        let is_never = NEVER.contains(&own) || NEVER_PREFIXES.iter().any(|prefix| own.starts_with(prefix));
        if is_never && !POLICIES.contains(&own) {
            return Err(format!(
                "another header: what {own} says is true of one answer and not of all, so it is for the application to send"
            ));
        }
        Ok(ResponseHeader { name, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_a_name_and_a_value() {
        let header = ResponseHeader::parse("X-Content-Type-Options:  nosniff ").expect("a header");
        assert_eq!(
            (header.name.as_str(), header.value.as_bytes()),
            ("x-content-type-options", &b"nosniff"[..])
        );
        let policy = ResponseHeader::parse("Content-Security-Policy: default-src https:; img-src *");
        assert_eq!(policy.map(|it| it.value), Ok(HeaderValue::from_static("default-src https:; img-src *")));
        for wrong in ["nosniff", "X Y: z", ": z", "X-Y:", "X-Y: a\r\nSet-Cookie: b", "X-Y: a\u{7f}", "X-Y: ü"]
        {
            let refused = ResponseHeader::parse(wrong).expect_err(wrong);
            assert!(refused.starts_with("a name, a colon and a value"), "{wrong}: {refused}");
        }
    }

    #[test]
    fn what_is_true_of_one_answer_alone_is_no_header_of_all() {
        for wrong in ["Content-Length: 3", "Set-Cookie: a=b", "cache-control: public", "Suimon-Session: x"] {
            let refused = ResponseHeader::parse(wrong).expect_err(wrong);
            assert!(refused.starts_with("another header: what "), "{wrong}: {refused}");
        }
        let refused =
            ResponseHeader::parse("Strict-Transport-Security: max-age=1").expect_err("has a setting");
        assert!(refused.contains("https.hsts"), "{refused}");
    }

    #[test]
    fn browsers_are_told_in_the_words_of_the_standard() {
        let hsts = |subdomains, preload| Hsts { max_age: Hsts::PRELOAD_LEAST, subdomains, preload }.value();
        assert_eq!(hsts(false, false), "max-age=31536000");
        assert_eq!(hsts(true, false), "max-age=31536000; includeSubDomains");
        assert_eq!(hsts(true, true), "max-age=31536000; includeSubDomains; preload");
    }
}
