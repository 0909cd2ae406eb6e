//! W3C Trace Context: which trace a request belongs to, and whether its spans are taken.
//!
//! What a request says of its trace passes on unchanged, unless spans of it are taken: then the
//! application is told that its own belong under ours.

use crate::request_ids::random;
use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The trace of a request whose spans are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceContext {
    /// The trace.
    pub trace: u128,
    /// The span it came with.
    pub parent: Option<u64>,
    /// The request's own span.
    pub span: u64,
    /// The span of its time in the application.
    pub application: u64,
}

/// What a `traceparent` says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Parent {
    trace: u128,
    span: u64,
    sampled: bool,
}

impl TraceContext {
    /// Returns the trace of a request if its spans are to be taken: as its parent's are, if
    /// somebody we trust says so, else with probability `ratio`.
    pub(crate) fn sample(headers: &HeaderMap, is_trusted: bool, ratio: f64) -> Option<TraceContext> {
        // A stranger would choose which trace its requests are filed under.
        let parent = parent(headers).filter(|_| is_trusted);
        let is_sampled =
            parent.map_or_else(|| (random() as f64) < ratio * (u64::MAX as f64), |parent| parent.sampled);
        is_sampled.then(|| TraceContext {
            trace: parent
                .map_or_else(|| u128::from(random()) << 64 | u128::from(some()), |parent| parent.trace),
            parent: parent.map(|parent| parent.span),
            span: some(),
            application: some(),
        })
    }

    /// Tells the application where its spans belong.
    pub(crate) fn write(&self, headers: &mut HeaderMap) {
        if self.parent.is_none() {
            // It belongs to a parent that cannot be read, or to none.
            headers.remove(TRACESTATE);
        }
        let text = format!("00-{:032x}-{:016x}-01", self.trace, self.application);
        headers.insert(TRACEPARENT, HeaderValue::try_from(text).expect("digits are visible ASCII"));
    }
}

/// Returns an id: any number but 0, which stands for none.
fn some() -> u64 {
    random().max(1)
}

fn parent(headers: &HeaderMap) -> Option<Parent> {
    let mut all = headers.get_all(TRACEPARENT).iter();
    let (text, None) = (all.next()?.to_str().ok()?, all.next()) else { return None };
    let mut parts = text.split('-');
    let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    // A later version may say more; this one says nothing else.
    let is_known = version != "ff" && (version != "00" || parts.next().is_none());
    let (_, flags) = (hex(version, 2)?, hex(flags, 2)?);
    let (trace, span) = (hex(trace, 32)?, u64::try_from(hex(span, 16)?).ok()?);
    (is_known && trace != 0 && span != 0).then_some(Parent { trace, span, sampled: flags & 1 == 1 })
}

/// Returns the number in so many hexadecimal digits, which are small letters.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_hex = text.len() == digits && text.bytes().all(is_digit);
    is_hex.then(|| u128::from_str_radix(text, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn with(text: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(TRACEPARENT, HeaderValue::try_from(text).unwrap());
        headers
    }

    #[test]
    fn a_trusted_parent_decides_and_a_stranger_does_not() {
        let taken = TraceContext::sample(&with(PARENT), true, 0.0).unwrap();
        assert_eq!(
            (taken.trace, taken.parent),
            (0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736, Some(0x00f0_67aa_0ba9_02b7))
        );
        let silent = PARENT.replace("-01", "-00");
        assert_eq!(TraceContext::sample(&with(&silent), true, 1.0), None);
        assert_eq!(
            TraceContext::sample(&with(PARENT), false, 0.0),
            None,
            "a stranger would fill the collector"
        );
        let strange = TraceContext::sample(&with(&silent), false, 1.0).unwrap();
        assert_eq!(strange.parent, None);
        assert_ne!(strange.trace, taken.trace, "nor choose whose trace it is in");
    }

    #[test]
    fn the_application_is_told_of_its_own_parent_in_the_same_trace() {
        let mut headers = with(PARENT);
        headers.insert(TRACESTATE, HeaderValue::from_static("a=1"));
        let taken = TraceContext::sample(&headers, true, 0.0).unwrap();
        taken.write(&mut headers);
        let told = headers[TRACEPARENT].to_str().unwrap();
        assert!(told.starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-") && told.ends_with("-01"), "{told}");
        assert!(!told.contains("00f067aa0ba902b7"), "{told}");
        assert_eq!(headers[TRACESTATE], "a=1");
        assert_eq!(parent(&headers).unwrap().span, taken.application);
    }

    #[test]
    fn what_is_no_parent_begins_a_trace() {
        for broken in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-+0f067aa0ba902b7-01",
        ] {
            assert_eq!(parent(&with(broken)), None, "{broken}");
            let taken = TraceContext::sample(&with(broken), true, 1.0).unwrap();
            assert_eq!(taken.parent, None, "{broken}");
        }
    }
}
