//! An operator's settings for the waiting page: a name, a logo, colours, a template in place of
//! ours.

use super::{moves, page};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use suimon_params::WaitingRoomParams;

/// The longest template, in bytes.
const TEMPLATE_BYTES_MAX: u64 = 1 << 20;

/// The look of the page, as far as the operator defines it.
#[derive(Clone, Debug)]
pub struct Appearance {
    pub name: String,
    /// What stands before the addresses beside the page.
    pub base: String,
    pub logo: Option<String>,
    /// On light, and on dark.
    pub colours: Option<(String, String)>,
    pub template: Option<String>,
    pub hold_minutes: u64,
    pub keep_hours: u64,
}

impl Default for Appearance {
    fn default() -> Self {
        Appearance {
            name: String::new(),
            base: String::new(),
            logo: None,
            colours: None,
            template: None,
            hold_minutes: 10,
            keep_hours: 24,
        }
    }
}

impl Appearance {
    /// Returns the look in the settings, with the template they name.
    pub(crate) fn of(params: &WaitingRoomParams, template: Option<String>) -> Appearance {
        Appearance {
            name: params.name.clone(),
            base: params.base().to_owned(),
            logo: params.logo.clone(),
            colours: params.colours.clone(),
            template,
            hold_minutes: params.hold.as_secs() / 60,
            keep_hours: params.keep.as_secs() / 3600,
        }
    }

    /// Returns the operator's style sheet.
    pub(crate) fn style(&self) -> String {
        let mut out = String::new();
        if let Some((light, dark)) = &self.colours {
            // The far wave and the sun have that colour, too; the background of text does not.
            out.push_str(&format!(
                ":root{{--accent:{light};--accent-dark:{dark};--far:color-mix(in oklab,var(--water) 20%,var(--deep));--sun:color-mix(in oklab,var(--water) 12%,var(--sky))}}"
            ));
        }
        if self.logo.is_some() {
            out.push_str("img{max-height:2.5rem;vertical-align:middle}");
        }
        out
    }

    /// Returns a text with the site's values filled in.
    pub(crate) fn fill(&self, text: &str) -> String {
        // Without a name, the site is named after the host that each visitor requested.
        let text = if self.name.is_empty() { text.to_owned() } else { text.replace(page::SITE, &self.name) };
        text.replace("{hold}", &self.hold_minutes.to_string())
            .replace("{keep}", &self.keep_hours.to_string())
            .replace("{code}", &moves::LIFE_MINUTES.to_string())
    }
}

/// Opens a regular file. Another process may have put a pipe there, which nobody writes to: to open it
/// as usual would wait for ever.
fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no regular file")) }
}

/// Returns the operator's template, if there is one.
pub fn read_template(params: &WaitingRoomParams) -> Result<Option<String>, String> {
    let read = |path: &PathBuf| {
        let wrong = |why: String| format!("{}: {why}", path.display());
        let mut text = String::new();
        let read = open(path).and_then(|file| file.take(TEMPLATE_BYTES_MAX + 1).read_to_string(&mut text));
        let bytes =
            read.map_err(|error| wrong(format!("the waiting room's template cannot be read: {error}")))?;
        if bytes as u64 > TEMPLATE_BYTES_MAX {
            return Err(wrong(format!(
                "the waiting room's template is longer than {TEMPLATE_BYTES_MAX} bytes"
            )));
        }
        if !text.contains("{{") {
            let why = "is no template: nothing in it stands for a value, such as {{title}}; docs/waiting-room.md names them all";
            return Err(wrong(why.to_owned()));
        }
        Ok(text)
    };
    params.template.as_ref().map(read).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_that_is_no_file_is_refused_at_once() {
        let told = |path: &str| {
            let params = WaitingRoomParams { template: Some(path.into()), ..WaitingRoomParams::default() };
            read_template(&params).unwrap_err()
        };
        // A folder; and a device that would never end.
        for path in ["/", "/dev/zero"] {
            assert!(told(path).contains("no regular file"), "{}", told(path));
        }
    }
}
