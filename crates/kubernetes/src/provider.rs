//! The provider: finds the nodes, orders their number, and says what is amiss.

use crate::contact::{Backoff, Topic};
use crate::event::Event;
use crate::orders::{self, Orders};
use crate::params::KubernetesParams;
use crate::session::{Session, Unheard};
use crate::{permissions, watching};
use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};
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

/// Runs until the sender of `wanted` is gone or nobody takes `events`.
///
/// The number that `wanted` has at the start is not an order: nothing is written before it is sent anew, so that a
/// gateway that has just started does not take away what there is.
///
/// # Errors
/// There is no configuration, or a HorizontalPodAutoscaler or a ScaledObject scales the workload at the start. All else,
/// such as an API server that is away or a Role that is too narrow, is an [`Event::Trouble`] until it is over.
pub async fn run(
    params: KubernetesParams,
    wanted: watch::Receiver<u32>,
    events: mpsc::Sender<Event>,
) -> Result<(), Refusal> {
    let moment = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let seed = u64::try_from(moment % u128::from(u64::MAX)).unwrap_or_default();
    let me = params.identity.clone().unwrap_or_else(|| identity(seed));
    let session = Session::begin(params, events, seed).await.map_err(Refusal::Configuration)?;

    // Who has lost its listener has nothing more to do.
    let talk = async {
        let orders = async {
            begin(&session).await?;
            Orders::new(&session, wanted, me).follow().await;
            Ok(())
        };
        tokio::select! {
            ended = orders => ended,
            Unheard = watching::follow(&session) => Ok(()),
            Unheard = permissions::follow(&session) => Ok(()),
        }
    };
    talk.await
}

/// Waits until it is known who scales the workload.
async fn begin(session: &Session) -> Result<(), Refusal> {
    let mut backoff = Backoff::default();
    loop {
        let fault = match orders::owner(session).await {
            Ok(None) => return Ok(()),
            Ok(Some(owner)) => {
                return Err(Refusal::Owned(owner.refusal(&session.params.target, &session.namespace)));
            }
            Err(fault) => fault,
        };
        let doing = "list those who scale the workload";
        if session.failed(Topic::Owner, doing, &fault).await.is_err() {
            return Ok(());
        }
        tokio::time::sleep(backoff.after_failure(session.chance())).await;
    }
}

/// Returns the name of this gateway among others: the pod's, and a number, as a container may be started anew in it.
fn identity(seed: u64) -> String {
    let host = std::env::var("HOSTNAME")
        .ok()
        .or_else(|| std::fs::read_to_string("/proc/sys/kernel/hostname").ok())
        .unwrap_or_default();
    format!("{}_{seed:x}", host.trim())
}
