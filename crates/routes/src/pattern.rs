//! Declared sets of requests, prepared for comparison.

use crate::spelling::{Readings, segments};
use http::Method;

/// A set of requests: a method and a path template.
///
/// In the template a segment `{anything}` matches any one segment, and a last segment `*` matches
/// any rest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RoutePattern {
    /// In capitals; `None`: any.
    pub method: Option<String>,
    /// Begins with `/`. Without a query.
    pub path: String,
}

impl RoutePattern {
    /// Returns the pattern as it is written and shown: `GET /items/{id}`, or `* /items/{id}` for
    /// any method.
    pub fn name(&self) -> String {
        format!("{} {}", self.method.as_deref().unwrap_or("*"), self.path)
    }

    /// Returns whether requests of `method` for `path` belong to it. An invalid method belongs to
    /// no pattern.
    pub fn matches(&self, method: &str, path: &str) -> bool {
        Method::from_bytes(method.as_bytes()).is_ok_and(|method| Pattern::new(self).matches(&method, path))
    }

    /// Returns whether every request that belongs to `other` belongs to this one, too.
    pub fn covers(&self, other: &RoutePattern) -> bool {
        let (own, other) = (Pattern::new(self), Pattern::new(other));
        let begins_alike = own.segments.iter().zip(&other.segments).all(|(own, other)| match own {
            Some(_) => own == other,
            None => true,
        });
        let (length, others) = (own.segments.len(), other.segments.len());
        (own.method.is_none() || own.method == other.method)
            && begins_alike
            && if own.any_rest { others >= length } else { others == length && !other.any_rest }
    }

    /// Returns whether some request belongs to both.
    pub fn overlaps(&self, other: &RoutePattern) -> bool {
        let (own, other) = (Pattern::new(self), Pattern::new(other));
        let is_alike = own.segments.iter().zip(&other.segments).all(|(own, other)| match (own, other) {
            (Some(own), Some(other)) => own == other,
            _ => true,
        });
        let (length, others) = (own.segments.len(), other.segments.len());
        (own.method.is_none() || other.method.is_none() || own.method == other.method)
            && is_alike
            && (length >= others || own.any_rest)
            && (length <= others || other.any_rest)
    }

    /// Returns whether both have the same path, whatever its variables are called.
    pub fn shares_path_with(&self, other: &RoutePattern) -> bool {
        let any = |pattern: &RoutePattern| RoutePattern { method: None, path: pattern.path.clone() };
        Pattern::new(&any(self)).shares_requests_of_path(&Pattern::new(&any(other)))
    }
}

/// A declared set of requests, prepared for comparison.
#[derive(Clone, Debug)]
pub struct Pattern {
    method: Option<Method>,
    segments: Vec<Option<Box<str>>>,
    any_rest: bool,
}

impl Pattern {
    /// Returns the pattern, prepared for comparison. A method that is not an HTTP token matches
    /// nothing.
    pub fn new(pattern: &RoutePattern) -> Self {
        let method = pattern.method.as_ref().map(|name| {
            // An invalid name becomes a method no client can send.
            let method = Method::from_bytes(name.as_bytes());
            folded(&method.unwrap_or_else(|_| Method::from_bytes(b"-").expect("a token")))
        });
        let mut segments: Vec<Option<Box<str>>> = Vec::new();
        let mut any_rest = false;
        for segment in self::segments(&pattern.path) {
            any_rest = segment == "*";
            if !any_rest {
                let is_variable = segment.starts_with('{') && segment.ends_with('}');
                segments.push((!is_variable).then(|| segment.into()));
            }
        }
        Pattern { method, segments, any_rest }
    }

    /// Returns whether both have the same path, whatever its variables are called, and a method in
    /// common.
    pub(crate) fn shares_requests_of_path(&self, other: &Pattern) -> bool {
        let is_any = self.method.is_none() || other.method.is_none();
        (is_any || self.method == other.method)
            && self.any_rest == other.any_rest
            && self.segments == other.segments
    }

    /// Returns its segments; `None`: any.
    pub(crate) fn segments(&self) -> &[Option<Box<str>>] {
        &self.segments
    }

    /// Returns whether a request belongs to the set. `GET` includes `HEAD`, and is included in it.
    pub fn matches(&self, method: &Method, path: &str) -> bool {
        self.matches_by(method, path, |own, segment| own == segment)
    }

    /// Returns whether a request belongs to the set, or would in the reading of some server:
    /// servers decode what need not be encoded, resolve dot segments, or ignore case.
    pub fn may_match(&self, method: &Method, path: &Readings<'_>) -> bool {
        let read = path.lenient.as_deref();
        // For a server that ignores case, a path that matches here matches, too.
        (read.is_some() && self.matches(method, path.written))
            || self.matches_by(method, read.unwrap_or(path.written), str::eq_ignore_ascii_case)
    }

    fn matches_by(&self, method: &Method, path: &str, are_equal: impl Fn(&str, &str) -> bool) -> bool {
        if self.method.as_ref().is_some_and(|own| *own != folded(method)) {
            return false;
        }
        let mut rest = segments(path);
        for own in &self.segments {
            let Some(segment) = rest.next() else {
                return false;
            };
            if own.as_ref().is_some_and(|own| !are_equal(own, segment)) {
                return false;
            }
        }
        self.any_rest || rest.next().is_none()
    }
}

/// `HEAD` does the work of `GET`, so it shares its route.
pub(crate) fn folded(method: &Method) -> Method {
    if method == Method::HEAD { Method::GET } else { method.clone() }
}
