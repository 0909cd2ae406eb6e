//! Builds a request from a step and the values captured so far.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, COOKIE, HOST, HeaderName, HeaderValue, USER_AGENT};
use http::{Method, Request, Uri};
use http_body_util::Full;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use suimon_model::Instant;
use suimon_workload::{Body, Step, Template};

use crate::jar::Jar;
use crate::target::BaseUrl;
use crate::trouble::Trouble;

/// What placeholders stand for.
pub(crate) type Values = BTreeMap<String, String>;

/// Everything but RFC 3986's unreserved characters.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

const OUR_NAME: &str = concat!("suimon-crowd/", env!("CARGO_PKG_VERSION"));

/// Returns the request of `step`.
///
/// # Errors
/// Fails if a value is missing, or cannot be part of a request.
pub(crate) fn request(
    step: &Step,
    base: &BaseUrl,
    values: &Values,
    jar: &mut Jar,
    now: Instant,
) -> Result<Request<Full<Bytes>>, Trouble> {
    let path = base.prefix.clone() + &filled(&step.path, values, encode)?;
    let cookies = jar.header(&path, now);
    let (body, content_type) = match &step.body {
        Body::None => (Bytes::new(), None),
        Body::Form(fields) => (form(fields, values)?, Some("application/x-www-form-urlencoded")),
        Body::Raw { content_type, text } => {
            (filled(text, values, verbatim)?.into(), Some(content_type.as_str()))
        }
    };
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = Method::from_bytes(step.method.as_bytes()).map_err(|_| Trouble::Unaskable)?;
    *request.uri_mut() = path.parse::<Uri>().map_err(|_| Trouble::Unaskable)?;
    let headers = request.headers_mut();
    headers.insert(HOST, base.host_header.clone());
    headers.insert(USER_AGENT, HeaderValue::from_static(OUR_NAME));
    headers.insert(ACCEPT, HeaderValue::from_static("text/html,application/xhtml+xml,*/*;q=0.8"));
    if let Some(content_type) = content_type {
        headers.insert(CONTENT_TYPE, HeaderValue::from_str(content_type).map_err(|_| Trouble::Unaskable)?);
    }
    if let Some(cookies) = cookies {
        headers.insert(COOKIE, cookies);
    }
    for (name, value) in &step.headers {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| Trouble::Unaskable)?;
        let value = filled(value, values, verbatim)?;
        headers.insert(name, HeaderValue::from_str(&value).map_err(|_| Trouble::Unaskable)?);
    }
    Ok(request)
}

fn form(fields: &[(String, Template)], values: &Values) -> Result<Bytes, Trouble> {
    let mut out = String::new();
    for (name, value) in fields {
        if !out.is_empty() {
            out.push('&');
        }
        encode(name, &mut out);
        out.push('=');
        encode(&filled(value, values, verbatim)?, &mut out);
    }
    Ok(out.into())
}

fn filled(template: &Template, values: &Values, encode: fn(&str, &mut String)) -> Result<String, Trouble> {
    template.fill(|name| values.get(name).map(String::as_str), encode).map_err(|_| Trouble::ValueMissing)
}

fn encode(value: &str, out: &mut String) {
    out.extend(utf8_percent_encode(value, ENCODED));
}

fn verbatim(value: &str, out: &mut String) {
    out.push_str(value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    fn ask(step: &Step, values: &[(&str, &str)]) -> Result<(Request<()>, String), Trouble> {
        let base = BaseUrl::parse("http://127.0.0.1:80/app").unwrap();
        let values = values.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let request = request(step, &base, &values, &mut Jar::default(), Instant::ORIGIN)?;
        let (head, body) = request.into_parts();
        let body = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
            .block_on(body.collect())
            .unwrap()
            .to_bytes();
        Ok((Request::from_parts(head, ()), String::from_utf8(body.to_vec()).unwrap()))
    }

    #[test]
    fn values_are_encoded_into_paths_and_forms() {
        let mut step = Step::get("buy", "/buy?q={q}");
        step.method = "POST".into();
        step.body = Body::Form(vec![("a b".into(), "{q}!".into()), ("c".into(), "é".into())]);
        let (head, body) = ask(&step, &[("q", "x&y=/ü")]).unwrap();
        assert_eq!(head.uri(), "/app/buy?q=x%26y%3D%2F%C3%BC");
        assert_eq!(body, "a%20b=x%26y%3D%2F%C3%BC%21&c=%C3%A9");
        assert_eq!(head.headers()[CONTENT_TYPE], "application/x-www-form-urlencoded");
        assert_eq!(head.headers()[HOST], "127.0.0.1:80");
    }

    #[test]
    fn raw_bodies_and_headers_are_sent_as_they_are() {
        let mut step = Step::get("api", "/");
        step.body = Body::Raw { content_type: "application/json".into(), text: r#"{"t":"{t}"}"#.into() };
        step.headers = vec![("X-Token".into(), "t={t}".into())];
        let (head, body) = ask(&step, &[("t", "a b")]).unwrap();
        assert_eq!(body, r#"{"t":"a b"}"#);
        assert_eq!(head.headers()["x-token"], "t=a b");
        assert_eq!(head.headers()[CONTENT_TYPE], "application/json");
    }

    #[test]
    fn a_value_cannot_smuggle_a_header() {
        let mut step = Step::get("a", "/");
        step.headers = vec![("X-Token".into(), "{t}".into())];
        assert_eq!(ask(&step, &[("t", "a\r\nX-Evil: 1")]).unwrap_err(), Trouble::Unaskable);
        assert_eq!(ask(&step, &[]).unwrap_err(), Trouble::ValueMissing);
    }
}
