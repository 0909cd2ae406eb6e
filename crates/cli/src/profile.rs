//! `suimon profile`: draws a site's degradation scheme, by loading it.
//!
//! Map: `words` what is said before it begins; `live` how it goes; `table` what was measured, for
//! the terminal; `page` (with `figures`) for the browser.

mod figures;
mod live;
mod page;
mod table;
mod words;

use crate::exit::Exit;
use crate::{interrupt, terminal, whole_file};
use clap::Args;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use std::path::PathBuf;
use std::time::Duration;
use suimon_crowd::profile::{self, Ended, IN_FLIGHT_MAX, Options, Plan, ProfileReport, SECONDS_MAX, Service};
use suimon_settings::duration;

#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:
  suimon profile --to http://127.0.0.1:8080 --light 'GET /quote' --heavy 'GET /report' --dry-run
  suimon profile --to http://127.0.0.1:8080 --light 'GET /quote' --heavy 'GET /report' --report profile.html
  suimon profile --to http://127.0.0.1:8080 --light /quote --heavy /report --heavy-in-flight 0,2,4,8 --scale 0.1

A degradation scheme says how much each service of a site slows down as load rises, and which one pays. A light service always has
--light-in-flight requests in flight; beside them a heavy one has 0, then 1, 5, 10, 20, 40. An answered request is followed by the next at
once (a closed loop), so that the site is loaded to its limits: --dry-run says how much, and for how long. First each service is measured
alone, one request at a time; slowdown is the mean response time divided by that.

Requests go to --to and nowhere else. Redirects are not followed: an answer that is not 2xx is an error. If more than --errors-max of a
service's requests at a point fail (of 20 at the least), the run stops. Choose services that change nothing, such as GET.

Segments of a response: connect, write (the request was sent), first byte, last byte. If the application answers with Server-Timing,
its own segments are shown, too. Each request carries X-Request-Start: t=MICROSECONDS, when it began.

docs/profile.md explains how to read the figures.

Exit codes: 0 all was measured; 1 stopped by errors, interrupted, or it could not be written; 2 wrong usage.")]
pub(crate) struct Profile {
    /// The site: http://HOST[:PORT].
    #[arg(long, value_name = "URL")]
    pub(crate) to: String,
    /// The light service: method and path. [without a method: GET]
    #[arg(long, value_name = "SERVICE", value_parser = Service::parse)]
    pub(crate) light: Service,
    /// The heavy service.
    #[arg(long, value_name = "SERVICE", value_parser = Service::parse)]
    pub(crate) heavy: Service,
    /// Light requests in flight, all the time.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=i64::from(IN_FLIGHT_MAX)))]
    pub(crate) light_in_flight: u32,
    /// Heavy requests in flight, point by point.
    #[arg(long, value_name = "N,N,…", default_value = "0,1,5,10,20,40", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(0..=i64::from(IN_FLIGHT_MAX)))]
    pub(crate) heavy_in_flight: Vec<u32>,
    /// Seconds that each point is measured; a service alone a quarter of it.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=i64::from(SECONDS_MAX)))]
    pub(crate) seconds: u32,
    /// Warm-up time of each point, not measured.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    pub(crate) warmup: Duration,
    /// Multiplies the times of all points; from 0.01 to 10.
    #[arg(long, value_name = "N", default_value_t = 1.0, value_parser = scale)]
    pub(crate) scale: f64,
    /// How long one answer is waited for; after that it is an error.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time)]
    pub(crate) timeout: Duration,
    /// The share of a service's requests that may fail before the run stops.
    #[arg(long, value_name = "SHARE", default_value = "10%", value_parser = share)]
    pub(crate) errors_max: f64,
    /// Connect anew for each request, as the clients of the papers did.
    #[arg(long)]
    pub(crate) new_connections: bool,
    /// Do not measure each service alone first; no slowdowns are told then.
    #[arg(long)]
    pub(crate) no_alone: bool,
    /// Measure each service alone, and nothing else.
    #[arg(long, conflicts_with_all = ["no_alone", "heavy_in_flight"])]
    pub(crate) alone_only: bool,
    /// Send this header with each request. Can be repeated.
    #[arg(long, value_name = "NAME: VALUE", value_parser = header)]
    pub(crate) header: Vec<(HeaderName, HeaderValue)>,
    /// Allow a site that is not on this machine. Its owner must agree.
    #[arg(long)]
    pub(crate) allow_remote: bool,
    /// Say what would be sent, and send nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Write all numbers to this file as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the figures to this file, a page for the browser.
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

/// Says what it will do, does it, shows how it goes, and writes what was asked for.
pub(crate) fn run(args: &Profile) -> Exit {
    let options = Options {
        target: args.to.clone(),
        allow_remote: args.allow_remote,
        headers: args.header.iter().cloned().collect::<HeaderMap>(),
        plan: plan(args),
        news: Some(live::news(args)),
    };
    if let Err(error) = profile::check(&options) {
        eprintln!("{error}");
        return Exit::Usage;
    }
    let words = words::of(&args.to, &options.plan);
    if args.dry_run {
        print!("{}", terminal::paragraphs(&words, terminal::columns()));
        return Exit::Done;
    }
    if let Err(why) = whole_file::try_writing_all(&[("--json", &args.json), ("--report", &args.report)]) {
        eprintln!("{why}");
        return Exit::Usage;
    }
    interrupt::listen();
    eprint!("{}", terminal::paragraphs(&words, terminal::columns_of(std::io::stderr())));
    let outcome = profile::run(options, interrupt::first());
    match outcome {
        Ok(report) => tell(args, &report),
        Err(error) => {
            eprintln!("{error}");
            if error.is_usage() { Exit::Usage } else { Exit::Failed }
        }
    }
}

fn plan(args: &Profile) -> Plan {
    Plan {
        light: args.light.clone(),
        heavy: args.heavy.clone(),
        light_in_flight: args.light_in_flight,
        heavy_in_flight: if args.alone_only { vec![] } else { args.heavy_in_flight.clone() },
        warmup: args.warmup,
        measure: Duration::from_secs(args.seconds.into()),
        timeout: args.timeout,
        errors_max: args.errors_max,
        new_connections: args.new_connections,
        alone: !args.no_alone,
    }
    .scaled(args.scale)
}

fn tell(args: &Profile, report: &ProfileReport) -> Exit {
    print!("{}", table::of(report));
    let json = args.json.as_ref().map(|path| {
        (
            "--json",
            path,
            serde_json::to_string_pretty(report).map(|text| text + "\n").map_err(std::io::Error::from),
        )
    });
    let page = args.report.as_ref().map(|path| ("--report", path, Ok(page::page(report))));
    for (flag, path, text) in json.into_iter().chain(page) {
        if let Err(error) = text.and_then(|text| whole_file::write(path, &text)) {
            eprintln!("{flag}: {}: could not be written: {error}", path.display());
            return Exit::Failed;
        }
    }
    if let Some(path) = &args.report {
        println!("\nReport: {}", path.display());
    }
    if let Some(why) = &report.why {
        eprintln!("{why}");
    }
    if report.ended == Ended::AllPoints { Exit::Done } else { Exit::Failed }
}

fn time(text: &str) -> Result<Duration, String> {
    duration::parse(text).ok_or_else(|| format!("must be {}", duration::HOW_WRITTEN))
}

fn scale(text: &str) -> Result<f64, String> {
    let value: Option<f64> = text.parse().ok();
    value
        .filter(|value| (0.01..=10.0).contains(value))
        .ok_or_else(|| "must be a number from 0.01 to 10".to_owned())
}

fn share(text: &str) -> Result<f64, String> {
    let share = match text.trim().strip_suffix('%') {
        Some(per_cent) => per_cent.trim().parse::<f64>().map(|per_cent| per_cent / 100.0),
        None => text.trim().parse(),
    };
    share
        .ok()
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| "must be a share such as 10% or 0.1; at most 100%".to_owned())
}

fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let wrong = || "must be a header such as 'Accept-Language: en'".to_owned();
    let (name, value) = text.split_once(':').ok_or_else(wrong)?;
    let name = HeaderName::from_bytes(name.trim().as_bytes()).map_err(|_| wrong())?;
    let frames = [hyper::header::CONTENT_LENGTH, hyper::header::TRANSFER_ENCODING, hyper::header::UPGRADE];
    if frames.contains(&name) {
        return Err(format!("{name} would break the connection: requests have no body"));
    }
    Ok((name, HeaderValue::from_str(value.trim()).map_err(|_| wrong())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_a_part_of_one_or_of_a_hundred() {
        for (text, wanted) in [("10%", 0.1), ("10 %", 0.1), ("0.1", 0.1), ("0", 0.0), ("100%", 1.0)] {
            assert!((share(text).unwrap() - wanted).abs() < 1e-12, "{text}");
        }
        for text in ["", "%", "101%", "2", "-1%", "x", "nan"] {
            assert!(share(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_header_is_a_name_and_a_value() {
        let (name, value) = header("Cookie: a=b; c=d:e").unwrap();
        assert_eq!((name.as_str(), value.to_str().unwrap()), ("cookie", "a=b; c=d:e"));
        for text in
            ["", "Cookie", "a b: c", "x: a\r\nb: c", "Content-Length: 5", "Transfer-Encoding: chunked"]
        {
            assert!(header(text).is_err(), "{text}");
        }
    }
}
