//! Other sites behind the same gateway.

use super::DefaultValue::{Required, Unset};
use super::{Form, Section, key};
use crate::shape::Shape::{Hosts, List, Name, Path, UrlPath};
use suimon_params::SITES_MAX;

/// The most hosts of a site, and the most paths.
const TAKEN_MAX: usize = 64;

pub(super) const SITE: Section = Section {
    path: "site",
    form: Form::Repeated(SITES_MAX),
    doc: "Another site behind the same listeners: another application, or a part of one, with limits, visitors and lines of its own. Below it stand its own settings, as those of the main site stand in the file itself: [site.upstream], [[site.session]], [[site.route]], [site.waiting_room] and so on; what is left out has its default. What is the gateway's stays outside: [listen], [admin], [log], [telemetry], [spool], lease.keys, and of [limits] and [timeouts] all but body_bytes, connect, first_byte and response_read. See docs/sites.md.",
    keys: &[
        key(
            "name",
            Name,
            Required { example: "\"tickets\"" },
            "What status, metrics and logs call it. The first site, which is not named here, is \"main\".",
        ),
        key(
            "hosts",
            List(&Hosts, TAKEN_MAX),
            Unset { means: "any host; then paths must be given", example: "[\"tickets.example.org\"]" },
            "Hosts that it takes requests for, without a port; *.example.org is every name below example.org. The most precise counts.",
        ),
        key(
            "paths",
            List(&UrlPath, TAKEN_MAX),
            Unset { means: "all paths; then hosts must be given", example: "[\"/tickets\"]" },
            "Paths that it takes, with all below them; the longest counts. They are passed on as they are.",
        ),
        key(
            "cert",
            Path,
            Unset { means: "listen.tls.cert", example: "\"/etc/suimon/tickets.pem\"" },
            "Certificate chain, PEM, for TLS clients that ask for one of its hosts (SNI). Read again as listen.tls.cert is.",
        ),
        key(
            "key",
            Path,
            Unset { means: "listen.tls.key", example: "\"/etc/suimon/tickets.key\"" },
            "Private key, PEM.",
        ),
    ],
};
