//! The paper's figures and its table, and the paper's statements on each.

use super::view::{Seen, View};
use super::worlds::World;

/// What a figure shows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Shows {
    /// Sessions per second by number of clients.
    Throughput,
    /// Failures by number of clients.
    Failures,
    /// Durations of sessions, at one number of clients, up to this many seconds.
    Distribution(u32, f64),
    /// Failures by page.
    Pages,
    /// Admission interval and mean page queue over time.
    Interval,
    /// Limits over time.
    Limits,
}

/// One figure of the paper.
pub(super) struct Figure {
    /// Its name in the command and in its file's name.
    pub(super) name: &'static str,
    /// As the paper names it.
    pub(super) of_the_paper: &'static str,
    pub(super) world: World,
    pub(super) shows: Shows,
    pub(super) question: &'static str,
    /// Whether it is also measured on the real shop.
    pub(super) is_measured: bool,
    /// The paper's statements on it.
    pub(super) statements: &'static [Statement],
}

/// A sentence of the paper, and how the data is checked for it; `None` if the data does not cover
/// it.
pub(super) struct Statement {
    pub(super) says: &'static str,
    pub(super) here: fn(&View<'_>) -> Option<Seen>,
}

const fn says(says: &'static str, here: fn(&View<'_>) -> Option<Seen>) -> Statement {
    Statement { says, here }
}

/// All figures, in the paper's order.
pub(super) const FIGURES: &[Figure] = &[
    Figure {
        name: "04",
        of_the_paper: "figure 4",
        world: World::NoTimeout,
        shows: Shows::Throughput,
        question: "How many sessions per second do 1 to 400 clients complete if nobody ever gives up?",
        is_measured: true,
        statements: &[
            says("SQS and page only are about equal: the session scheduler costs next to nothing", |view| {
                view.alike()
            }),
            says("these two are the best of the four", |view| view.both_page_schedulers_are_best()),
            says("75 is the best fixed number of sessions", |view| view.best_static_is_the_papers()),
        ],
    },
    Figure {
        name: "05",
        of_the_paper: "figure 5",
        world: World::Timeout60,
        shows: Shows::Throughput,
        question: "How many sessions per second do 1 to 400 clients complete if they drop a page after 60 s and begin again at the second page?",
        is_measured: true,
        statements: &[
            says("SQS alone sustains a high throughput", |view| view.sqs_is_best()),
            says("page only breaks off above about 150 clients", |view| view.page_only_breaks_off(100, 200)),
            says("session only sustains, but low", |view| view.static_is_flat_and_low()),
            says("35 is the best fixed number of sessions", |view| view.best_static_is_the_papers()),
            says("no control gains nothing above about 25 clients", |view| view.no_control_levels_off()),
            says("no control is never done above 100 clients", |view| view.no_control_dies()),
        ],
    },
    Figure {
        name: "06",
        of_the_paper: "figure 6",
        world: World::Timeout60,
        shows: Shows::Distribution(100, 200.0),
        question: "After how long are the sessions of 100 clients done?",
        is_measured: false,
        statements: &[says(
            "with SQS and with page only sessions are done sooner than with the other two",
            |view| view.page_schedulers_are_quickest(),
        )],
    },
    Figure {
        name: "07",
        of_the_paper: "figure 7",
        world: World::Timeout60,
        shows: Shows::Distribution(400, 300.0),
        question: "After how long are the sessions of 400 clients done?",
        is_measured: false,
        statements: &[says("with SQS sessions are done sooner than with any other of the four", |view| {
            view.sqs_is_quickest()
        })],
    },
    Figure {
        name: "08",
        of_the_paper: "figure 8",
        world: World::Timeout60,
        shows: Shows::Failures,
        question: "How many pages fail while all sessions of 1 to 400 clients are done?",
        is_measured: true,
        statements: &[
            says("session only fails nobody", |view| view.static_fails_nobody()),
            says("SQS fails few: 91 at 400 clients", |view| view.sqs_fails_few()),
            says("page only fails more than ten times as many: 1179 at 400 clients", |view| {
                view.page_only_fails_many()
            }),
            says("no control fails 317 times at 100 clients", |view| view.no_control_fails(150.0, 600.0)),
        ],
    },
    Figure {
        name: "table-1",
        of_the_paper: "table 1",
        world: World::Timeout60,
        shows: Shows::Pages,
        question: "At which page do the sessions of 100 and of 400 clients fail?",
        is_measured: true,
        statements: &[
            says("SQS fails at the first page only (0 at 100 clients, 91 at 400)", |view| {
                view.sqs_fails_at_page_1()
            }),
            says("page only fails at page 5 only (0 and 1179)", |view| view.fails_at_page_5_at(400)),
            says("no control fails at page 5 only (317 at 100 clients)", |view| {
                view.no_control_fails_at_page_5()
            }),
        ],
    },
    Figure {
        name: "09",
        of_the_paper: "figure 9",
        world: World::Timeout60,
        shows: Shows::Interval,
        question: "How does the admission interval follow the mean page queue, with 400 clients?",
        is_measured: true,
        statements: &[
            says("the interval grows while the page queues are long", |view| {
                view.interval_grows_under_queues()
            }),
            says("and shrinks again once they are short", |view| view.interval_shrinks_again()),
        ],
    },
    Figure {
        name: "10",
        of_the_paper: "figure 10",
        world: World::Timeout60,
        shows: Shows::Limits,
        question: "How does the limit of page 5 move over time, with 400 clients?",
        is_measured: true,
        statements: &[says(
            "the limit of the heaviest page moves often, and is stable after a while",
            |view| view.limit_settles(),
        )],
    },
    Figure {
        name: "11",
        of_the_paper: "figure 11",
        world: World::Timeout30,
        shows: Shows::Throughput,
        question: "How many sessions per second do 1 to 400 clients complete if they wait for 30 s only?",
        is_measured: false,
        statements: &[
            says("SQS is a little lower than with 60 s, and sustains", |view| view.sqs_is_a_little_lower()),
            says("page only breaks off sooner than with 60 s", |view| view.page_only_breaks_off(25, 125)),
            says("15 is the best fixed number of sessions", |view| view.best_static_is_the_papers()),
        ],
    },
    Figure {
        name: "12",
        of_the_paper: "figure 12",
        world: World::Timeout30,
        shows: Shows::Failures,
        question: "How many pages fail if clients wait for 30 s only?",
        is_measured: false,
        statements: &[
            says("SQS fails few", |view| view.sqs_fails_few()),
            says("session only fails nobody", |view| view.static_fails_nobody()),
            says("no control fails more than with 60 s, where it is 317 at 100 clients", |view| {
                view.no_control_fails(317.0, f64::INFINITY)
            }),
        ],
    },
    Figure {
        name: "13",
        of_the_paper: "figure 13",
        world: World::Think1,
        shows: Shows::Throughput,
        question: "How many sessions per second do 1 to 400 clients complete if they think for 1 s only?",
        is_measured: false,
        statements: &[
            says("SQS is much as with 3 s", |view| view.sqs_is_as_with_sixty()),
            says("SQS is the best of the four", |view| view.sqs_is_best()),
            says("35 is the best fixed number of sessions", |view| view.best_static_is_the_papers()),
        ],
    },
    Figure {
        name: "14",
        of_the_paper: "figure 14",
        world: World::Think1,
        shows: Shows::Failures,
        question: "How many pages fail if clients think for 1 s only?",
        is_measured: false,
        statements: &[
            says("SQS fails few", |view| view.sqs_fails_few()),
            says("session only fails nobody", |view| view.static_fails_nobody()),
        ],
    },
    Figure {
        name: "15",
        of_the_paper: "figure 15",
        world: World::Mixed,
        shows: Shows::Throughput,
        question: "How many sessions per second do 1 to 400 clients complete if half of them wait 30 s and half 60 s, and all think for 3 s on average?",
        is_measured: false,
        statements: &[
            says("SQS is the best of the four in most cases", |view| view.sqs_is_best()),
            says("35 is the best fixed number of sessions", |view| view.best_static_is_the_papers()),
        ],
    },
    Figure {
        name: "16",
        of_the_paper: "figure 16",
        world: World::Mixed,
        shows: Shows::Failures,
        question: "How many pages fail if half of the clients wait 30 s and half 60 s, and all think for 3 s on average?",
        is_measured: false,
        statements: &[
            says("SQS fails few", |view| view.sqs_fails_few()),
            says("session only fails nobody", |view| view.static_fails_nobody()),
        ],
    },
];
