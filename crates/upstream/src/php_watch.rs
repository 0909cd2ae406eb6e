//! Asks php-fpm for its status page, again and again, for whoever looks at the gateway.
//!
//! The page is answered by one of php-fpm's children. Where all are busy the question waits behind
//! visitors' requests, and is given up.

use super::fastcgi::{Call, FastCgi, Programs};
use super::request::RequestBody;
use super::{Node, Pool, Shared};
use http::header::{HeaderValue, USER_AGENT};
use http::{Request, StatusCode};
use std::future::{pending, poll_fn};
use std::sync::Arc;
use std::time::Duration;
use suimon_fastcgi::php_status::{self, PhpStatus};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

/// How often each node is asked.
const ASK_EVERY: Duration = Duration::from_secs(5);
/// The longest wait for an answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// The longest page, and the longest head of one, in bytes.
const PAGE_BYTES_MAX: usize = 16 << 10;
/// The `User-Agent` of these questions.
const AGENT: HeaderValue = HeaderValue::from_static("suimon-status");

/// Asks all nodes that speak FastCGI for as long as it is not dropped.
pub(super) async fn watch(shared: &Arc<Shared>) {
    let path = shared.params.fastcgi.as_ref().and_then(|params| params.status.as_deref());
    let Some(path) = path.map(Arc::<str>::from) else { return pending().await };
    let mut ticks = interval(ASK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let mut asked = JoinSet::new();
        for node in shared.nodes.present() {
            if matches!(node.pool, Pool::FastCgi(_)) && node.php.is_due() {
                asked.spawn(look(node, Arc::clone(&path)));
            }
        }
        while asked.join_next().await.is_some() {}
    }
}

async fn look(node: Arc<Node>, path: Arc<str>) {
    let Pool::FastCgi(programs) = &node.pool else { return };
    let answer = timeout(ANSWER_WITHIN, ask(&node, programs, &path)).await;
    node.php.note(&node.params, answer.unwrap_or(Err("it does not answer in time")));
}

/// Asks a node for its page.
async fn ask(node: &Node, programs: &Programs, path: &str) -> Result<PhpStatus, &'static str> {
    let request = Request::get(path).header(USER_AGENT, AGENT).body(RequestBody::empty());
    let (head, body) = request.map_err(|_| "its path is no path of a URL")?.into_parts();
    let stream = node.connector.connect().await.map_err(|error| error.detail)?;
    let mut connection = FastCgi::new(stream, &node.params, PAGE_BYTES_MAX, ANSWER_WITHIN);
    // What php-fpm says of a path that it does not know would stand in the log again and again.
    connection.keep_quiet();
    let call = (programs, &Call::of_worker(path));
    let answer = connection.exchange(&head.into(), call, &node.authority, body, None, ANSWER_WITHIN).await;
    if answer.map_err(|failed| failed.detail)?.status != StatusCode::OK {
        return Err("php-fpm does not know its path (pm.status_path)");
    }
    let mut page = Vec::new();
    while let Some(frame) = poll_fn(|cx| connection.poll_frame(cx)).await {
        let frame = frame.map_err(|_| "its page broke off")?;
        let piece = frame.into_data().unwrap_or_default();
        if page.len() + piece.len() > PAGE_BYTES_MAX {
            return Err("its page is too long");
        }
        page.extend_from_slice(&piece);
    }
    php_status::read(&page).ok_or("what answers at its path is another page")
}
