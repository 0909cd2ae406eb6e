//! The provider: finds the nodes, orders their number, and says what is amiss.

use crate::event::Event;
use crate::keda::Keda;
use crate::orders::{self, Orders};
use crate::session::{Session, Unheard};
use crate::{permissions, watching};
use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};
use suimon_params::kubernetes::{KedaParams, KubernetesParams, OrdersParams, ScaleParams};
use tokio::sync::{mpsc, watch};

/// Why the provider does not start: a sentence with its remedy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// There is no way to the API server in the configuration.
    Configuration(String),
    /// Somebody else scales the same workload.
    Owned(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Configuration(why) | Refusal::Owned(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Refusal {}

/// Asks, before anything begins, whether somebody else scales the workload. An API server that does not say so within
/// seconds is no reason not to begin.
///
/// # Errors
/// There is no configuration; or a HorizontalPodAutoscaler or a ScaledObject scales what the gateway is to scale.
pub async fn check(params: KubernetesParams) -> Result<(), Refusal> {
    let (nobody, _) = mpsc::channel(1);
    let session = Session::begin(params, nobody, 0).await.map_err(Refusal::Configuration)?;
    let OrdersParams::Scale(ScaleParams { target, .. }) = &session.params.orders else { return Ok(()) };
    match orders::owner(&session, target).await {
        Ok(Some(owner)) => Err(Refusal::Owned(owner.refusal(target, &session.namespace))),
        Ok(None) | Err(_) => Ok(()),
    }
}

/// Runs until the sender of `wanted` is gone or nobody takes `events`.
///
/// A number that is told before all nodes were found, as that at the start is, is a floor: who told it did not know what
/// there is, so nothing of that is taken away. [`Event::Found`] says when they were.
///
/// # Errors
/// There is no configuration, or KEDA's port cannot be bound. All else, such as an API server that is away, a Role that
/// is too narrow or somebody else who scales the workload, is an [`Event::Trouble`] until it is over.
pub async fn run(
    params: KubernetesParams,
    wanted: watch::Receiver<u32>,
    events: mpsc::Sender<Event>,
) -> Result<(), Refusal> {
    let moment = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let seed = u64::try_from(moment % u128::from(u64::MAX)).unwrap_or_default();
    let orders = params.orders.clone();
    let session = Session::begin(params, events, seed).await.map_err(Refusal::Configuration)?;
    let order = async {
        match &orders {
            OrdersParams::Scale(params) => {
                scale(&session, params, wanted, seed).await;
                Ok(())
            }
            OrdersParams::Keda(params) => publish(&session, params, wanted).await,
        }
    };
    // Who has lost its listener has nothing more to do.
    tokio::select! {
        ended = order => ended,
        Unheard = watching::follow(&session) => Ok(()),
        Unheard = permissions::follow(&session) => Ok(()),
    }
}

/// Scales the workload, as long as nobody else does.
async fn scale(session: &Session, params: &ScaleParams, wanted: watch::Receiver<u32>, seed: u64) {
    let me = params.identity.clone().unwrap_or_else(|| identity(seed));
    Orders::new(session, params, wanted, me).follow().await;
}

/// Tells KEDA the number: what is wanted, and before that, what is there.
async fn publish(
    session: &Session,
    params: &KedaParams,
    mut wanted: watch::Receiver<u32>,
) -> Result<(), Refusal> {
    let address = params.listen;
    let keda = Keda::bind(params.clone()).await.map_err(|error| {
        Refusal::Configuration(format!(
            "the scaler for KEDA cannot listen at {address}: {error}: choose another nodes.listen"
        ))
    })?;
    let (number, told) = watch::channel(None);
    let forward = async {
        let mut found = session.found.subscribe();
        let Ok(Some(found)) = found.wait_for(Option::is_some).await.map(|found| *found) else { return };
        number.send_replace(Some(found.max(*wanted.borrow_and_update())));
        while wanted.changed().await.is_ok() {
            number.send_replace(Some(*wanted.borrow_and_update()));
        }
    };
    tokio::select! {
        () = keda.run(told) => {}
        () = forward => {}
    }
    Ok(())
}

/// Returns the name of this gateway among others: the pod's, and a number, as a container may be started anew in it.
fn identity(seed: u64) -> String {
    let host = std::env::var("HOSTNAME")
        .ok()
        .or_else(|| std::fs::read_to_string("/proc/sys/kernel/hostname").ok())
        .unwrap_or_default();
    format!("{}_{seed:x}", host.trim())
}
