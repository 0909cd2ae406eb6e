//! The page a browser gets in place of the application's: one file, no script, nothing fetched.

use std::fmt;

/// What the page says. All texts are ours, so nothing needs escaping.
pub(crate) struct Page<'a> {
    pub(crate) title: &'a str,
    pub(crate) detail: &'a str,
    pub(crate) code: &'a str,
    /// When coming back is worth it, if it is.
    pub(crate) retry_seconds: Option<u64>,
    /// When the browser should come back by itself, if it should.
    pub(crate) reload: Option<u64>,
}

const STYLE: &str = "\
:root{color-scheme:light dark;--paper:#f4f6f7;--card:#fff;--ink:#1d2b33;--soft:#5b6b74;--water:#2f7f9f}\
@media(prefers-color-scheme:dark){:root{--paper:#10181d;--card:#18242b;--ink:#e6edf0;--soft:#9db0b9;--water:#6fb9d6}}\
*{box-sizing:border-box}\
body{margin:0;min-height:100vh;display:grid;place-items:center;padding:1.5rem;background:var(--paper);color:var(--ink);\
font:1.0625rem/1.6 system-ui,-apple-system,'Segoe UI',sans-serif}\
main{max-width:34rem;background:var(--card);border-radius:1rem;padding:2.5rem;border-top:.375rem solid var(--water)}\
svg{display:block;width:3.5rem;height:3.5rem;color:var(--water);margin-bottom:1rem}\
h1{margin:0 0 .75rem;font-size:1.625rem;line-height:1.25}\
p{margin:0 0 1rem}.soft{color:var(--soft);font-size:.9375rem;margin:0}";

const GATE: &str = "\
<svg viewBox=\"0 0 48 48\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"3\" stroke-linecap=\"round\" aria-hidden=\"true\">\
<path d=\"M8 42V10M40 42V10M4 10h40M15 10v14h18V10\"/>\
<path d=\"M14 33c3-2 5-2 8 0s5 2 8 0 3-1.600 4-2M14 41c3-2 5-2 8 0s5 2 8 0 3-1.600 4-2\" stroke-width=\"2\"/></svg>";

impl fmt::Display for Page<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Page { title, detail, code, retry_seconds, reload } = self;
        f.write_str("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n")?;
        f.write_str("<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n")?;
        f.write_str("<meta name=\"robots\" content=\"noindex\">\n")?;
        if let Some(seconds) = reload {
            writeln!(f, "<meta http-equiv=\"refresh\" content=\"{seconds}\">")?;
        }
        writeln!(f, "<title>{title}</title>\n<style>{STYLE}</style></head>")?;
        writeln!(f, "<body><main>{GATE}\n<h1>{title}</h1>\n<p>{detail}</p>")?;
        if let Some(seconds) = retry_seconds {
            let then = Interval(*seconds);
            match reload {
                Some(_) => writeln!(f, "<p><strong>This page tries again by itself in {then}.</strong></p>")?,
                None => writeln!(f, "<p><strong>Please try again in {then}.</strong></p>")?,
            }
        }
        writeln!(f, "<p class=\"soft\">Reason: {code}</p>\n</main></body></html>")
    }
}

/// A time as people say it.
struct Interval(u64);

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => f.write_str("a second"),
            seconds @ 2..=90 => write!(f, "{seconds} seconds"),
            seconds => write!(f, "about {} minutes", seconds.div_ceil(60)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_as_people_say_them() {
        for (seconds, text) in
            [(1, "a second"), (45, "45 seconds"), (91, "about 2 minutes"), (600, "about 10 minutes")]
        {
            assert_eq!(Interval(seconds).to_string(), text);
        }
    }
}
