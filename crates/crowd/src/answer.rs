//! Judges a response: whether it is what the step expects, which values to keep, and when to retry.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::{RETRY_AFTER, SET_COOKIE};
use suimon_workload::{Capture, Source, Step};

use crate::html::input_value;
use crate::jar::line_of;
use crate::trouble::Trouble;

/// A captured value that is longer counts as missing.
const VALUE_BYTES_MAX: usize = 8 * 1024;

/// A complete response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    /// If the step does not need it, at most the beginning of an error.
    pub(crate) body: Vec<u8>,
}

/// Why a response is not good, and how long it asks to wait, if it does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Refusal {
    pub(crate) trouble: Trouble,
    pub(crate) retry_after: Option<Duration>,
}

/// Returns whether judging a response to `step` needs its body.
pub(crate) fn needs_body(step: &Step) -> bool {
    let in_body = |capture: &Capture| !matches!(capture.source, Source::Header(_));
    !step.expect.texts.is_empty() || step.captures.iter().any(in_body)
}

impl Answer {
    /// Returns the values to keep, if the response is what `step` expects.
    ///
    /// # Errors
    /// Fails with what is wrong with the response.
    pub(crate) fn judge(&self, step: &Step) -> Result<Vec<(String, String)>, Refusal> {
        if !step.expect.allows(self.status) {
            return Err(self.refusal());
        }
        let text = String::from_utf8_lossy(&self.body);
        let plain = |trouble| Refusal { trouble, retry_after: None };
        if !step.expect.texts.iter().all(|wanted| text.contains(wanted)) {
            return Err(plain(Trouble::TextMissing));
        }
        let kept = |capture: &Capture| {
            let value = self.value(&capture.source, &text)?;
            (value.len() <= VALUE_BYTES_MAX).then(|| (capture.name.clone(), value.into_owned()))
        };
        let values: Option<Vec<_>> = step.captures.iter().map(kept).collect();
        values.ok_or_else(|| plain(Trouble::ValueMissing))
    }

    /// Returns how long it asks to wait.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        matches!(self.status, 429 | 503).then(|| retry_after(&self.headers)).flatten()
    }

    /// Returns whether it is a waiting page with a position: it sets a ticket cookie. A ticket
    /// cookie without a value removes an admitted visitor's ticket, and does not count.
    pub(crate) fn gives_place(&self) -> bool {
        let is_ticket = |cookie: &http::HeaderValue| {
            let pair = cookie.to_str().ok().and_then(|text| text.split(';').next()?.split_once('='));
            pair.is_some_and(|(name, value)| line_of(name).is_some() && !value.is_empty())
        };
        self.headers.get_all(SET_COOKIE).iter().any(is_ticket)
    }

    fn refusal(&self) -> Refusal {
        let retry_after = self.retry_after();
        let trouble = if retry_after.is_some() { Trouble::Refused } else { Trouble::Status(self.status) };
        Refusal { trouble, retry_after }
    }

    fn value<'a>(&'a self, source: &Source, text: &'a str) -> Option<Cow<'a, str>> {
        match source {
            Source::Between { after, before } => {
                let (_, rest) = text.split_once(after)?;
                Some(rest.split_once(before)?.0.into())
            }
            Source::Header(name) => Some(self.headers.get(name)?.to_str().ok()?.into()),
            Source::Input(name) => Some(input_value(text, name)?.into()),
        }
    }
}

/// Reads `Retry-After` in both its forms: seconds, and a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(secs) = text.parse::<u32>() {
        return Some(Duration::from_secs(secs.into()));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use suimon_workload::Expect;

    fn answer(status: u16, headers: &[(&'static str, &str)], body: &str) -> Answer {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, HeaderValue::from_str(value).unwrap());
        }
        Answer { status, headers: map, body: body.into() }
    }

    fn step(captures: &[(&str, Source)]) -> Step {
        let capture =
            |(name, source): &(&str, Source)| Capture { name: (*name).into(), source: source.clone() };
        Step {
            expect: Expect { statuses: vec![(200, 200)], texts: vec!["Hello".into()] },
            captures: captures.iter().map(capture).collect(),
            ..Step::get("s", "/")
        }
    }

    fn trouble(answer: &Answer, step: &Step) -> Trouble {
        answer.judge(step).unwrap_err().trouble
    }

    #[test]
    fn values_are_kept_from_body_and_headers() {
        let between = Source::Between { after: "id=".into(), before: ";".into() };
        let step = step(&[
            ("id", between),
            ("tag", Source::Header("ETag".into())),
            ("t", Source::Input("token".into())),
        ]);
        let page = "Hello id=7; <input name=token value='x&amp;y'>";
        let values = answer(200, &[("etag", "\"e\"")], page).judge(&step).unwrap();
        let wanted = [("id", "7"), ("tag", "\"e\""), ("t", "x&y")];
        assert_eq!(values, wanted.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(trouble(&answer(200, &[], page), &step), Trouble::ValueMissing);
        assert!(needs_body(&step) && !needs_body(&Step::get("a", "/")));
    }

    #[test]
    fn a_wrong_status_or_a_missing_text_is_trouble() {
        assert_eq!(trouble(&answer(404, &[], "Hello"), &step(&[])), Trouble::Status(404));
        assert_eq!(trouble(&answer(200, &[], "Bye"), &step(&[])), Trouble::TextMissing);
        assert_eq!(trouble(&answer(500, &[("retry-after", "3")], ""), &step(&[])), Trouble::Status(500));
    }

    #[test]
    fn refusals_say_when_to_come_again() {
        for status in [429, 503] {
            let refusal = answer(status, &[("retry-after", "7")], "").judge(&step(&[])).unwrap_err();
            assert_eq!(
                refusal,
                Refusal { trouble: Trouble::Refused, retry_after: Some(Duration::from_secs(7)) }
            );
        }
        let bare = answer(503, &[], "").judge(&step(&[])).unwrap_err();
        assert_eq!(bare, Refusal { trouble: Trouble::Status(503), retry_after: None });
        let rubbish = answer(503, &[("retry-after", "soon")], "").judge(&step(&[])).unwrap_err();
        assert_eq!(rubbish.retry_after, None);
    }

    #[test]
    fn a_retry_date_is_a_time_from_now() {
        let date = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(600));
        let wait =
            answer(503, &[("retry-after", &date)], "").judge(&step(&[])).unwrap_err().retry_after.unwrap();
        assert!((590..=600).contains(&wait.as_secs()), "{wait:?}");
        let past = answer(503, &[("retry-after", "Thu, 01 Jan 1970 00:00:00 GMT")], "").judge(&step(&[]));
        assert_eq!(past.unwrap_err().retry_after, Some(Duration::ZERO));
    }

    #[test]
    fn an_endless_value_is_no_value() {
        let step = step(&[("t", Source::Input("t".into()))]);
        let page = format!("Hello <input name=t value={}>", "x".repeat(VALUE_BYTES_MAX + 1));
        assert_eq!(trouble(&answer(200, &[], &page), &step), Trouble::ValueMissing);
    }
}
