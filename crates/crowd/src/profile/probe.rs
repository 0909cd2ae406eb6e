//! One request, and when its parts happened.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::header::{ACCEPT, CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use http::{Request, Uri};
use http_body_util::Full;
use tokio::time::Instant;

use super::books::Answered;
use super::plan::Service;
use super::server_timing;
use crate::answer::Answer;
use crate::target::{Addresses, BaseUrl};
use crate::trouble::Trouble;
use crate::wire::{BodyUse, Wire};

/// The most of an answer's body that is read; a longer one is an error.
pub const ANSWER_BYTES_MAX: u64 = 16 * 1024 * 1024;

const OUR_NAME: &str = concat!("suimon-profile/", env!("CARGO_PKG_VERSION"));
/// When the client began to ask, as microseconds since 1970: what load balancers send, and agents
/// that measure queues read.
const REQUEST_START: HeaderName = HeaderName::from_static("x-request-start");
const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// What is asked for again and again.
pub(crate) struct Probe {
    request: Request<Full<Bytes>>,
    new_connections: bool,
}

impl Probe {
    /// Returns the probe of a service; `headers` are sent beside, or in place of, our own.
    pub(crate) fn new(service: &Service, base: &BaseUrl, headers: &HeaderMap, new_connections: bool) -> Self {
        let mut request = Request::new(Full::default());
        *request.method_mut() = service.method.clone();
        let target = format!("{}{}", base.prefix, service.path);
        *request.uri_mut() = target.parse::<Uri>().expect("a path behind a path is one");
        let own = request.headers_mut();
        own.insert(HOST, base.host_header.clone());
        own.insert(USER_AGENT, HeaderValue::from_static(OUR_NAME));
        own.insert(ACCEPT, HeaderValue::from_static("*/*"));
        if new_connections {
            own.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        for name in headers.keys() {
            own.remove(name);
        }
        own.extend(headers.iter().map(|(name, value)| (name.clone(), value.clone())));
        Probe { request, new_connections }
    }

    /// Asks once, over the kept connection if there is one.
    ///
    /// # Errors
    /// Fails if there was no whole answer, or one that is no success. A redirect is none: it is not
    /// followed.
    pub(crate) async fn ask(
        &self,
        addresses: &Addresses,
        kept: &mut Option<Wire>,
    ) -> Result<Answered, Trouble> {
        let began = Instant::now();
        let request = self.stamped();
        let body = BodyUse::Drop { bytes_max: ANSWER_BYTES_MAX };
        // Taken out, so that a caller who drops this future closes the connection with it.
        if let Some(mut wire) = kept.take()
            && wire.is_ready().await
        {
            match wire.exchange(request.clone(), body).await {
                Ok(answer) => return self.answered(kept, wire, &answer, began, began),
                // The server has closed it just then.
                Err(broken) if broken.trouble == Trouble::ConnectionLost && broken.before_answer => {}
                Err(broken) => return Err(broken.trouble),
            }
        }
        let mut wire = Wire::open(addresses).await?;
        let connected = Instant::now();
        let answer = wire.exchange(request, body).await.map_err(|broken| broken.trouble)?;
        self.answered(kept, wire, &answer, began, connected)
    }

    fn stamped(&self) -> Request<Full<Bytes>> {
        let mut request = self.request.clone();
        let micros = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        let value = HeaderValue::try_from(format!("t={micros}")).expect("digits can be sent");
        request.headers_mut().insert(REQUEST_START, value);
        request
    }

    fn answered(
        &self,
        kept: &mut Option<Wire>,
        wire: Wire,
        answer: &Answer,
        began: Instant,
        connected: Instant,
    ) -> Result<Answered, Trouble> {
        let ended = Instant::now();
        let written = wire.marks().written().unwrap_or(connected);
        let first = wire.marks().first_read().unwrap_or(ended);
        if !self.new_connections {
            *kept = Some(wire);
        }
        if !(200..300).contains(&answer.status) {
            return Err(Trouble::Status(answer.status));
        }
        let segments = apart([began, connected, written, first, ended]);
        let lines = answer.headers.get_all(SERVER_TIMING).iter().filter_map(|line| line.to_str().ok());
        let told = lines.flat_map(server_timing::durations);
        Ok(Answered { segments, told: told.map(|(name, time)| (name.to_owned(), time)).collect() })
    }
}

/// Returns the times from one mark to the next.
fn apart(marks: [Instant; 5]) -> [Duration; 4] {
    std::array::from_fn(|at| marks[at + 1].saturating_duration_since(marks[at]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_of_the_user_s_replaces_ours() {
        let base = BaseUrl::parse("http://127.0.0.1:80/app").unwrap();
        let service = Service::parse("POST /report?x=1").unwrap();
        let mut headers = HeaderMap::new();
        headers.append(USER_AGENT, HeaderValue::from_static("mine"));
        headers.append("x-a", HeaderValue::from_static("1"));
        headers.append("x-a", HeaderValue::from_static("2"));
        let request = Probe::new(&service, &base, &headers, true).stamped();
        assert_eq!(
            (request.method().as_str(), request.uri().to_string().as_str()),
            ("POST", "/app/report?x=1")
        );
        let all = |name: &str| -> Vec<_> { request.headers().get_all(name).iter().cloned().collect() };
        assert_eq!(
            (all("user-agent"), all("x-a")),
            (vec!["mine".parse().unwrap()], vec!["1".parse().unwrap(), "2".parse().unwrap()])
        );
        assert_eq!(all("connection"), ["close"]);
        let sent = request.headers()["x-request-start"].to_str().unwrap();
        assert!(sent.strip_prefix("t=").unwrap().parse::<u64>().unwrap() > 1_600_000_000_000_000);
    }
}
