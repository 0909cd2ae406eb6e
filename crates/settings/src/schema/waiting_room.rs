//! What those see who wait for their turn, and what is kept of the line.

use super::DefaultValue::{Is, Unset};
use super::{DAY, ENTRIES_MAX, Form, HOUR, MINUTE, Section, key};
use crate::shape::Shape::{Colour, Count, Flag, List, Network, Number, Path, Text, Time, UrlPath, Word};
use suimon_params::{PassFor, WaitingStatus};

pub(super) const WAITING_ROOM: Section = Section {
    path: "waiting_room",
    form: Form::Table,
    doc: "What those see who wait for their turn, and what is kept of the line. `suimon waiting-room preview` shows it.",
    keys: &[
        key(
            "name",
            Text,
            Unset { means: "the host that was asked for", example: "\"Riverside Tickets\"" },
            "The site's name, as its visitors know it.",
        ),
        key(
            "logo",
            UrlPath,
            Unset { means: "no picture", example: "\"/assets/logo.svg\"" },
            "A picture of the site's own. The gate lets it pass to everybody if it is a static asset (see discovery).",
        ),
        key(
            "colour",
            Colour,
            Unset { means: "a blue", example: "\"#862346\"" },
            "What stands out on light ground, #e6f0f3: contrast at least 4.5 to 1.",
        ),
        key(
            "colour_dark",
            Colour,
            Unset { means: "a light blue", example: "\"#f0a3bf\"" },
            "What stands out on dark ground, #14252e: contrast at least 4.5 to 1. Given with colour, or not at all.",
        ),
        key(
            "message",
            Text,
            Unset { means: "nothing", example: "\"Doors open at 19:00.\"" },
            "Your words to all who wait. They can be changed while running: `suimon waiting-room say`.",
        ),
        key(
            "template",
            Path,
            Unset { means: "Suimon's own page", example: "\"/etc/suimon/waiting.html\"" },
            "A page in place of Suimon's: see docs/waiting-room.md.",
        ),
        key(
            "hide_numbers",
            Flag,
            Is("false"),
            "Whether numbers of people are kept from those who wait, and only times are told.",
        ),
        key("status", Word(WaitingStatus::CHOICES), Is("\"503\""), "Status of the page."),
        key(
            "turn_ttl",
            Time(2 * MINUTE, DAY),
            Is("\"10m\""),
            "For how long visitors are told that their turn is held. After that they come in at the head of the line.",
        ),
        key("position_ttl", Time(2 * HOUR, 7 * DAY), Is("\"24h\""), "For how long a place is kept."),
        key(
            "tickets_burst",
            Count(1, 1_000_000),
            Is("200"),
            "Numbers that one network (a /24, or a /56 of IPv6) may draw at once; whoever comes beyond draws a little later.",
        ),
        key(
            "tickets_per_second",
            Number(0.01, 1e6),
            Is("10.0"),
            "Numbers that one network may draw a second after that.",
        ),
        key(
            "tickets_for_opening",
            Count(1, 100_000_000),
            Is("10000"),
            "Numbers that one network may draw in all while a line is to open at a time that was said; whoever comes beyond is told to come then. More where many visitors share a network, as on a campus.",
        ),
        key(
            "crawlers",
            List(&Network, ENTRIES_MAX),
            Is("[]"),
            "Networks of search engines, as these publish them: their visitors come in by a lane of their own, at some twenty-fifth of the pace, however long the line is.",
        ),
        key(
            "pass_page",
            UrlPath,
            Unset { means: "anybody may draw a number", example: "\"/human\"" },
            "A page of the application's, a challenge or a log-in, that says who may draw a number: see docs/waiting-room.md. It passes the gate; one that ends in / stands for everything below it.",
        ),
        key("pass_for", Word(PassFor::CHOICES), Is("\"many\""), "Who is sent there."),
        key(
            "state",
            Path,
            Unset {
                means: "waiting-room-PORT.json in the state folder, see `suimon serve --help`",
                example: "\"/var/lib/suimon/waiting-room.json\"",
            },
            "File that the line survives a restart in, written each second. \"none\": after a restart everybody waits in a new line, those who waited before the others.",
        ),
    ],
};
