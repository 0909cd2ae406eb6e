//! Where the body of an answer ends for whoever sends it. The HTTP library asks for nothing of a body
//! behind its declared length, nor of one that may not be sent at all, and drops it: that is no broken
//! answer.

use http::header::{CONTENT_LENGTH, HeaderMap};
use http::{Method, StatusCode};

/// Follows a body to its end.
#[derive(Clone, Copy, Debug)]
pub struct BodyEnd {
    bytes: u64,
    declared: Option<u64>,
    is_over: bool,
}

impl BodyEnd {
    /// Returns where the body ends of an answer with this head, to a request by `method`.
    pub fn of(method: &Method, status: StatusCode, headers: &HeaderMap) -> Self {
        let has_none = method == Method::HEAD
            || status.is_informational()
            || [StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED].contains(&status);
        let declared = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        let mut end = BodyEnd { bytes: 0, declared, is_over: has_none };
        end.passed(0);
        end
    }

    /// Takes note of its length, where its head does not declare one.
    pub fn or_declare(&mut self, length: Option<u64>) {
        self.declared = self.declared.or(length);
        self.passed(0);
    }

    /// Takes note that so many bytes more were handed on.
    pub fn passed(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        self.is_over |= self.declared.is_some_and(|declared| self.bytes >= declared);
    }

    /// Takes note that no more comes.
    pub fn end(&mut self) {
        self.is_over = true;
    }

    /// Returns whether whoever sends the body may ask for no more of it.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns how many bytes were handed on.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn a_body_ends_with_its_declared_length_or_before_it_begins() {
        let of = |method: Method, status: u16, length: Option<&'static str>| {
            let length = length.map(|length| (CONTENT_LENGTH, HeaderValue::from_static(length)));
            let status = StatusCode::from_u16(status).expect("a status");
            BodyEnd::of(&method, status, &length.into_iter().collect())
        };
        for (method, status) in
            [(Method::HEAD, 200), (Method::GET, 204), (Method::GET, 304), (Method::GET, 101)]
        {
            assert!(of(method.clone(), status, Some("5")).is_over(), "{method} {status}");
        }
        assert!(of(Method::GET, 200, Some("0")).is_over());
        let mut known = of(Method::GET, 200, Some("5"));
        known.passed(4);
        assert!(!known.is_over());
        known.passed(1);
        assert_eq!((known.is_over(), known.bytes()), (true, 5));
        for length in [None, Some("five")] {
            let mut unknown = of(Method::POST, 200, length);
            unknown.passed(5);
            assert!(!unknown.is_over(), "{length:?}");
            unknown.or_declare(Some(6));
            unknown.passed(1);
            assert!(unknown.is_over());
        }
        let mut broken = of(Method::GET, 200, None);
        broken.end();
        assert!(broken.is_over());
    }
}
