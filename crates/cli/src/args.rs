//! The command line of `suimon`, with its help texts.

mod admin;
mod agent;
mod lab_node;
mod overrides;
mod pool;

pub(crate) use admin::{AdminAt, AdminListen};
pub(crate) use agent::Agent;
pub(crate) use lab_node::LabNode;
pub(crate) use overrides::{Override, OverrideCommand, OverrideFor, OverrideOf};
pub(crate) use pool::{Pool, PoolCommand, PoolOf, Workers};

use crate::demo::Demo;
use crate::profile::Profile;
use crate::sim::Sim;
use clap::{Args, Parser, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use suimon_params::Recording;
use suimon_settings::{duration, parse_size};

/// The floodgate: stands in front of a web application and admits only as many sessions as will
/// finish.
#[derive(Parser, Debug)]
#[command(
    name = "suimon",
    version,
    about = "The floodgate: admits only as many sessions as will finish, keeps everyone else in a fair line, and finds every limit by itself.",
    after_help = "Examples:
  suimon demo                                 see it work, in about two minutes; needs nothing else
  suimon serve --to http://127.0.0.1:8080     protect the application on port 8080; visitors come to port 8000
  suimon status                               what the gateway does right now, and why
  suimon check suimon.toml                    everything that is wrong with a settings file
  suimon override list                        what an operator has overridden, and until when
  suimon pool status                          the workers that the gateway runs itself, if it does
  suimon sim scenarios/                       what would happen, with other visitors, machines or laws
  suimon report gate.rec                      what a recorded gateway did, as a page with charts

Exit codes: 0 success; 1 a check or expectation failed, or a run-time error; 2 wrong usage or settings.",
    disable_help_subcommand = true,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Stand in front of an application.
    Serve(Serve),
    /// Report everything that is wrong with a settings, journey or scenario file; open no port.
    Check(Check),
    /// Show what a running gateway does right now, and why.
    Status(Status),
    /// Show or control the lines of a running gateway, or preview the waiting page.
    WaitingRoom(WaitingRoom),
    /// Show or command the pools of workers of a running gateway.
    Pool(Pool),
    /// Override limits, gate or nodes of a running gateway for a while.
    Override(Override),
    /// Run on a node: report its load to gateways, and answer HAProxy's agent-check.
    Agent(Agent),
    /// Play visitors over real HTTP and report what they experience.
    Crowd(Crowd),
    /// Load a site to find how much each of two services slows down as load rises.
    Profile(Profile),
    /// Simulate scenarios, or replay a recording, in virtual time.
    Sim(Sim),
    /// Show what a recorded gateway did, and why, as a page with charts.
    Report(Report),
    /// Run the bundled shop: an application that can be overloaded.
    Shop(Shop),
    /// Run one node of a made-up application, for the demo and experiments.
    #[command(hide = true)]
    LabNode(LabNode),
    /// Demo: the same crowd visits the bundled shop, first without and then with Suimon.
    Demo(Demo),
    /// Print what completes this command in a shell.
    Completions(Completions),
    /// Write the man pages into a folder, for packages.
    #[command(hide = true)]
    Manual(Manual),
}

#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:
  suimon completions bash > /etc/bash_completion.d/suimon
  suimon completions fish > ~/.config/fish/completions/suimon.fish
  suimon completions zsh > ~/.zfunc/_suimon")]
pub(crate) struct Completions {
    /// The shell.
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Manual {
    /// The folder, which is made if it is not there: suimon.1 and a page for each command.
    pub(crate) folder: PathBuf,
}

#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:
  suimon serve --to http://127.0.0.1:8080
  suimon serve --to http://10.0.0.5:8080 --to http://10.0.0.6:8080 --listen 0.0.0.0:80
  suimon serve --config /etc/suimon.toml
  suimon serve --to http://127.0.0.1:8080 --record gate.rec
  suimon serve --user www-data -- php-cgi           the folder it is called in, as PHP; no other server is needed
  suimon serve -- ./app --unix {socket}             workers that speak HTTP

Nothing needs to be configured: routes, concurrency limits and the admission rate are found from traffic.
Flags take precedence over the file. suimon.example.toml shows every setting with its default.

Keys that sign the lease cookie are kept in lease.keys in the state folder: $STATE_DIRECTORY (set by systemd), else
$XDG_STATE_HOME/suimon, else ~/.local/state/suimon. Gateways with the same visitors need the same file. If no such folder can be
used, keys are kept in memory only, and a warning is logged.

What is learned of the application is kept in learned-ADDRESS-PORT.json there, by the address of --listen, so that after a restart the
gateway continues where it was. A file that is damaged, or of another application, is renamed, and a warning is logged. The line is
in waiting-room-PORT.json, and overrides in overrides-ADDRESS-PORT.json, in the same folder.

A recording contains, by route, when requests arrived, waited, were answered or were abandoned, and random numbers for their sessions; no
addresses, cookies, queries or bodies. FILE is the segment being written; full segments, and those of earlier runs, are renamed to
FILE.000001 and so on. If FILE exists and is not a recording, the gateway does not start. If the disk cannot keep up, the recording
stops; requests never wait for it.

SIGTERM or Ctrl-C: newcomers are refused, requests under way finish, then the process exits. A second signal: shutting down immediately.
SIGHUP: the settings file is read again, checked whole, and adopted whole or not at all; the log says what has changed. So is a file that
is watched (--watch-config), and one that is posted to /api/config of the admin listener.")]
pub(crate) struct Serve {
    /// Settings file; see `suimon check`.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Adopt the settings file whenever its content has changed, as SIGHUP does.
    #[arg(long, requires = "config")]
    pub(crate) watch_config: bool,
    /// Upstream URL of the application: http://HOST[:PORT]. Repeat it for several nodes.
    #[arg(long, value_name = "URL")]
    pub(crate) to: Vec<String>,
    /// Where visitors connect; port 0 takes a free one. [default: 0.0.0.0:8000]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,
    /// Address of the admin listener, for metrics and `suimon status`; or unix:/path; or "off".
    /// [default: 127.0.0.1:8001]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) admin: Option<AdminListen>,
    /// File with the keys that sign leases; created if missing; or "none".
    #[arg(long, value_name = "FILE")]
    pub(crate) lease_keys: Option<PathBuf>,
    /// File that keeps the learned state over a restart; or "none".
    #[arg(long, value_name = "FILE")]
    pub(crate) learned: Option<PathBuf>,
    /// Record all events of the gate in this file, for `suimon report` and `suimon sim --replay`.
    /// An existing recording is renamed.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Maximum size of the recording, all its files together; the oldest file is removed. [default:
    /// 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = recording_size)]
    pub(crate) record_bytes_max: Option<u64>,
    /// What is logged: error, warn, info, debug, trace, or by part. [default: $SUIMON_LOG, else
    /// log.filter of the settings, else info]
    #[arg(long, value_name = "FILTER")]
    pub(crate) log: Option<String>,
    /// With COMMAND: the user that the workers run as; needed where the gateway is root.
    #[arg(long, value_name = "NAME", requires = "command")]
    pub(crate) user: Option<String>,
    /// Run the application as workers: their program and its arguments. With {socket} or {port} among
    /// them they speak HTTP, else FastCGI. As [[pool]] in the settings, without a number.
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "to")]
    pub(crate) command: Vec<String>,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  suimon check suimon.toml
  suimon check --json suimon.toml
  suimon check - < suimon.toml

All faults are reported together, each with its key, the value found and what is allowed. Journey files (see `suimon crowd`) and
scenarios (see `suimon sim`) are checked too. Exit codes: 0 valid, 2 invalid.")]
pub(crate) struct Check {
    /// The file: settings, journeys or a scenario; - is standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Answer as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  suimon status
  suimon status --watch
  suimon status --admin http://127.0.0.1:9001 --json
  suimon status --site tickets             one site of a gateway that serves several

--watch shows what fits on the terminal, what is wrong first, and names what has no room; without it all is printed.
Of a gateway that serves several sites, all are listed in a line each, above the main one: what no other site takes.")]
pub(crate) struct Status {
    #[command(flatten)]
    pub(crate) at: AdminAt,
    /// Print the gateway's own JSON.
    #[arg(long, conflicts_with = "watch")]
    pub(crate) json: bool,
    /// Refresh every second, until q or Ctrl-C.
    #[arg(long)]
    pub(crate) watch: bool,
    /// Decisions shown, the latest first.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) decisions: usize,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  suimon waiting-room status
  suimon waiting-room pause
  suimon waiting-room say 'Back at about 15:10.'
  suimon waiting-room open --at 2026-12-01T10:00:00Z --by-lot
  suimon waiting-room close --kind tickets                  sold out: all waiting visitors are told so
  suimon waiting-room invite --count 3 --url https://shop.example/sale
  suimon waiting-room pause --site tickets                  of several sites behind one gateway, only this one
  suimon waiting-room preview --config suimon.toml --out preview

Visitors wait in line while no more can be admitted; nothing has to be opened or closed for that. A command applies to the lines of
all kinds of session, or to that of --kind; where the gateway serves several sites, to those of the main one, or of --site.

Exit codes: 0 done; 1 nobody answered, or the gateway refused; 2 wrong usage or settings.")]
pub(crate) struct WaitingRoom {
    #[command(subcommand)]
    pub(crate) what: Waiting,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Waiting {
    /// Show every line.
    Status(GatewayAt),
    /// Stop admissions for now. Positions are kept, and tickets are still issued.
    Pause(LineOf),
    /// Resume admissions after a pause or a close.
    Resume(LineOf),
    /// Close the line: tell all waiting visitors that there is nothing left to wait for.
    Close(LineOf),
    /// Schedule an opening: issue tickets from now on, and admit nobody before a time.
    Open {
        #[command(flatten)]
        of: LineOf,
        /// When it opens, such as 2026-12-01T10:00:00Z or 2026-12-01T10:00:00+09:00; without an
        /// offset: local time of this machine.
        #[arg(long, value_name = "TIME")]
        at: PointInTime,
        /// Draw the order of all tickets issued until then by lot. The hash of the random seed is
        /// published at once, the seed itself after the opening.
        #[arg(long)]
        by_lot: bool,
    },
    /// Show a message to all waiting visitors; without one, remove it.
    Say {
        #[command(flatten)]
        of: LineOf,
        /// The message.
        #[arg(value_name = "MESSAGE", default_value = "")]
        message: String,
    },
    /// Create invitation links; invited visitors wait in a lane of their own. Each link is good for
    /// one ticket.
    Invite {
        #[command(flatten)]
        of: LineOf,
        /// Number of links.
        #[arg(long, value_name = "N", default_value_t = 1)]
        count: usize,
        /// How long they are valid.
        #[arg(long, value_name = "TIME", value_parser = time, default_value = "24h")]
        life: Duration,
        /// The page they lead to.
        #[arg(long, value_name = "URL")]
        url: Option<String>,
    },
    /// Write the waiting page in every state and language as HTML files.
    Preview(Preview),
}

/// Where the gateway is.
#[derive(Args, Debug)]
pub(crate) struct GatewayAt {
    #[command(flatten)]
    pub(crate) at: AdminAt,
    /// Print the gateway's own JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which line, and where the gateway is.
#[derive(Args, Debug)]
pub(crate) struct LineOf {
    #[command(flatten)]
    pub(crate) at: GatewayAt,
    /// Kind of session. [default: all; for invitations: the only one]
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct Preview {
    /// Settings file: the site's name, colours, message and template are in its [waiting_room].
    #[arg(long, short, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The folder to write to.
    #[arg(long, value_name = "FOLDER", default_value = "waiting-room-preview")]
    pub(crate) out: PathBuf,
}

/// A point in time as in RFC 3339: in UTC, with another offset, or in this machine's local time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PointInTime(pub(crate) SystemTime);

impl std::str::FromStr for PointInTime {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            "must be a time such as 2026-12-01T10:00:00Z (UTC), 2026-12-01T10:00:00+09:00, or 2026-12-01T10:00:00 (this machine's local time)"
                .to_string()
        };
        let utc = |text: &str| humantime::parse_rfc3339_weak(text).map_err(|_| wrong());
        if text.ends_with(['Z', 'z']) {
            return Ok(PointInTime(utc(&text.to_ascii_uppercase())?));
        }
        // After the time of day the only sign is that of the offset.
        let sign = text.rfind(['+', '-']).filter(|at| *at > "2026-12-01T".len());
        let Some(sign) = sign else {
            let wall = utc(text)?;
            return crate::local_time::at(wall).map(PointInTime).ok_or_else(wrong);
        };
        let (wall, offset) = (utc(&text[..sign])?, &text[sign + 1..]);
        let (hours, minutes) = offset.split_once(':').ok_or_else(wrong)?;
        let number =
            |text: &str, most: u64| text.parse::<u64>().ok().filter(|it| text.len() == 2 && *it <= most);
        let offset =
            3600 * number(hours, 23).ok_or_else(wrong)? + 60 * number(minutes, 59).ok_or_else(wrong)?;
        let offset = Duration::from_secs(offset);
        let time =
            if text.as_bytes()[sign] == b'+' { wall.checked_sub(offset) } else { wall.checked_add(offset) };
        time.map(PointInTime).ok_or_else(wrong)
    }
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  suimon crowd crates/crowd/journeys/shop.toml --to http://127.0.0.1:8000 --duration 60s
  suimon crowd shop.toml --to http://127.0.0.1:8000 --users 200 --seed 7 --json run.json
  suimon crowd scenarios/closed-400.toml --to http://127.0.0.1:8000
  suimon crowd shop.toml --to http://127.0.0.1:8000 --farm 0.1 --forge 0.05
  suimon crowd crates/crowd/journeys/rush.toml --to http://127.0.0.1:8000      a waiting room's rehearsal: docs/waiting-room.md

The crowd connects to --to and nowhere else. It waits in a waiting room as browsers do, and reports how long, whether the predicted waits
came true, and who was overtaken. How visitors give up, close the tab, farm tickets or forge them is set in the file: see
[visitor.in_line] in crates/crowd/journeys/shop.toml. A scenario (see `suimon sim`) also sets the duration and what is expected;
expectations that visitors cannot observe, such as shares of the bound, are not checked.

Exit codes: 0 sessions were completed, all expectations hold, and no forged ticket was accepted; 1 otherwise, or no response;
2 wrong file or command line.")]
pub(crate) struct Crowd {
    /// Journey file or scenario: who comes, and what they do.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// URL that they visit: http://HOST[:PORT].
    #[arg(long, value_name = "URL")]
    pub(crate) to: String,
    /// Users at once, in place of the file's (closed arrivals only).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) users: Option<u32>,
    /// Seed of all random choices, in place of the file's.
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u64>,
    /// Share of visitors who farm tickets if there is a line: they take many and wait with several.
    /// Replaces the file's in_line.farm.share; what each of them does is in the file.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) farm: Option<f64>,
    /// Share of visitors who forge tickets if there is a line: they try to be admitted with edited
    /// ones. Replaces the file's in_line.forge.share.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) forge: Option<f64>,
    /// How long to count, after the warm-up. [default: as the scenario says; else 60s, or until
    /// everybody is done if the file's arrivals end]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) duration: Option<Duration>,
    /// Warm-up time, not counted. [default: as the scenario says; else 0s]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) warmup: Option<Duration>,
    /// Write the whole report to this file as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  suimon report gate.rec
  suimon report gate.rec --out monday.html --json monday.json
  suimon report --partial gate.rec                  while it is still being written, or after a crash
  suimon report gate.rec.000003 gate.rec.000004     parts, or several runs, one after the other

A recording is what `suimon serve --record` writes; parts of the same run that were set aside beside it are played, too. The page carries
all it needs and asks nothing of anybody; all numbers are inside it.

Exit codes: 0 written, and the same decisions were made as in the gateway; 1 others were made, from where nothing is shown, or it could not
be written; 2 a file is damaged, cut or no recording, or the command line is wrong.")]
pub(crate) struct Report {
    /// Recordings.
    #[arg(value_name = "RECORDING", required = true)]
    pub(crate) recordings: Vec<PathBuf>,
    /// HTML page to write; an existing one is replaced.
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    pub(crate) out: PathBuf,
    /// Write all numbers to this file as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Show the complete part of a recording that is truncated or still being written.
    #[arg(long)]
    pub(crate) partial: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  suimon shop
  suimon shop --port 8080 --scale 4      all costs divided by 4")]
pub(crate) struct Shop {
    /// Port on 127.0.0.1; 0 takes a free one.
    #[arg(long, value_name = "PORT", default_value_t = 8080)]
    pub(crate) port: u16,
    /// Divides all costs, from 0.01 to 1000.
    #[arg(long, value_name = "N", default_value_t = 1.0)]
    pub(crate) scale: f64,
    /// Connections at once, each with a thread.
    #[arg(long, value_name = "N", default_value_t = 2000)]
    pub(crate) threads: usize,
    /// Work of a light page, as a count that an earlier start printed. [default: measured at start]
    #[arg(long, value_name = "N")]
    pub(crate) light_work: Option<u32>,
    /// Work of a search, likewise.
    #[arg(long, value_name = "N")]
    pub(crate) search_repeats: Option<u32>,
}

fn recording_size(text: &str) -> Result<u64, String> {
    let size = parse_size(text).filter(|size| *size >= Recording::BYTES_MIN);
    size.ok_or_else(|| "must be a size of 8MiB or more, such as 512MiB".to_string())
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "must be a number from 0 to 1".to_string())
}

fn time(text: &str) -> Result<Duration, String> {
    duration::parse(text).ok_or_else(|| format!("must be {}", duration::HOW_WRITTEN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_in_time_is_told_in_utc_by_an_offset_or_by_the_clock_on_the_wall() {
        let at = |text: &str| text.parse::<PointInTime>();
        let utc = at("2026-12-01T10:00:00Z").unwrap();
        assert_eq!(at("2026-12-01T19:00:00+09:00"), Ok(utc));
        assert_eq!(at("2026-12-01 06:30:00-03:30"), Ok(utc));
        assert_eq!(at("2026-12-01t10:00:00z"), Ok(utc));
        // In any time zone of this machine, local time is at most fourteen hours away.
        let local = at("2026-12-01T10:00:00").unwrap();
        let apart = utc.0.duration_since(local.0).unwrap_or_else(|earlier| earlier.duration());
        assert!(apart <= Duration::from_secs(14 * 3600), "{apart:?}");
        for wrong in [
            "",
            "tomorrow",
            "10:00",
            "2026-12-01T10:00:00+9",
            "2026-12-01T10:00:00+25:00",
            "2026-12-01T10:00:00+09:99",
        ] {
            assert!(at(wrong).is_err_and(|why| why.contains("local time")), "{wrong}");
        }
    }
}
