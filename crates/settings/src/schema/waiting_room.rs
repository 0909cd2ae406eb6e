//! What those see who wait for their turn, and what is kept of the line.

use super::DefaultValue::{Is, Unset};
use super::{DAY, ENTRIES_MAX, Form, HOUR, MINUTE, Section, key};
use crate::shape::Shape::{
    BasePath, Colour, Count, Flag, List, Network, Number, Path, Text, Time, UrlPath, Word,
};
use suimon_params::{PassFor, WaitingStatus};

pub(super) const WAITING_ROOM: Section = Section {
    path: "waiting_room",
    form: Form::Table,
    doc: "The waiting page, and how long positions in line are kept. `suimon waiting-room preview` shows the page.",
    keys: &[
        key(
            "name",
            Text,
            Unset { means: "the host of the request", example: "\"Riverside Tickets\"" },
            "The site's name, as its visitors know it.",
        ),
        key(
            "base_path",
            BasePath,
            Unset {
                means: "nothing; in the servlet filter the context path of its application",
                example: "\"/shop\"",
            },
            "What stands before /.well-known/suimon/ in the addresses that the waiting page links to, for sites of which visitors reach only what is below it. Links to the first page lead there, too. Requests for these addresses are answered with it and, as a proxy in front may remove it, without.",
        ),
        key(
            "logo",
            UrlPath,
            Unset { means: "no picture", example: "\"/assets/logo.svg\"" },
            "Path of the site's logo. It must be a static asset (see discovery), so that it is served to everyone without a slot.",
        ),
        key(
            "colour",
            Colour,
            Unset { means: "a blue", example: "\"#862346\"" },
            "Accent colour on the light background, #e6f0f3. Contrast at least 4.5 to 1.",
        ),
        key(
            "colour_dark",
            Colour,
            Unset { means: "a light blue", example: "\"#f0a3bf\"" },
            "Accent colour on the dark background, #14252e. Contrast at least 4.5 to 1. Set both colours or neither.",
        ),
        key(
            "message",
            Text,
            Unset { means: "nothing", example: "\"Doors open at 19:00.\"" },
            "Message to all waiting visitors. Can be changed at run time: `suimon waiting-room say`.",
        ),
        key(
            "template",
            Path,
            Unset { means: "Suimon's own page", example: "\"/etc/suimon/waiting.html\"" },
            "File with your own waiting page: see docs/waiting-room.md.",
        ),
        key(
            "hide_numbers",
            Flag,
            Is("false"),
            "Whether the page hides how many people wait and shows times only.",
        ),
        key("status", Word(WaitingStatus::CHOICES), Is("\"503\""), "Status of the page."),
        key(
            "turn_ttl",
            Time(2 * MINUTE, DAY),
            Is("\"10m\""),
            "How long the page says that a called visitor's turn is reserved. A visitor who comes later is admitted at the head of the line.",
        ),
        key(
            "position_ttl",
            Time(2 * HOUR, 7 * DAY),
            Is("\"24h\""),
            "How long a position in line is kept (lifetime of the ticket).",
        ),
        key(
            "tickets_burst",
            Count(1, 1_000_000),
            Is("200"),
            "Burst of tickets per network (a /24, or a /56 for IPv6). Visitors beyond it get a ticket a little later.",
        ),
        key(
            "tickets_per_second",
            Number(0.01, 1e6),
            Is("10.0"),
            "Tickets per second per network after the burst.",
        ),
        key(
            "tickets_for_opening",
            Count(1, 100_000_000),
            Is("10000"),
            "Most tickets per network before a scheduled opening; visitors beyond that are told to come back at the opening. Raise it if many visitors share a network, as on a campus.",
        ),
        key(
            "crawlers",
            List(&Network, ENTRIES_MAX),
            Is("[]"),
            "Networks of search engine crawlers, as published by them. Crawlers have a lane of their own with about 4 % of the admission rate, however long the line is.",
        ),
        key(
            "pass_page",
            UrlPath,
            Unset { means: "anyone may get a ticket", example: "\"/human\"" },
            "A page of the application (a challenge or a log-in) that decides who may get a ticket: see docs/waiting-room.md. It needs no slot. A path that ends in / covers everything below it.",
        ),
        key("pass_for", Word(PassFor::CHOICES), Is("\"over_quota\""), "Who is sent there."),
        key(
            "state",
            Path,
            Unset {
                means: "waiting-room-PORT.json in the state folder, see `suimon serve --help`",
                example: "\"/var/lib/suimon/waiting-room.json\"",
            },
            "File that keeps the line over a restart; written every second. \"none\": after a restart there is a new line, with those who waited before in front.",
        ),
    ],
};
