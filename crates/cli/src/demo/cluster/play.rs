//! The act: gateway, crowd, and the death of a node.

use super::live::Live;
use super::outcome::{Clustered, Sample};
use crate::args::AdminAt;
use crate::demo::processes::{Gateway, INTERRUPTED, LOOK, PROGRESS_MAX, Processes};
use crate::demo::{Demo, Outcome};
use crate::{fetch, interrupt};
use std::collections::BTreeSet;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant, SystemTime};
use std::{env, fs, thread};
use suimon_admin::State;
use suimon_crowd::{Options, Report};
use suimon_process::{Signal, group};
use suimon_settings::journey;

/// How long it lasts by default, seconds.
const SECONDS: u32 = 90;
/// Shares of that: before the load triples, while it is tripled, afterwards; and when a node is killed.
const PARTS: [f64; 3] = [0.27, 0.4, 0.33];
const KILLED_AT: f64 = 0.5;
/// Sessions per second at first, and pages of each.
const PER_S: f64 = 6.0;
const PAGES: u32 = 5;
/// A node: requests at once, the mean time of one, and the share of it that is computed.
const SLOTS: u32 = 2;
const MEAN_MS: u32 = 100;
const CPU: f64 = 0.06;
/// The fewest and the most nodes.
const NODES: (u32, u32) = (1, 10);
/// How long the first node may take to serve.
const SERVING_WITHIN: Duration = Duration::from_secs(60);

/// What happens to a node.
#[derive(Default)]
struct Death {
    /// When, and the nodes that there were before.
    at: Option<(f64, BTreeSet<String>)>,
    replaced_after_s: Option<f64>,
}

pub(super) fn play(args: &Demo) -> Outcome<Clustered> {
    let began = httpdate::fmt_http_date(SystemTime::now());
    let processes = Processes::together()?;
    let seconds = args.seconds.unwrap_or(SECONDS);
    let phases: Vec<(f64, f64)> = PARTS
        .iter()
        .zip([PER_S, 3.0 * PER_S, PER_S])
        .map(|(part, per_s)| (part * f64::from(seconds), per_s))
        .collect();
    let cores = processes.cores.describe("nodes");
    let headline = format!("{PER_S:.0} sessions a second, then three times as many; {cores}");
    let mut live = Live::new(headline, f64::from(seconds), 3.0 * PER_S);
    let suimon = env::current_exe()?;
    let suimon = suimon.to_str().ok_or("the path of this program is not Unicode")?;
    let path = processes.folder().join("suimon.toml");
    fs::write(&path, settings(suimon))?;
    let mut gateway =
        processes.serve(&["--config".to_owned(), path.display().to_string()], || live.draw())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ask = |gateway: &Gateway| -> Option<State> {
        let body = runtime.block_on(fetch::get(&AdminAt::of(&gateway.admin), suimon_admin::STATE_PATH));
        serde_json::from_slice(&body.ok()?).ok()
    };
    let deadline = Instant::now() + SERVING_WITHIN;
    while ask(&gateway).and_then(|state| state.scaling).is_none_or(|nodes| nodes.serving < NODES.0) {
        live.draw();
        gateway.process.must_run()?;
        if interrupt::asked() {
            return Err(INTERRUPTED.into());
        }
        if Instant::now() > deadline {
            return Err(format!("no node came to serve:\n{}", gateway.process.last_words()).into());
        }
        thread::sleep(LOOK);
    }
    let (visitors, samples, death) = watch(args, seconds, &phases, &mut gateway, &mut live, ask)?;
    live.end();
    Ok(Clustered {
        version: env!("CARGO_PKG_VERSION"),
        began,
        cores,
        seconds,
        settings: settings("suimon"),
        phases,
        node_sessions_per_s: f64::from(SLOTS) / (f64::from(MEAN_MS) / 1000.0) / f64::from(PAGES),
        killed_at_s: death.at.map(|(at, _)| at),
        replaced_after_s: death.replaced_after_s,
        samples,
        visitors,
    })
}

/// Plays the crowd and watches the nodes, one of which it kills.
fn watch(
    args: &Demo,
    seconds: u32,
    phases: &[(f64, f64)],
    gateway: &mut Gateway,
    live: &mut Live,
    ask: impl Fn(&Gateway) -> Option<State>,
) -> Outcome<(Report, Vec<Sample>, Death)> {
    let (sender, progress) = sync_channel(PROGRESS_MAX);
    let options = Options {
        base_url: gateway.url.clone(),
        workload: journey::read(&journey_of(args.seed, phases))?,
        seed: Some(args.seed),
        warmup: Duration::ZERO,
        measure: Some(Duration::from_secs(seconds.into())),
        progress: Some(Box::new(move |progress| drop(sender.try_send(progress.clone())))),
    };
    let began = Instant::now();
    let play = || suimon_crowd::run(options, interrupt::first());
    let crowd = thread::Builder::new().name("crowd".to_owned()).spawn(play)?;
    let mut samples: Vec<Sample> = Vec::new();
    let mut death = Death::default();
    loop {
        match progress.recv_timeout(LOOK) {
            Ok(progress) => live.progress(&progress),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        gateway.process.must_run()?;
        let at_s = began.elapsed().as_secs_f64();
        // A moment without a response is only a gap in the figures.
        if let Some(state) = ask(gateway)
            && let Some(sample) = Sample::of(&state, at_s)
        {
            let why =
                state.scaling.as_ref().and_then(|nodes| Some(nodes.last.as_ref()?.explanation.as_str()));
            live.nodes(sample, why);
            death.look(&state, at_s, live);
            if death.at.is_none()
                && at_s >= KILLED_AT * f64::from(seconds)
                && sample.starting + sample.draining == 0
                && kill_one(gateway)?
            {
                let before = state.nodes.iter().map(|node| node.address.clone());
                death.at = Some((at_s, before.collect()));
                live.killed(format!("a node was killed at {at_s:.0} s"));
            }
            samples.push(sample);
        }
        live.draw();
    }
    let visitors = crowd.join().map_err(|_| "the crowd ended before its time")??;
    if interrupt::asked() {
        return Err(INTERRUPTED.into());
    }
    Ok((visitors, samples, death))
}

impl Death {
    /// Notes when a node serves that was not there before.
    fn look(&mut self, state: &State, at_s: f64, live: &mut Live) {
        let Some((at, before)) = self.at.as_ref().filter(|_| self.replaced_after_s.is_none()) else { return };
        if state.nodes.iter().any(|node| node.status == "up" && !before.contains(&node.address)) {
            let after = at_s - at;
            live.killed(format!("a node was killed at {at:.0} s; another served {after:.1} s later"));
            self.replaced_after_s = Some(after);
        }
    }
}

/// Kills a node of the gateway; returns whether there was one.
fn kill_one(gateway: &Gateway) -> Outcome<bool> {
    let is_node = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).nth(1) == Some(b"lab-node")
    };
    let node = group::tree(gateway.process.pid())?.into_iter().find(is_node);
    if let Some(pid) = node {
        group::signal(pid, Signal::KILL);
    }
    Ok(node.is_some())
}

/// Returns the settings with this program as the node's.
fn settings(suimon: &str) -> String {
    format!(
        "[nodes]\nprovider = \"processes\"\ncommand = [\n    {suimon:?}, \"lab-node\",\n    \"--port\", \"{{port}}\",\n    \
         \"--slots\", \"{SLOTS}\",\n    \"--mean\", \"{MEAN_MS}ms\",\n    \"--cpu\", \"{CPU}\",\n]\nready = \"/ready\"\n\
         min = {}\nmax = {}\nprocessors = {:.2}\n",
        NODES.0,
        NODES.1,
        f64::from(SLOTS) * CPU
    )
}

fn journey_of(seed: u64, phases: &[(f64, f64)]) -> String {
    let phases: Vec<String> = phases
        .iter()
        .map(|(lasts, per_s)| format!("{{ for = \"{:.0}ms\", rate_per_s = {per_s} }}", lasts * 1000.0))
        .collect();
    let steps: String = (1..=PAGES)
        .map(|page| format!("[[journey.steps]]\nname = \"page {page}\"\npath = \"/page\"\nexpect = {{ status = 200, text = \"served by\" }}\n\n"))
        .collect();
    format!(
        "seed = {seed}\n\n[arrivals.open]\nphases = [{}]\n\n[visitor]\nthink = {{ mean = \"300ms\", shape = \"exponential\" }}\n\
         patience = \"20s\"\nreturning = false\n\n[[journey]]\nname = \"visit\"\n\n{steps}",
        phases.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_journey_is_one_the_crowd_understands_and_the_settings_are_sound() {
        let text = journey_of(1, &[(3.5, 5.0), (6.0, 15.0)]);
        journey::read(&text).unwrap_or_else(|faults| panic!("{faults}\n{text}"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("suimon.toml");
        fs::write(&path, settings("/bin/suimon")).unwrap();
        suimon_settings::Settings::load(&path).unwrap_or_else(|faults| panic!("{faults}"));
    }
}
