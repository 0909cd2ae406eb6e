//! Asks the API server what it lets us do, so that all missing rules are told at once.

use crate::contact::{Backoff, Topic};
use crate::permission::{Need, needs, sentence};
use crate::session::{Fault, Session, Unheard, answer};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::PostParams;
use std::time::Duration;

/// From one look to the next while something is missing.
const LOOK: Duration = Duration::from_secs(10);

/// Says what is not allowed, until nobody listens. Looks at the start, and again when something was forbidden.
pub(crate) async fn follow(session: &Session) -> Unheard {
    let mut backoff = Backoff::default();
    loop {
        let forbidden = session.take_forbidden();
        let missing = match missing(session).await {
            Ok(missing) => missing,
            Err(fault) => {
                if let Err(unheard) = session.failed(Topic::Permission, "review access", &fault).await {
                    return unheard;
                }
                tokio::time::sleep(backoff.after_failure(session.chance())).await;
                continue;
            }
        };
        backoff.succeeded();
        let trouble =
            if missing.is_empty() { forbidden } else { Some(sentence(&missing, &session.namespace)) };
        let is_well = trouble.is_none();
        if let Err(unheard) = session.about(Topic::Permission, trouble).await {
            return unheard;
        }
        if is_well {
            session.doubt.notified().await;
        } else {
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// Returns what is needed and not allowed.
async fn missing(session: &Session) -> Result<Vec<Need>, Fault> {
    let mut missing = Vec::new();
    for mut need in needs(&session.params) {
        let mut denied = Vec::new();
        for verb in need.verbs {
            if !is_allowed(session, &need.group, &need.resource, need.name.as_deref(), verb).await? {
                denied.push(verb);
            }
        }
        need.verbs = denied;
        if !need.verbs.is_empty() {
            missing.push(need);
        }
    }
    Ok(missing)
}

async fn is_allowed(
    session: &Session,
    group: &str,
    resource: &str,
    name: Option<&str>,
    verb: &str,
) -> Result<bool, Fault> {
    let (resource, subresource) = match resource.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource.to_string())),
        None => (resource, None),
    };
    // What does not exist yet has no name to be allowed by.
    let name = name.filter(|_| verb != "create").map(str::to_string);
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                namespace: Some(session.namespace.clone()),
                group: Some(group.to_string()),
                resource: Some(resource.to_string()),
                subresource,
                name,
                verb: Some(verb.to_string()),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let reviews = session.unplaced::<SelfSubjectAccessReview>();
    let answered = answer(reviews.create(&PostParams::default(), &review)).await?;
    Ok(answered.status.is_some_and(|status| status.allowed))
}
