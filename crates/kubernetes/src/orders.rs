//! Writes the wanted number of replicas: while we hold the Lease, and nobody else scales the workload.

use crate::contact::{Backoff, Topic};
use crate::election::{DURATION, Election, Move, PERIOD, Record};
use crate::owners::{Owner, autoscaler, scaled_object};
use crate::scale::{Scaling, Seen, Step, Wanted};
use crate::session::{Fault, Session, Unheard, answer};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{ListParams, ObjectMeta, PostParams};
use std::time::{Duration, Instant};
use suimon_params::kubernetes::{ScaleParams, Target};
use tokio::sync::watch;
use tokio::time::sleep;

/// From one look at who else scales the workload to the next.
const OWNERS: Duration = Duration::from_secs(15);
/// From one look at the number to the next, while the same is wanted.
const LOOK: Duration = Duration::from_secs(9);
/// Attempts to write a number between two of which somebody else has changed the workload.
const CONFLICTS_MAX: u32 = 5;
/// Autoscalers in one answer; a namespace with more is looked at no further.
const OWNERS_MAX: u32 = 500;

/// How a turn ends that cannot go on.
enum Stop {
    Unheard,
    Fault(&'static str, Fault),
}

impl From<Unheard> for Stop {
    fn from(_: Unheard) -> Self {
        Stop::Unheard
    }
}

/// Returns who else scales the workload.
///
/// # Errors
/// The API server did not say.
pub(crate) async fn owner(session: &Session, target: &Target) -> Result<Option<Owner>, Fault> {
    let page = ListParams::default().limit(OWNERS_MAX);
    let autoscalers = session.by_name("autoscaling", "v2", "HorizontalPodAutoscaler");
    if let Some(owner) = autoscaler(&answer(autoscalers.list(&page)).await?.items, target) {
        return Ok(Some(owner));
    }
    match answer(session.by_name("keda.sh", "v1alpha1", "ScaledObject").list(&page)).await {
        Ok(objects) => Ok(scaled_object(&objects.items, target)),
        // There is no KEDA here.
        Err(Fault::Missing) => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// One gateway's part in the orders.
pub(crate) struct Orders<'a> {
    session: &'a Session,
    params: &'a ScaleParams,
    wanted: watch::Receiver<u32>,
    number: Wanted,
    election: Election,
    lease: Option<Lease>,
    scaling: Scaling,
    /// When it was last seen that nobody else scales the workload.
    alone: Option<Instant>,
    looked: Option<Instant>,
}

impl<'a> Orders<'a> {
    /// Returns a part called `me`.
    pub(crate) fn new(
        session: &'a Session,
        params: &'a ScaleParams,
        wanted: watch::Receiver<u32>,
        me: String,
    ) -> Self {
        let number = Wanted::AtLeast(*wanted.borrow());
        Orders {
            session,
            params,
            wanted,
            number,
            election: Election::new(me),
            lease: None,
            scaling: Scaling::default(),
            alone: None,
            looked: None,
        }
    }

    /// Writes what is wanted, until nobody wants anything or nobody listens; then gives the Lease back.
    pub(crate) async fn follow(mut self) {
        let mut backoff = Backoff::default();
        loop {
            let pause = match self.turn().await {
                Err(Stop::Unheard) => break,
                Ok(()) => {
                    backoff.succeeded();
                    PERIOD
                }
                Err(Stop::Fault(doing, fault)) => {
                    tracing::debug!(doing, ?fault, "no order");
                    if self.session.failed(Topic::Scale, doing, &fault).await.is_err() {
                        break;
                    }
                    backoff.after_failure(self.session.chance())
                }
            };
            tokio::select! {
                () = sleep(pause) => {}
                changed = self.wanted.changed() => {
                    if changed.is_err() {
                        break;
                    }
                    let number = *self.wanted.borrow_and_update();
                    let is_known = self.session.found.borrow().is_some();
                    self.number = if is_known { Wanted::Exactly(number) } else { Wanted::AtLeast(number) };
                    self.looked = None;
                }
            }
        }
        self.give_back().await;
    }

    async fn turn(&mut self) -> Result<(), Stop> {
        self.elect().await?;
        if !self.election.is_leading(Instant::now()) {
            self.scaling.hand_over();
            self.alone = None;
            self.looked = None;
            // What is amiss there is the leader's to say.
            self.session.about(Topic::Scale, None).await?;
            self.session.about(Topic::Owner, None).await?;
            return Ok(());
        }
        if self.is_due(self.alone, OWNERS) {
            let stop = |fault| Stop::Fault("list those who scale the workload", fault);
            self.alone = None;
            let target = &self.params.target;
            let refusal = owner(self.session, target).await.map_err(stop)?;
            let refusal = refusal.map(|owner| owner.refusal(target, &self.session.namespace));
            let is_alone = refusal.is_none();
            self.session.about(Topic::Owner, refusal).await?;
            self.alone = is_alone.then(Instant::now);
        }
        if self.alone.is_some() && self.is_due(self.looked, LOOK) {
            self.scale().await?;
            self.looked = Some(Instant::now());
        }
        Ok(())
    }

    fn is_due(&self, last: Option<Instant>, period: Duration) -> bool {
        last.is_none_or(|last| last.elapsed() >= period)
    }

    /// Takes part in the election.
    async fn elect(&mut self) -> Result<(), Stop> {
        let stop = |fault| Stop::Fault("hold a Lease", fault);
        let leases = self.session.objects::<Lease>();
        let name = &self.params.lease;
        let began = Instant::now();
        let read = match answer(leases.get(name)).await {
            Ok(lease) => Some(lease),
            Err(Fault::Missing) => None,
            Err(fault) => return Err(stop(fault)),
        };
        self.session.heard().await?;
        let step = self.election.look(began, read.as_ref().map(record).as_ref());
        let done = match (step, read) {
            (Move::Wait, _) => return Ok(()),
            (_, None) => {
                let lease = ours(Lease { metadata: named(name), spec: None }, self.election.me(), true);
                answer(leases.create(&PostParams::default(), &lease)).await
            }
            (step, Some(lease)) => {
                let lease = ours(lease, self.election.me(), step == Move::Take);
                answer(leases.replace(name, &PostParams::default(), &lease)).await
            }
        };
        match done {
            Ok(lease) => {
                if step != Move::Renew {
                    tracing::info!(lease = name, "this gateway now writes the number of replicas");
                }
                self.lease = Some(lease);
                self.election.done(began);
                Ok(())
            }
            // Somebody was faster; the next turn shows who.
            Err(Fault::Conflict) => Ok(()),
            Err(fault) => Err(stop(fault)),
        }
    }

    /// Looks at the number, and writes what is wanted.
    async fn scale(&mut self) -> Result<(), Stop> {
        for _ in 0..CONFLICTS_MAX {
            let seen = match self.session.scale(&self.params.target).await {
                Ok(scale) => Seen {
                    replicas: scale
                        .spec
                        .and_then(|spec| spec.replicas)
                        .map_or(0, |count| u32::try_from(count).unwrap_or(0)),
                    version: scale.metadata.resource_version.unwrap_or_default(),
                },
                Err(Fault::Missing) => {
                    let target = &self.params.target;
                    let sentence = format!(
                        "there is no {} {} with a scale subresource in namespace {} ({}): check nodes.workload",
                        target.kind, target.name, self.session.namespace, target.api_version
                    );
                    self.session.about(Topic::Scale, Some(sentence)).await?;
                    return Ok(());
                }
                Err(fault) => return Err(Stop::Fault("read the scale", fault)),
            };
            let now = Instant::now();
            let step = self.scaling.look(now, self.number, &seen);
            let fight = self.scaling.is_fight(now).then(|| self.fight());
            self.session.about(Topic::Scale, fight).await?;
            let Step::Write { replicas, version } = step else { return Ok(()) };
            if !self.election.is_leading(now) {
                return Ok(());
            }
            match self.session.write_scale(&self.params.target, replicas, &version).await {
                Ok(()) => {
                    tracing::info!(from = seen.replicas, to = replicas, "replicas ordered");
                    self.scaling.wrote(replicas);
                    return Ok(());
                }
                Err(Fault::Conflict) => {}
                Err(fault) => return Err(Stop::Fault("write the scale", fault)),
            }
        }
        // The next look tries again.
        Ok(())
    }

    fn fight(&self) -> String {
        let target = &self.params.target;
        let (kind, name, namespace) = (target.kind.to_lowercase(), &target.name, &self.session.namespace);
        format!(
            "somebody else changes the replicas of {} {name} again and again: find who \
             (kubectl -n {namespace} get {kind} {name} -o yaml --show-managed-fields) and stop it, or leave spec.replicas \
             out of what is applied",
            target.kind
        )
    }

    /// Lets the next one take the Lease at once.
    async fn give_back(mut self) {
        if !self.election.is_leading(Instant::now()) {
            return;
        }
        let Some(mut lease) = self.lease.take() else { return };
        if let Some(spec) = lease.spec.as_mut() {
            spec.holder_identity = Some(String::new());
        }
        let leases = self.session.objects::<Lease>();
        // If it fails, it is free after its duration.
        let _ = answer(leases.replace(&self.params.lease, &PostParams::default(), &lease)).await;
    }
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_string()), ..ObjectMeta::default() }
}

fn record(lease: &Lease) -> Record {
    let spec = lease.spec.as_ref();
    let seconds =
        spec.and_then(|spec| spec.lease_duration_seconds).and_then(|seconds| u64::try_from(seconds).ok());
    Record {
        holder: spec.and_then(|spec| spec.holder_identity.clone()).unwrap_or_default(),
        version: lease.metadata.resource_version.clone().unwrap_or_default(),
        duration: seconds.map_or(DURATION, Duration::from_secs),
    }
}

/// Returns the lease as we write it: renewed, or taken.
fn ours(mut lease: Lease, me: &str, is_taken: bool) -> Lease {
    let now = MicroTime(Timestamp::now());
    let before = lease.spec.take().unwrap_or_default();
    let transitions = before.lease_transitions.unwrap_or(0);
    lease.spec = Some(LeaseSpec {
        holder_identity: Some(me.to_string()),
        lease_duration_seconds: i32::try_from(DURATION.as_secs()).ok(),
        acquire_time: if is_taken { Some(now.clone()) } else { before.acquire_time },
        renew_time: Some(now),
        lease_transitions: Some(if is_taken { transitions.saturating_add(1) } else { transitions }),
        ..LeaseSpec::default()
    });
    lease
}
