//! Follows the EndpointSlices of the Service: a list, then what has changed since, and a list again when that is not
//! known any more.
//!
//! As long as there is no news, the nodes stay as they were told of, however long the API server is away.

use crate::contact::{Backoff, Topic};
use crate::endpoints::{Change, Directory, SLICES_MAX, Slice, Standing};
use crate::event::Event;
use crate::session::{Fault, Session, Unheard, answer};
use futures_util::{Stream, TryStreamExt};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{ListParams, WatchEvent, WatchParams};
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// How long one watch takes at most, as the API server is asked. The shorter, the sooner a connection is noticed that
/// is dead without anybody saying so.
const WATCH_SECONDS: u32 = 50;
/// How long one watch may take by our own clock.
const WATCH: Duration = Duration::from_secs(60);
/// A watch that ends sooner is taken for a failure, so that nobody is asked all the time.
const WATCH_LEAST: Duration = Duration::from_secs(1);
/// Slices in one page of a list.
const PAGE_MAX: u32 = 250;

/// Tells of the nodes, until nobody listens.
pub(crate) async fn follow(session: &Session) -> Unheard {
    let mut directory = Directory::default();
    let mut backoff = Backoff::default();
    let mut version = None;
    loop {
        let turn = match version.take() {
            None => list(session, &mut directory).await,
            Some(version) => watch(session, &mut directory, version).await,
        };
        let failure = match turn {
            Err(unheard) => return unheard,
            Ok(Turn::Go(from)) => {
                version = Some(from);
                backoff.succeeded();
                continue;
            }
            Ok(Turn::Failed(from, fault)) => {
                version = from.filter(|_| fault != Fault::Expired);
                fault
            }
        };
        tracing::debug!(?failure, "no news of nodes");
        if let Err(unheard) = session.failed(Topic::Nodes, "list endpointslices", &failure).await {
            return unheard;
        }
        tokio::time::sleep(backoff.after_failure(session.chance())).await;
    }
}

/// How a list or a watch ended.
enum Turn {
    /// To be watched from this version on.
    Go(String),
    /// Not known further; from which version on it can be tried again, if there is one.
    Failed(Option<String>, Fault),
}

fn selector(session: &Session) -> String {
    format!("kubernetes.io/service-name={}", session.params.service)
}

async fn list(session: &Session, directory: &mut Directory) -> Result<Turn, Unheard> {
    let slices = session.objects::<EndpointSlice>();
    let mut found = Vec::new();
    let mut page = ListParams::default().labels(&selector(session)).limit(PAGE_MAX);
    let version = loop {
        let part = match answer(slices.list(&page)).await {
            Ok(part) => part,
            Err(fault) => return Ok(Turn::Failed(None, fault)),
        };
        found.extend(part.items);
        match part.metadata.continue_.filter(|token| !token.is_empty()) {
            // One more than the bound, so that the directory sees that there are more.
            Some(token) if found.len() <= SLICES_MAX => page = page.continue_token(&token),
            _ => break part.metadata.resource_version.unwrap_or_default(),
        }
    };
    session.heard().await?;
    let port = &session.params.port;
    let all = found.iter().map(|slice| (name(slice), Slice::read(slice, port)));
    let changes = directory.replace(all);
    tell(session, directory, changes).await?;
    let is_first = session.found.borrow().is_none();
    if is_first {
        // First known here: a number that is told from then on knows it, too.
        session.found.send_replace(Some(directory.ready()));
        session.tell(Event::Found(directory.ready())).await?;
    }
    Ok(Turn::Go(version))
}

async fn watch(session: &Session, directory: &mut Directory, from: String) -> Result<Turn, Unheard> {
    let slices = session.objects::<EndpointSlice>();
    let params = WatchParams::default().labels(&selector(session)).timeout(WATCH_SECONDS);
    let began = Instant::now();
    let news = match answer(slices.watch(&params, &from)).await {
        Ok(news) => news,
        Err(fault) => return Ok(Turn::Failed(Some(from), fault)),
    };
    session.heard().await?;
    let mut version = from;
    let read = timeout(WATCH, take_in(session, directory, &mut version, news)).await;
    match read {
        Ok(Err(Stop::Unheard)) => Err(Unheard),
        Ok(Err(Stop::Fault(fault))) => Ok(Turn::Failed(Some(version), fault)),
        Ok(Ok(())) if began.elapsed() < WATCH_LEAST => {
            Ok(Turn::Failed(Some(version), Fault::Away("it ends each watch at once".to_string())))
        }
        Ok(Ok(())) => Ok(Turn::Go(version)),
        Err(_) => Ok(Turn::Failed(Some(version), Fault::Away("a watch has gone silent".to_string()))),
    }
}

enum Stop {
    Unheard,
    Fault(Fault),
}

/// Takes in news until they end.
async fn take_in(
    session: &Session,
    directory: &mut Directory,
    version: &mut String,
    news: impl Stream<Item = kube::Result<WatchEvent<EndpointSlice>>>,
) -> Result<(), Stop> {
    let mut news = std::pin::pin!(news);
    let port = &session.params.port;
    while let Some(event) = news.try_next().await.map_err(|error| Stop::Fault(error.into()))? {
        let (slice, changes) = match event {
            WatchEvent::Added(slice) | WatchEvent::Modified(slice) => {
                let changes = directory.put(&name(&slice), Slice::read(&slice, port));
                (slice, changes)
            }
            WatchEvent::Deleted(slice) => {
                let changes = directory.remove(&name(&slice));
                (slice, changes)
            }
            WatchEvent::Bookmark(mark) => {
                *version = mark.metadata.resource_version;
                continue;
            }
            WatchEvent::Error(status) => {
                return Err(Stop::Fault(Fault::of_status(status.code, &status.message)));
            }
        };
        tell(session, directory, changes).await.map_err(|Unheard| Stop::Unheard)?;
        if let Some(seen) = slice.metadata.resource_version {
            *version = seen;
        }
    }
    Ok(())
}

fn name(slice: &EndpointSlice) -> String {
    slice.metadata.name.clone().unwrap_or_default()
}

async fn tell(session: &Session, directory: &Directory, changes: Vec<Change>) -> Result<(), Unheard> {
    for change in changes {
        let event = match change {
            Change::Stands(address, Standing::Ready) => Event::Ready { address },
            Change::Stands(address, Standing::Unready) => Event::Draining { address, until: None },
            Change::Stands(address, Standing::Leaving) => {
                Event::Draining { address, until: Some(Instant::now() + session.params.grace) }
            }
            Change::Gone(address) => Event::Gone { address },
        };
        session.tell(event).await?;
    }
    let complaint = directory.complaint(&session.params.service, &session.params.port);
    session.about(Topic::Nodes, complaint).await
}
