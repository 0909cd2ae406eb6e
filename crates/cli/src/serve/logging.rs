//! Logging, with filters such as `info` or `info,suimon_proxy=debug`.

mod json;
mod repeats;

use repeats::{More, Repeats};
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};
use suimon_params::LogFormat;
use tracing_subscriber::{
    EnvFilter, Layer as _, Registry, fmt, layer::SubscriberExt as _, reload, util::SubscriberInitExt as _,
};

/// How often it is looked whether warnings were held back.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Changes the filter of a running log.
pub(crate) struct Handle {
    filter: reload::Handle<EnvFilter, Registry>,
    repeats: Repeats,
}

impl Handle {
    /// Uses `filter` from now on.
    pub(crate) fn adopt(&self, filter: EnvFilter) {
        if let Err(error) = self.filter.reload(filter) {
            tracing::error!("what is logged stays as it was: {error}");
        }
    }

    /// Returns what says, for as long as it is polled, how many warnings were held back.
    pub(crate) fn tell_repeats(&self) -> impl Future<Output = ()> + Send + use<> {
        let repeats = self.repeats.clone();
        async move {
            let mut ticks = tokio::time::interval(LOOK_EVERY);
            loop {
                ticks.tick().await;
                for More { count, reason, message } in repeats.take(Instant::now()) {
                    tracing::warn!(more = count, reason, "and {count} more like it: {message}");
                }
            }
        }
    }
}

/// Begins to log to standard error with `filter`.
pub(crate) fn begin(filter: EnvFilter, format: LogFormat) -> Handle {
    let (filter, handle) = reload::Layer::new(filter);
    let repeats = Repeats::default();
    let lines = fmt::layer().with_writer(io::stderr);
    let lines = match format {
        LogFormat::Text => lines.with_ansi(io::stderr().is_terminal()).boxed(),
        LogFormat::Json => lines.with_ansi(false).event_format(json::Json).boxed(),
    };
    tracing_subscriber::registry().with(filter).with(lines.with_filter(repeats.clone())).init();
    Handle { filter: handle, repeats }
}

const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];

/// Returns the filter in `text`; `name` says where `text` is from.
///
/// # Errors
/// Returns a sentence with what is allowed. A single word that is no level is an error, too: as the
/// name of a part it would silence all others.
pub(crate) fn filter(name: &str, text: &str) -> Result<EnvFilter, String> {
    let allowed =
        "must be error, warn, info, debug, trace or off, or by part, such as \"info,suimon_proxy=debug\"";
    let is_level = |word: &str| LEVELS.iter().any(|level| word.eq_ignore_ascii_case(level));
    let mut words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
    if let Some(word) = words.find(|word| !word.contains('=') && !is_level(word)) {
        return Err(format!("{name} = \"{text}\": {allowed} (\"{word}\" is no level)"));
    }
    EnvFilter::try_new(text).map_err(|error| format!("{name} = \"{text}\": {allowed} ({error})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_no_level_is_told() {
        for right in
            ["info", "WARN", "off", "info,suimon_proxy=debug", "suimon_proxy::pipeline=trace, warn", ""]
        {
            assert!(filter("log.filter", right).is_ok(), "{right}");
        }
        for wrong in ["verbose", "infoo", "info,suimon_proxy", "suimon=loud"] {
            let why = filter("log.filter", wrong).expect_err(wrong);
            assert!(why.starts_with(&format!("log.filter = \"{wrong}\": must be")), "{why}");
        }
    }
}
