//! How long a shutdown may take where `timeouts.drain` is left out: less than whoever ends the gateway
//! waits for it before it kills.

use std::env;
use std::path::Path;
use std::time::Duration;
use suimon_settings::Settings;

/// Where the gateway runs, as far as it can be seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Surroundings {
    /// In a pod, which has `terminationGracePeriodSeconds` to end: 30 s unless told otherwise.
    Kubernetes,
    /// In another container: `docker stop` waits for 10 s.
    Container,
    /// On a machine of its own: systemd waits for 90 s (`TimeoutStopSec=`).
    Machine,
}

impl Surroundings {
    /// Returns where this process runs.
    pub(super) fn here() -> Self {
        Surroundings::of(|name| env::var_os(name).is_some_and(|value| !value.is_empty()), Path::exists)
    }

    fn of(is_set: impl Fn(&str) -> bool, exists: impl Fn(&Path) -> bool) -> Self {
        let files = ["/.dockerenv", "/run/.containerenv"];
        if is_set("KUBERNETES_SERVICE_HOST") {
            Surroundings::Kubernetes
        } else if is_set("container") || files.iter().any(|file| exists(Path::new(file))) {
            Surroundings::Container
        } else {
            Surroundings::Machine
        }
    }

    fn drain(self) -> Duration {
        Duration::from_secs(match self {
            Surroundings::Kubernetes => 25,
            Surroundings::Container => 9,
            Surroundings::Machine => 70,
        })
    }

    fn why(self) -> &'static str {
        match self {
            Surroundings::Kubernetes => "in Kubernetes a pod is killed after 30 s",
            Surroundings::Container => "a container is killed after 10 s",
            Surroundings::Machine => "systemd kills after 90 s",
        }
    }
}

/// Chooses the time for a shutdown, if the settings leave it out.
pub(super) fn choose(settings: &mut Settings, surroundings: Surroundings) {
    if !settings.has_drain {
        settings.proxy.timeouts.drain = surroundings.drain();
    }
}

/// Tells what was chosen, and why.
pub(super) fn tell(settings: &Settings, surroundings: Surroundings) {
    if !settings.has_drain {
        tracing::info!(
            "a shutdown waits for what is under way for {} s at most: {} unless told otherwise; timeouts.drain sets another time",
            settings.proxy.timeouts.drain.as_secs(),
            surroundings.why()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shutdown_ends_before_it_is_ended() {
        let of = |variable: &'static str, file: &'static str| {
            Surroundings::of(move |name| name == variable, move |path| path == Path::new(file))
        };
        for (variable, file, expected, killed_after) in [
            ("KUBERNETES_SERVICE_HOST", "/.dockerenv", Surroundings::Kubernetes, 30),
            ("container", "", Surroundings::Container, 10),
            ("", "/.dockerenv", Surroundings::Container, 10),
            ("", "/run/.containerenv", Surroundings::Container, 10),
            ("", "", Surroundings::Machine, 90),
        ] {
            assert_eq!(of(variable, file), expected);
            assert!(expected.drain() < Duration::from_secs(killed_after));
        }
    }

    #[test]
    fn a_time_that_is_said_counts() {
        let mut settings = Settings::parse("test", "[timeouts]\ndrain = \"3s\"\n").unwrap();
        choose(&mut settings, Surroundings::Container);
        assert_eq!(settings.proxy.timeouts.drain, Duration::from_secs(3));
        let mut settings = Settings::default();
        choose(&mut settings, Surroundings::Container);
        assert_eq!(settings.proxy.timeouts.drain, Duration::from_secs(9));
    }
}
