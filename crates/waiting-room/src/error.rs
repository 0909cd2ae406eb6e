//! The error page for people where the application gives no page: what has happened, in their
//! language, and what they may do. It looks like the waiting page, and needs no script.

use super::page::{ICON, Pages, source_hash};
use super::template::{Template, Value, Values};
use super::texts::Texts;
use super::{look::Appearance, strip};
use http::HeaderValue;
use http::header::{ACCEPT_LANGUAGE, COOKIE, HeaderMap};
use suimon_identity::own::{LANGUAGE_COOKIE, REFRESH_COOKIE, TRIES_COOKIE};
use suimon_message::accept;

const HTML: &str = include_str!("../pages/error.html");

/// A page that may be requested again reloads by itself after this many seconds, then twice as
/// many, and so on, ...
const RELOAD_MIN: u64 = 10;
/// ... up to this many.
const RELOAD_MAX: u64 = 160;

/// What has happened, in the words for visitors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorTopic {
    /// More visitors have come than can be served.
    Busy,
    /// The gateway is shutting down, and another will take its place.
    Restart,
    /// The application was not reached.
    Away,
    /// The application was reached, and did not answer.
    Unsure,
    /// What was sent is too large.
    Large,
    /// The head is, because of the browser's cookies.
    Cookies,
    /// The address is too long.
    Address,
    /// What was sent did not arrive.
    Slow,
    /// Anything else that was wrong with it.
    Bad,
}

impl ErrorDetails<'_> {
    /// The fewest seconds that a page says: of the languages some would need another word for one
    /// second than for several. The `Retry-After` of a page is no shorter either, so that both say
    /// the same.
    pub const RETRY_LEAST: u64 = 2;
}

impl ErrorTopic {
    /// All of them.
    pub(crate) const ALL: [ErrorTopic; 9] = [
        ErrorTopic::Busy,
        ErrorTopic::Restart,
        ErrorTopic::Away,
        ErrorTopic::Unsure,
        ErrorTopic::Large,
        ErrorTopic::Cookies,
        ErrorTopic::Address,
        ErrorTopic::Slow,
        ErrorTopic::Bad,
    ];

    /// Returns its name, as the languages' files have it.
    pub(crate) fn key(self) -> &'static str {
        match self {
            ErrorTopic::Busy => "busy",
            ErrorTopic::Restart => "restart",
            ErrorTopic::Away => "away",
            ErrorTopic::Unsure => "unsure",
            ErrorTopic::Large => "large",
            ErrorTopic::Cookies => "cookies",
            ErrorTopic::Address => "address",
            ErrorTopic::Slow => "slow",
            ErrorTopic::Bad => "bad",
        }
    }
}

/// What a browser says of the languages and forms it wants. Shares the memory of the request's
/// head.
#[derive(Clone, Default, Debug)]
pub struct BrowserPreferences {
    language: Option<HeaderValue>,
    cookies: Option<HeaderValue>,
}

/// What a page says beside what has happened.
#[derive(Clone, Copy, Debug)]
pub struct ErrorDetails<'a> {
    /// The reason's name, for people who are asked about it.
    pub code: &'a str,
    /// Seconds after which it is worth trying again, if it is; a page says no fewer than
    /// [`ErrorDetails::RETRY_LEAST`].
    pub retry_seconds: Option<u64>,
    /// Whether the same address may be requested again: nothing was sent to it.
    pub may_reload: bool,
}

/// A page, and what goes with it.
#[derive(Clone, Debug)]
pub struct ErrorPage {
    pub text: String,
    pub policy: HeaderValue,
    /// How often this browser has been asked to retry automatically.
    pub tries: Option<HeaderValue>,
}

/// The pages, in all languages.
#[derive(Debug)]
pub(crate) struct ErrorPages {
    languages: Vec<(Template, Texts)>,
    policy: HeaderValue,
}

impl BrowserPreferences {
    /// Returns what the head says.
    pub fn of(headers: &HeaderMap) -> Self {
        BrowserPreferences {
            language: headers.get(ACCEPT_LANGUAGE).cloned(),
            cookies: headers.get(COOKIE).cloned(),
        }
    }

    /// Returns what a visitor who reads this language sends.
    pub(crate) fn language(tag: &str) -> Self {
        BrowserPreferences { language: HeaderValue::from_str(tag).ok(), cookies: None }
    }

    fn cookie(&self, name: &str) -> Option<&str> {
        super::answer::cookie_in(self.cookies.as_ref()?.to_str().ok()?, name)
    }

    fn index(&self, pages: &Pages) -> usize {
        let chosen = self.cookie(LANGUAGE_COOKIE).and_then(|tag| pages.language(tag));
        chosen.unwrap_or_else(|| {
            let mut headers = HeaderMap::with_capacity(1);
            headers.extend(self.language.clone().map(|wanted| (ACCEPT_LANGUAGE, wanted)));
            accept::language(&headers, pages.tags())
        })
    }
}

impl ErrorPages {
    /// Returns the pages of a site that looks like this.
    pub(crate) fn new(look: &Appearance, all: Vec<Texts>, style: &str, colours: &str) -> ErrorPages {
        let template = Template::new(&strip::html(HTML));
        let languages = all.into_iter().map(|words| {
            let values = Values::from([
                ("lang", Value::text(words.tag)),
                ("rtl", Value::Flag(words.is_rtl)),
                ("style", Value::raw(style)),
                ("colours", Value::raw(colours)),
                ("base", Value::text(look.base.as_str())),
                ("icon", look.logo.as_deref().map_or(Value::raw(ICON), Value::text)),
                ("logo", Value::text(look.logo.as_deref().unwrap_or_default())),
                ("site_name", Value::text(look.name.as_str())),
                ("reference", Value::text(words.error("reference", 0))),
                ("stop", Value::text(words.error("stop", 0))),
            ]);
            (template.with(&values), words)
        });
        let own_picture = if look.logo.is_some() { " 'self'" } else { "" };
        let of_colours =
            if colours.is_empty() { String::new() } else { format!(" {}", source_hash(colours)) };
        let policy = format!(
            "default-src 'none'; style-src {}{of_colours}; img-src data:{own_picture}; form-action 'none'; base-uri 'none'; frame-ancestors 'self'",
            source_hash(style)
        );
        ErrorPages {
            languages: languages.collect(),
            policy: HeaderValue::try_from(policy).expect("hashes and our own words are visible ASCII"),
        }
    }
}

impl Pages {
    /// Returns the page that says what has happened.
    pub fn error(
        &self,
        speaks: &BrowserPreferences,
        trouble: ErrorTopic,
        particulars: &ErrorDetails<'_>,
    ) -> ErrorPage {
        let ErrorDetails { code, retry_seconds, may_reload } = *particulars;
        let pages = &self.errors;
        let (template, words) = &pages.languages[speaks.index(self).min(pages.languages.len() - 1)];
        let key = trouble.key();
        let tries = speaks.cookie(TRIES_COOKIE).and_then(|tries| tries.parse().ok()).unwrap_or(0_u32);
        // Never at once, and the less often the longer it lasts; and not for visitors who have
        // stopped it.
        let reload = retry_seconds
            .filter(|_| {
                may_reload && self.has_internal_endpoints && speaks.cookie(REFRESH_COOKIE) != Some("off")
            })
            .map(|seconds| seconds.max(RELOAD_MIN << tries.min(4)).min(RELOAD_MAX.max(seconds)));
        let when = match (reload, retry_seconds) {
            (Some(reload), _) => words.error("by_itself", 0).replace("{n}", &reload.to_string()),
            (None, Some(retry)) => {
                let seconds = retry.max(ErrorDetails::RETRY_LEAST);
                words.error("later", 0).replace("{n}", &seconds.to_string())
            }
            (None, None) => String::new(),
        };
        let home = format!("{}/", self.base);
        let (link, go) = match trouble {
            ErrorTopic::Address | ErrorTopic::Bad => (home.as_str(), words.error("home", 0)),
            // The same address.
            _ if may_reload => ("", words.error("now", 0)),
            _ => ("", ""),
        };
        let reload_text = reload.map(|seconds| seconds.to_string()).unwrap_or_default();
        let text = template.fill(&Values::from([
            ("heading", Value::text(words.error(key, 0))),
            ("lead", Value::text(words.error(key, 1))),
            ("when", Value::text(when)),
            ("link", Value::text(link)),
            ("go", Value::text(go)),
            ("reload", Value::raw(reload_text)),
            ("code", Value::text(code)),
        ]));
        let tries = reload.map(|seconds| {
            let (tries, life) = (tries.saturating_add(1).min(9), 3 * seconds);
            let text = format!("{TRIES_COOKIE}={tries}; Path=/; Max-Age={life}; HttpOnly; SameSite=Lax");
            HeaderValue::try_from(text).expect("numbers are visible ASCII")
        });
        ErrorPage { text, policy: pages.policy.clone(), tries }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages() -> Pages {
        Pages::new(
            &Appearance {
                name: "Riverside Tickets".to_owned(),
                logo: Some("/logo.svg".to_owned()),
                ..Appearance::default()
            },
            true,
        )
    }

    fn speaks(language: &'static str, cookies: &'static str) -> BrowserPreferences {
        BrowserPreferences {
            language: Some(HeaderValue::from_static(language)),
            cookies: Some(HeaderValue::from_static(cookies)),
        }
    }

    const LATER: ErrorDetails<'_> =
        ErrorDetails { code: "connect", retry_seconds: Some(5), may_reload: true };

    #[test]
    fn every_trouble_is_told_in_every_language_without_a_place_left() {
        let pages = pages();
        for tag in pages.tags() {
            for trouble in ErrorTopic::ALL {
                let page = pages.error(&speaks(tag, ""), trouble, &LATER).text;
                assert!(page.contains(&format!("<html lang={tag}")), "{page}");
                assert!(
                    !page.contains("{{") && !page.contains("{n}") && !page.contains("<h1></h1>"),
                    "{page}"
                );
                assert!(page.contains("Riverside Tickets") && page.contains("/logo.svg"), "{page}");
                assert!(page.contains("<bdi>connect</bdi>"), "{page}");
            }
        }
    }

    #[test]
    fn below_a_base_path_all_links_of_a_page_stay() {
        let pages = Pages::new(&Appearance { base: "/shop".to_owned(), ..Appearance::default() }, true);
        let page = |trouble| pages.error(&speaks("en", ""), trouble, &LATER).text;
        let away = page(ErrorTopic::Away);
        assert!(away.contains("href=\"/shop/.well-known/suimon/refresh?off\""), "{away}");
        let bad = page(ErrorTopic::Bad);
        assert!(bad.contains("href=\"/shop/\""), "{bad}");
    }

    #[test]
    fn a_page_tries_again_by_itself_less_and_less_often_and_not_where_it_is_stopped() {
        let pages = pages();
        let reload = |cookies| {
            let page = pages.error(&speaks("en", cookies), ErrorTopic::Away, &LATER);
            let (_, rest) = page.text.split_once("http-equiv=refresh content=")?;
            assert!(page.text.contains("/.well-known/suimon/refresh?off"), "{}", page.text);
            Some((
                rest.split('>').next()?.to_owned(),
                page.tries?.to_str().ok()?.split(';').next()?.to_owned(),
            ))
        };
        let of = |seconds: &str, tries: &str| Some((seconds.to_owned(), format!("suimon-tries={tries}")));
        assert_eq!(reload(""), of("10", "1"));
        assert_eq!(reload("a=b; suimon-tries=1"), of("20", "2"));
        assert_eq!(reload("suimon-tries=9"), of("160", "9"));
        assert_eq!(reload("suimon-refresh=off"), None);
        let posted = ErrorDetails { may_reload: false, ..LATER };
        let page = pages.error(&speaks("en", ""), ErrorTopic::Away, &posted);
        assert!(!page.text.contains("refresh") && page.tries.is_none(), "a form is not sent twice unasked");
        assert!(page.text.contains("Please try again in about 5 seconds."), "{}", page.text);
        let soon = ErrorDetails { retry_seconds: Some(1), ..posted };
        let page = pages.error(&speaks("en", ""), ErrorTopic::Away, &soon);
        assert!(
            page.text.contains("in about 2 seconds."),
            "no language has to say one second: {}",
            page.text
        );
    }
}
