//! What an operator says of the waiting page: a name, a logo, colours, a template in place of ours.

use super::{moves, page};
use crate::params::WaitingRoom;
use crate::server::StartError;
use std::path::PathBuf;

/// How the page looks, as far as an operator says so.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    pub(crate) name: String,
    pub(crate) logo: Option<String>,
    /// On light, and on dark.
    pub(crate) colours: Option<(String, String)>,
    pub(crate) template: Option<String>,
    pub(crate) hold_minutes: u64,
    pub(crate) keep_hours: u64,
}

impl Default for Look {
    fn default() -> Self {
        Look {
            name: String::new(),
            logo: None,
            colours: None,
            template: None,
            hold_minutes: 10,
            keep_hours: 24,
        }
    }
}

impl Look {
    /// Returns what the settings say, with the template they name.
    pub(super) fn of(params: &WaitingRoom, template: Option<String>) -> Look {
        Look {
            name: params.name.clone(),
            logo: params.logo.clone(),
            colours: params.colours.clone(),
            template,
            hold_minutes: params.hold.as_secs() / 60,
            keep_hours: params.keep.as_secs() / 3600,
        }
    }

    /// Returns the operator's style sheet.
    pub(super) fn style(&self) -> String {
        let mut out = String::new();
        if let Some((light, dark)) = &self.colours {
            // The far wave and the sun are of that colour, too; what text stands on is not.
            out.push_str(&format!(
                ":root{{--accent:{light};--accent-dark:{dark};--far:color-mix(in oklab,var(--water) 20%,var(--deep));--sun:color-mix(in oklab,var(--water) 12%,var(--sky))}}"
            ));
        }
        if self.logo.is_some() {
            out.push_str("img{max-height:2.5rem;vertical-align:middle}");
        }
        out
    }

    /// Returns a text with what it says of the site put in.
    pub(super) fn fill(&self, text: &str) -> String {
        // Without a name, the site's is that of the host each visitor asked for.
        let text = if self.name.is_empty() { text.to_owned() } else { text.replace(page::SITE, &self.name) };
        text.replace("{hold}", &self.hold_minutes.to_string())
            .replace("{keep}", &self.keep_hours.to_string())
            .replace("{code}", &moves::LIFE_MINUTES.to_string())
    }
}

/// Returns the operator's template, if there is one.
pub(crate) fn read_template(params: &WaitingRoom) -> Result<Option<String>, StartError> {
    let read = |path: &PathBuf| {
        std::fs::read_to_string(path).map_err(|error| {
            StartError::Params(format!(
                "{}: the waiting room's template cannot be read: {error}",
                path.display()
            ))
        })
    };
    params.template.as_ref().map(read).transpose()
}
