//! The acts: each job by itself, without Suimon, with a wished ratio, with a floor.

use super::live::Live;
use super::outcome::{Act, Degraded, Front, Pause, Side};
use crate::args::AdminAt;
use crate::demo::processes::{Gateway, INTERRUPTED, LOOK, PROGRESS_MAX, Processes, url_in};
use crate::demo::{Demo, Outcome};
use crate::{fetch, interrupt, whole_file};
use hyper::header::HeaderMap;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use suimon_crowd::profile::{self, Ended, News, Options, Plan, PointReport, ProfileReport, Role, Service};
use suimon_process::{Program, Running};

const LIGHT: &str = "/jobs/light";
const HEAVY: &str = "/jobs/heavy";
/// Clients of each service.
const LIGHT_CLIENTS: u32 = 30;
const HEAVY_CLIENTS: u32 = 20;
/// The number that a light job computes, and bytes of the file that a heavy one parses: so few that
/// a load drains in seconds.
const FIBONACCI: u32 = 30;
const HEAVY_BYTES: u32 = 300_000;
/// Seconds of each act that are not measured; for which each job is measured by itself, and before
/// that; for which light jobs are measured without heavy ones; in all of an act, about, for what is
/// in flight at its end.
const SETTLE_S: f64 = 10.0;
const ALONE_S: f64 = 2.5;
const ALONE_SETTLE_S: f64 = 1.0;
/// The shortest measurement of a job by itself, in a demo however short: the first jobs of a JVM on
/// a busy machine take seconds.
const ALONE_LEAST_S: f64 = 6.0;
const MOST_S: f64 = 6.0;
const DRAIN_S: f64 = 6.0;
/// How long a job may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// The wishes: the ratio of the slowdowns, and the floor as a share of what light jobs can be done
/// without heavy ones.
const RATIO: f64 = 2.0;
const FLOOR: f64 = 0.75;
/// How long each act is measured by default, seconds.
const SECONDS: u32 = 16;

struct Stage {
    processes: Processes,
    runtime: tokio::runtime::Runtime,
    live: Live,
    application: Running,
    url: String,
    seconds: f64,
    /// All other times are multiplied by it: a short demo is short.
    scale: f64,
}

/// What was seen of a load.
struct Seen {
    report: ProfileReport,
    pauses: Vec<Pause>,
}

pub(super) fn play(args: &Demo) -> Outcome<Degraded> {
    let began = httpdate::fmt_http_date(SystemTime::now());
    let processes = Processes::new()?;
    let cores = processes.cores.describe("Tomcat");
    let seconds = f64::from(args.seconds.unwrap_or(SECONDS));
    let scale = (seconds / f64::from(SECONDS)).min(1.0);
    let alone = 2.0 * (ALONE_SETTLE_S + ALONE_S);
    let whole = 5.0 + scale * (4.0 * alone + MOST_S + 3.0 * SETTLE_S) + 3.0 * (seconds + DRAIN_S);
    let headline =
        format!("{LIGHT_CLIENTS} clients for a light job, {HEAVY_CLIENTS} for a heavy one, {cores}");
    let mut live = Live::new(headline, whole);
    live.begin("alone");
    let program = Program::new("tomcat", "java")
        .arg(format!("-Djava.io.tmpdir={}", processes.folder().display()))
        .args(["-XX:+UseSerialGC", "-Xms512m", "-Xmx512m", "-jar"])
        .arg(args.jar.display())
        .args(["--port", "0", "--threads", "200", "--fibonacci", &FIBONACCI.to_string()])
        .args(["--heavy-size".to_owned(), HEAVY_BYTES.to_string()])
        // The shop's pages are not asked for; what they cost need not be measured.
        .args(["--light-work", "1", "--search-repeats", "1"]);
    let program = processes.cores.application(program);
    let (application, [line]) = processes
        .start(program, ["listening on "], || live.draw())
        .map_err(|why| format!("{why}\nIs Java 17 or later there (java -version)?"))?;
    let mut stage = Stage {
        runtime: tokio::runtime::Builder::new_current_thread().enable_all().build()?,
        processes,
        live,
        application,
        url: url_in(&line)?,
        seconds,
        scale,
    };
    let most = stage.most()?;
    let floor = (FLOOR * most).round();
    let acts =
        [stage.act(Front::Nothing, floor)?, stage.act(Front::Ratio, floor)?, stage.act(Front::Floor, floor)?];
    stage.live.end();
    Ok(Degraded {
        version: env!("CARGO_PKG_VERSION"),
        began,
        cores,
        light_clients: LIGHT_CLIENTS,
        heavy_clients: HEAVY_CLIENTS,
        light_most_per_s: most,
        ratio_wished: RATIO,
        floor_per_s: floor,
        acts,
    })
}

impl Stage {
    /// Measures how many light jobs are done a second without heavy ones.
    fn most(&mut self) -> Outcome<f64> {
        let url = self.url.clone();
        // The first time compiles the jobs.
        let (light_s, heavy_s) = self.alone(&url, None)?;
        let seen =
            self.load(&url, plan(vec![0], false, self.scale * ALONE_SETTLE_S, self.scale * MOST_S)?, None)?;
        let most = seen.report.points.iter().find_map(|point| point.light.as_ref());
        let most = most.map(|light| light.per_second).filter(|most| *most > 0.0);
        let most = most.ok_or("no light job was done")?;
        self.live.alone(light_s, heavy_s, most);
        Ok(most)
    }

    /// Returns the mean seconds of a light and of a heavy job by itself. From these requests a
    /// gateway learns them.
    fn alone(&mut self, url: &str, gateway: Option<&mut Gateway>) -> Outcome<(f64, f64)> {
        // A job alone is measured for a quarter of the time.
        let (settle_s, measured_s) =
            (self.scale * ALONE_SETTLE_S, (4.0 * self.scale * ALONE_S).max(ALONE_LEAST_S));
        let seen = self.load(url, plan(vec![], true, settle_s, measured_s)?, gateway)?;
        let mean = |role: Role| {
            let of = |point: &PointReport| Some(point.service(role)?.response).filter(|all| all.count > 0);
            seen.report.points.iter().find_map(of).map(|all| all.mean_s)
        };
        Ok(mean(Role::Light).zip(mean(Role::Heavy)).ok_or("a job by itself was not answered")?)
    }

    fn act(&mut self, front: Front, floor: f64) -> Outcome<Act> {
        self.live.begin(&front.title(RATIO, floor));
        let settings = settings(front, floor);
        let mut gateway = match &settings {
            Some(text) => {
                let path = self.processes.folder().join("gateway.toml");
                whole_file::write(&path, text)?;
                let config = ["--config".to_owned(), path.display().to_string()];
                Some(self.processes.gateway(&self.url, &config, || self.live.draw())?)
            }
            None => None,
        };
        let url = gateway.as_ref().map_or(&self.url, |gateway| &gateway.url).clone();
        let (light_s, heavy_s) = self.alone(&url, gateway.as_mut())?;
        let plan = plan(vec![HEAVY_CLIENTS], false, self.scale * SETTLE_S, self.seconds)?;
        let Seen { report, pauses } = self.load(&url, plan, gateway.as_mut())?;
        let point = report.points.first().ok_or("nothing was measured")?;
        let sides = Side::of(point, Role::Light, LIGHT_CLIENTS, light_s).zip(Side::of(
            point,
            Role::Heavy,
            HEAVY_CLIENTS,
            heavy_s,
        ));
        let (light, heavy) =
            sides.ok_or("of one of the jobs none was done in time; a longer --seconds may help")?;
        let act = Act {
            front,
            settings,
            ratio: heavy.slowdown / light.slowdown,
            light,
            heavy,
            measured_from_s: point.measured_from_s,
            measured_to_s: point.to_s,
            series: report.series.clone(),
            pauses,
        };
        self.live.act(&act);
        Ok(act)
    }

    /// Plays the plan, and shows the progress.
    fn load(&mut self, url: &str, plan: Plan, mut gateway: Option<&mut Gateway>) -> Outcome<Seen> {
        let (sender, progress) = sync_channel(PROGRESS_MAX);
        let news = move |news: &News<'_>| {
            if let News::Tick(progress) = news {
                // What nobody has time to show is not shown.
                let _ = sender.try_send(**progress);
            }
        };
        let options = Options {
            target: url.to_owned(),
            allow_remote: false,
            headers: HeaderMap::new(),
            plan,
            news: Some(Box::new(news)),
        };
        let play = || profile::run(options, interrupt::first());
        let (began, mut pauses) = (Instant::now(), Vec::new());
        let crowd = thread::Builder::new().name("crowd".to_owned()).spawn(play)?;
        loop {
            match progress.recv_timeout(LOOK) {
                Ok(progress) => {
                    self.live.progress(&progress);
                    let pause = gateway.as_ref().and_then(|gateway| self.pause(gateway));
                    let at_s = began.elapsed().as_secs_f64();
                    pauses.extend(pause.map(|seconds| Pause { at_s, seconds }));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.live.draw();
            self.application.must_run()?;
            gateway.as_mut().map_or(Ok(()), |gateway| gateway.process.must_run())?;
        }
        let report = crowd.join().map_err(|_| "the crowd ended before its time")??;
        match report.ended {
            Ended::AllPoints => Ok(Seen { report, pauses }),
            Ended::Errors => Err(report.why.unwrap_or_else(|| "too much failed".to_owned()).into()),
            Ended::Interrupted => Err(INTERRUPTED.into()),
        }
    }

    /// Returns the pause that each heavy request gets now. A second without a response is only a
    /// gap in the figures.
    fn pause(&self, gateway: &Gateway) -> Option<f64> {
        let body =
            self.runtime.block_on(fetch::get(&AdminAt::of(&gateway.admin), suimon_admin::STATE_PATH)).ok()?;
        let state: suimon_admin::State = serde_json::from_slice(&body).ok()?;
        state.services.iter().find(|service| service.name == "heavy").map(|service| service.pause_ms / 1e3)
    }
}

/// Returns a gateway's settings: the services and the wish.
fn settings(front: Front, floor: f64) -> Option<String> {
    let (light, heavy, mode) = match front {
        Front::Nothing => return None,
        Front::Ratio => (String::new(), format!("slowdown = {RATIO}\n"), "slowdown"),
        Front::Floor => (format!("floor = \"{floor}/s\"\n"), String::new(), "bands"),
    };
    // Its clients are no visitors with sessions.
    Some(format!(
        "[gate]\nsession_law = \"open\"\n\n[[service]]\nname = \"light\"\nroutes = [\"GET {LIGHT}\"]\n{light}\n\
         [[service]]\nname = \"heavy\"\nroutes = [\"GET {HEAVY}\"]\n{heavy}\n\
         [degradation]\nmode = \"{mode}\"\n"
    ))
}

fn plan(heavy: Vec<u32>, alone: bool, warmup_s: f64, measure_s: f64) -> Outcome<Plan> {
    Ok(Plan {
        light: Service::parse(LIGHT)?,
        heavy: Service::parse(HEAVY)?,
        light_in_flight: LIGHT_CLIENTS,
        heavy_in_flight: heavy,
        warmup: Duration::from_secs_f64(warmup_s),
        measure: Duration::from_secs_f64(measure_s),
        timeout: PATIENCE,
        errors_max: 0.1,
        new_connections: false,
        alone,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_gateway_is_told_what_it_understands() {
        let folder = tempfile::tempdir().unwrap();
        for front in [Front::Ratio, Front::Floor] {
            let (path, text) = (folder.path().join("gateway.toml"), settings(front, 1_200.0).unwrap());
            std::fs::write(&path, &text).unwrap();
            suimon_settings::Settings::load(&path).unwrap_or_else(|faults| panic!("{faults}\n{text}"));
        }
        assert_eq!(settings(Front::Nothing, 1.0), None);
    }
}
