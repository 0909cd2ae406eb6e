//! What all conversations with the API server share: the client, the words to the gateway, and how long an answer may
//! take.

use crate::contact::{Topic, Troubles, Word};
use crate::event::Event;
use k8s_openapi::api::autoscaling::v1::Scale;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use std::error::Error;
use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use suimon_model::Rng;
use suimon_params::kubernetes::{KubernetesParams, Target};
use tokio::sync::{Notify, mpsc, watch};

/// How long an answer may take; an API server that takes longer is away.
const ANSWER: Duration = Duration::from_secs(10);
/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(5);

/// Why the API server did not do what was asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// It cannot be reached, is overloaded, or has an error of its own.
    Away(String),
    /// We may not.
    Forbidden(String),
    /// There is no such object.
    Missing,
    /// The object has changed since it was read, or is there already.
    Conflict,
    /// What happened since the version asked for is not known any more.
    Expired,
    /// It does not accept what was asked.
    Refused(String),
}

impl From<kube::Error> for Fault {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Fault::of_status(status.code, &status.message),
            error => Fault::Away(chain(&error)),
        }
    }
}

impl Fault {
    /// Returns what an answer with this status means.
    pub(crate) fn of_status(code: u16, message: &str) -> Fault {
        match code {
            401 => Fault::Away(format!("it does not accept our credentials: {message}")),
            403 => Fault::Forbidden(message.to_string()),
            404 => Fault::Missing,
            409 => Fault::Conflict,
            410 => Fault::Expired,
            429 | 500.. => Fault::Away(format!("status {code}: {message}")),
            _ => Fault::Refused(format!("status {code}: {message}")),
        }
    }
}

/// Returns an error with what it rests on, each once.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut below = error.source();
    while let Some(error) = below {
        let words = error.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        below = error.source();
    }
    text
}

/// The gateway does not listen any more.
pub(crate) struct Unheard;

/// A conversation with one API server.
pub(crate) struct Session {
    client: Client,
    /// Where everything is.
    pub(crate) namespace: String,
    pub(crate) params: KubernetesParams,
    troubles: Mutex<Troubles>,
    events: mpsc::Sender<Event>,
    /// What the API server said when it last forbade something.
    forbidden: Mutex<Option<String>>,
    /// Wakes who looks at permissions.
    pub(crate) doubt: Notify,
    rng: Mutex<Rng>,
    /// How many nodes were ready when they were listed first.
    pub(crate) found: watch::Sender<Option<u32>>,
}

impl Session {
    /// Connects to nothing yet.
    ///
    /// # Errors
    /// There is neither a service account nor a kubeconfig, or it cannot be used: a sentence.
    pub(crate) async fn begin(
        params: KubernetesParams,
        events: mpsc::Sender<Event>,
        seed: u64,
    ) -> Result<Self, String> {
        let mut config = match &params.kubeconfig {
            Some(path) => {
                let file = Kubeconfig::read_from(path)
                    .map_err(|error| format!("kubeconfig {}: {}", path.display(), chain(&error)))?;
                Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
                    .await
                    .map_err(|error| format!("kubeconfig {}: {}", path.display(), chain(&error)))?
            }
            None => match Config::incluster() {
                Ok(config) => config,
                Err(no_pod) => Config::from_kubeconfig(&KubeConfigOptions::default()).await.map_err(|error| {
                    format!(
                        "this is no pod with a service account ({}), and there is no kubeconfig that can be used ({}): \
                         set nodes.kubernetes.kubeconfig, or automountServiceAccountToken: true in the pod",
                        chain(&no_pod),
                        chain(&error)
                    )
                })?,
            },
        };
        // Ours are better informed.
        config.default_retry = false;
        config.connect_timeout = Some(CONNECT);
        let namespace = params.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        let client = Client::try_from(config)
            .map_err(|error| format!("no client for the API server can be made: {}", chain(&error)))?;
        Ok(Session {
            client,
            namespace,
            params,
            troubles: Mutex::default(),
            events,
            forbidden: Mutex::default(),
            doubt: Notify::new(),
            rng: Mutex::new(Rng::new(seed)),
            found: watch::channel(None).0,
        })
    }

    /// Returns the door to objects of a kind in the namespace.
    pub(crate) fn objects<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Returns the door to objects that belong to no namespace.
    pub(crate) fn unplaced<K>(&self) -> Api<K>
    where
        K: kube::Resource,
        K::DynamicType: Default,
    {
        Api::all(self.client.clone())
    }

    /// Returns the door to objects of a kind that is known by name only.
    pub(crate) fn by_name(&self, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }

    /// Returns how the workload is scaled.
    pub(crate) async fn scale(&self, target: &Target) -> Result<Scale, Fault> {
        let workloads = self.by_name(target.group(), target.version(), &target.kind);
        answer(workloads.get_scale(&target.name)).await
    }

    /// Writes the number of replicas, if the workload still has this version.
    pub(crate) async fn write_scale(
        &self,
        target: &Target,
        replicas: u32,
        version: &str,
    ) -> Result<(), Fault> {
        let workloads = self.by_name(target.group(), target.version(), &target.kind);
        let patch = serde_json::json!({
            "metadata": { "resourceVersion": version },
            "spec": { "replicas": replicas },
        });
        let patch = kube::api::Patch::Merge(patch);
        answer(workloads.patch_scale(&target.name, &kube::api::PatchParams::default(), &patch))
            .await
            .map(drop)
    }

    /// Tells the gateway.
    pub(crate) async fn tell(&self, event: Event) -> Result<(), Unheard> {
        self.events.send(event).await.map_err(|_| Unheard)
    }

    /// Says what is amiss with a topic, or that nothing is.
    pub(crate) async fn about(&self, topic: Topic, sentence: Option<String>) -> Result<(), Unheard> {
        let word = lock(&self.troubles).set(topic, sentence);
        self.say(word).await
    }

    /// The API server has answered.
    pub(crate) async fn heard(&self) -> Result<(), Unheard> {
        let word = lock(&self.troubles).heard();
        self.say(word).await
    }

    /// Says what a fault means that has no meaning of its own where it came up.
    pub(crate) async fn failed(&self, topic: Topic, doing: &str, fault: &Fault) -> Result<(), Unheard> {
        let word = match fault {
            Fault::Away(why) => lock(&self.troubles).unheard(Instant::now(), why),
            Fault::Forbidden(message) => {
                *lock(&self.forbidden) = Some(message.clone());
                self.doubt.notify_one();
                lock(&self.troubles).heard()
            }
            Fault::Refused(why) => {
                let sentence = format!("the API server does not accept to {doing}: {why}");
                lock(&self.troubles).set(topic, Some(sentence))
            }
            Fault::Missing | Fault::Conflict | Fault::Expired => lock(&self.troubles).heard(),
        };
        self.say(word).await
    }

    /// Returns what the API server said when it last forbade something, once.
    pub(crate) fn take_forbidden(&self) -> Option<String> {
        lock(&self.forbidden).take()
    }

    /// Returns a random number between 0 and 1.
    pub(crate) fn chance(&self) -> f64 {
        lock(&self.rng).uniform()
    }

    async fn say(&self, word: Option<Word>) -> Result<(), Unheard> {
        match word {
            Some(Word::Trouble(sentence)) => self.tell(Event::Trouble(sentence)).await,
            Some(Word::Well) => self.tell(Event::Well).await,
            None => Ok(()),
        }
    }
}

/// Waits for an answer, but not for ever.
pub(crate) async fn answer<T>(asked: impl Future<Output = kube::Result<T>>) -> Result<T, Fault> {
    match tokio::time::timeout(ANSWER, asked).await {
        Ok(answer) => answer.map_err(Fault::from),
        Err(_) => Err(Fault::Away(format!("no answer within {} s", ANSWER.as_secs()))),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
