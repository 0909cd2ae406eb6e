//! What an answer tells of its path: whether what looks like an asset is a page, and whether there is a route.

use super::Core;
use http::{HeaderMap, Method, StatusCode};
use std::time::{Duration, Instant};
use suimon_message::headers;
use suimon_model::RouteId;
use suimon_routes::{Asset, Class, TableSlot};

/// A page that takes at least this long begins with the limit that it had in `other`: to find one
/// anew would take many times as long.
const LONG: Duration = Duration::from_secs(1);

/// What there is to learn from the answer to a request.
#[derive(Debug)]
pub(super) struct PathLesson {
    class: Class,
    /// If it must be watched.
    asset: Option<Asset>,
    /// Only if the path is new to the table.
    novel: Option<String>,
}

impl Core {
    /// Returns what there is to learn from the answer to a request.
    pub(super) fn lesson(&self, class: Class, method: &Method, path: &str) -> PathLesson {
        let novel = matches!(class, Class::Unknown(_)).then(|| path.to_owned());
        PathLesson { class, asset: self.table.asset_of(class, method, path), novel }
    }

    /// Learns from the head of an answer. `sent`: when the application was asked for it.
    pub(super) fn learn_from(
        &self,
        PathLesson { class, asset, novel }: PathLesson,
        method: &Method,
        status: StatusCode,
        headers: &HeaderMap,
        sent: Instant,
    ) {
        if let Some(asset) = asset.filter(|_| status == StatusCode::OK) {
            self.table.note_answer(asset, is_page(headers));
        }
        if let Some(path) = novel.filter(|_| shows_a_route(method, status)) {
            let was_long = sent.elapsed() >= LONG;
            self.learn(method, &path, class.route().filter(|_| was_long));
        }
    }

    /// Finds a route. `limit_of`: the gate's route with whose limit it begins, where it would take
    /// long to find one.
    fn learn(&self, method: &Method, path: &str, limit_of: Option<RouteId>) {
        let uses = |route| self.telemetry.route(Some(route)).good_answers();
        let begin = |id| limit_of.map(|share| self.keeper.begin_with_limit_of(id, share));
        self.table.learn(method, path, Instant::now(), uses, |seat, pool, name| match seat {
            TableSlot::New(_) => {
                let id = self.keeper.declare_found(name, pool);
                begin(id);
                self.telemetry.name_route(name, id);
                tracing::info!(site = self.params.site, route = name, "route discovered");
                true
            }
            TableSlot::Of(id) => {
                let is_free = self.keeper.renew_route(id, name, pool);
                if is_free {
                    begin(id);
                    let before = self.telemetry.rename_route(id, name);
                    tracing::info!(
                        site = self.params.site,
                        route = name,
                        before,
                        "route discovered; it replaces a route that is no longer requested"
                    );
                }
                is_free
            }
        });
    }
}

/// Returns whether an answer shows that something exists at a path: a redirect of a `GET` may also
/// answer a mistyped path, while other methods are redirected after they were accepted.
fn shows_a_route(method: &Method, status: StatusCode) -> bool {
    let is_read = method == Method::GET || method == Method::HEAD;
    status.is_success()
        || status.is_informational()
        || status == StatusCode::NOT_MODIFIED
        || (status.is_redirection() && !is_read)
}

/// Returns whether an answer is a page for people.
fn is_page(headers: &HeaderMap) -> bool {
    headers::is_of_kind(headers::content_type(headers), &[b"text/html", b"application/xhtml+xml"])
}
