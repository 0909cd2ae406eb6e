//! Plays a journey file: `cargo run -p suimon-crowd --example play -- URL FILE [SECONDS [USERS]]`.
//!
//! A tool for testing this crate; users run `suimon crowd`.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use suimon_crowd::{Options, run};
use suimon_workload::Arrivals;

fn main() -> ExitCode {
    match play() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn play() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, file, rest @ ..] = arguments.as_slice() else {
        return Err("usage: play URL FILE [SECONDS [USERS]]".into());
    };
    let mut workload = suimon_settings::journey::load(Path::new(file))?;
    let measure = rest.first().map(|secs| secs.parse().map(Duration::from_secs)).transpose()?;
    if let (Some(wanted), Arrivals::Closed { users, .. }) = (rest.get(1), &mut workload.arrivals) {
        *users = wanted.parse()?;
    }
    let options = Options {
        base_url: url.clone(),
        workload,
        seed: None,
        warmup: Duration::from_secs(measure.map_or(0, |_| 2)),
        measure,
        progress: Some(Box::new(|progress| eprintln!("{progress}"))),
    };
    let report = run(options, std::future::pending())?;
    println!("{}", report.table(100));
    Ok(())
}
