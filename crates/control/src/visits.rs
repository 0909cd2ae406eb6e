//! What sessions still have to come: learned from those that ended, counted over those under way.
//!
//! *Law*. For every kind k of session and every place `cur` in it (its start, or the route it asked
//! for last)
//!
//! ```text
//! F[k][cur][p]  mean number of visits to route p still to come after cur                        (1)
//! R[p]        = Σ sessions under way F[kind][cur][p] · V[kind][cur][stage] + requests of sessions now waiting or running at p   (2)
//! δ[p]        = mean time from a session's admission to its visits at p, waits at gates left out  (3)
//! V[stage]    = P(stage) / P(0)         P(s) = 1 − Π over stages k ≥ s of (1 − h[k])                             (4)
//! N[k][cur][p]  share of visits at cur after which p came next; what is left to one: the session ended there      (5)
//! ```
//!
//! A session that is silent for longer than most visitors think is likely to have ended, and its
//! visits are likely not to come: silence has [`STAGES`] stages, each as long as a quantile of the
//! think times. h[k], the share of sessions in stage k that came back in it, is learned for each
//! place at the end of each stage; if it waited for the end of all silence, the returns would be
//! learned first and the rest a minute later.
//!
//! No law uses (5): it is for the export of visitor behaviour (`suimon sim --from`).
//!
//! *Signals*: the paths of ended sessions (1), (3), (5); transitions of sessions under way (2),
//! (4). A session ends when it says so, or when it has been silent for longer than visitors think
//! ([`Visits::silence`]). *Units*: visits; seconds. *Source*: F and R are flow control by remaining
//! visits (`docs/laws/session.md`). (3) is the mean over *all* visits, not the time of the first
//! one: by Little's law R/X = δ + S + v · wait then holds exactly, v being [`Visits::rank`], also
//! for routes that a session visits many times. *Limits*: [`PATH_MAX`] visits of a session are
//! learned from, and of those to one route no more than twice the usual (`usual.rs`), so that a few
//! robots do not make sessions look expensive. An average weighs a new session with max(3 %, 1/n).

mod knowledge;
mod last_route;
mod transitions;
mod usual;

pub use last_route::LastRoute;
pub use transitions::STAGES;
pub use usual::PATH_MAX;

use self::transitions::{ReturnCounts, STAGE_QUANTILES, Transitions};
use self::usual::TypicalVisits;
use crate::statistics::{Average, DecayingHistogram};
use suimon_model::{KindId, RouteId};

/// The least weight of a newly ended session.
const WEIGHT_MIN: f64 = 0.03;
/// Think times needed before their tail is believed.
const THINKS_MIN: u64 = 20;
/// The fewest of them, where several gateways share: each sees its part of the visitors.
const THINKS_MIN_SHARED: u64 = 5;
/// Silence that ends a session as long as too few think times are known, seconds.
const SILENCE_UNKNOWN: f64 = 10.0;
/// Silence that ends a session at least, seconds.
const SILENCE_MIN: f64 = 2.0;
/// Shares of the silence that ends a session at which the next stage begins, as long as too few
/// think times are known.
const STAGE_SHARES: [f64; STAGES - 1] = [0.2, 0.4, 0.6, 0.8];

/// Sessions of a kind are young until this many times as many have ended as are under way, also
/// counting only those that came back.
const YOUNG: f64 = 2.0;

/// A session that has come back counts as under way until it has made this many visits: these say
/// as much of it as its end would, and a session that never ends would never say anything.
pub const STAYER_VISITS: usize = 32;
/// Visits of one such session that count towards the cost of all: of a session that makes many, no
/// more count than of others.
pub const STAYER_SHARE: usize = 15;

/// Sessions of which it must be known whether they came back before anything is said of most, ...
const ENTERED_MIN: u64 = 20;
/// ... and this many that began at one place, before anything is said of them.
const ENTERED_THERE_MIN: u64 = 8;
/// Sessions begun at one place after which each counts half, and at all places: a quarter of a
/// minute without answers makes nobody a visitor of one page.
const ENTERED_REMEMBERED: u64 = 256;
const ENTERED_REMEMBERED_ALL: u64 = 512;
/// Quantile of the time before a second page: sessions that are silent for longer hardly ever come
/// back.
const AWAY_QUANTILE: f64 = 0.8;

/// One visit of a session's path: the route, and seconds from the session's admission to the
/// request, without waits at gates.
pub type Visit = (RouteId, f32);

/// Expected and counted visits, all kinds and routes.
#[derive(Clone, Debug, Default)]
pub struct Visits {
    routes: usize,
    kinds: Vec<KindVisits>,
    /// (2) without the requests now at a route.
    to_come: Vec<f64>,
    at_route: Vec<u32>,
    /// Requests that ended without an answer.
    unanswered: f64,
    /// Of (3), over ended sessions of all kinds: summed offsets, and visits, per session.
    offsets: Vec<Average>,
    visits: Vec<Average>,
    /// The ordinal numbers of visits there, summed: 1 + 2 + … + n.
    ranks: Vec<Average>,
    thinks: DecayingHistogram,
    /// Of those, the ones before a second page.
    first_thinks: DecayingHistogram,
    /// Seconds of silence at the end of each stage; the last ends the session. Taken from `thinks`
    /// once a tick.
    stage_ends: Option<[f64; STAGES]>,
    /// Seconds of silence after a first answer, after which few come back; `None`: not known. Taken
    /// from `first_thinks` once a tick.
    away_after: Option<f64>,
    /// Gateways among which the visitors are divided; 0: it is the only one.
    gateways: u32,
}

suimon_model::saved_struct!(
    Visits {
        routes,
        kinds,
        to_come,
        at_route,
        unanswered,
        offsets,
        visits,
        ranks,
        thinks,
        first_thinks,
        stage_ends,
        away_after
    } without { gateways },
    |it: &Visits| {
        let lists = [it.to_come.len(), it.at_route.len(), it.offsets.len(), it.visits.len(), it.ranks.len()];
        let kind_fits = |kind: &KindVisits| {
            kind.rows.len() == it.routes + 1
                && kind.rows[0].further.len() == it.routes
                && [kind.made.len(), kind.to_come.len(), kind.made_by_returned.len(), kind.usual.routes()]
                    == [it.routes; 4]
                && kind.rows.iter().all(|row| row.further.len() <= it.routes && row.next.len() == it.routes)
        };
        lists == [it.routes; 5] && it.kinds.iter().all(kind_fits)
    }
);

#[derive(Clone, Debug, Default)]
struct KindVisits {
    /// By [`LastRoute`].
    rows: Vec<Transitions>,
    /// Sessions begun, and by route the visits that all of them have made so far.
    begun: u64,
    made: Vec<f64>,
    /// Sessions under way and (2) of this kind alone, as of the last tick.
    under_way: f64,
    to_come: Vec<f64>,
    /// Of sessions that have come back for another page: their visits by route, how many are under
    /// way, and how many have ended.
    made_by_returned: Vec<f64>,
    returned_under_way: u64,
    returned_ended: u64,
    /// Sessions that have come back at least once.
    returned: u64,
    /// Of all places.
    entered: ReturnCounts,
    /// Whether what sessions do is known from another run.
    recalled: bool,
    usual: TypicalVisits,
}

suimon_model::saved_struct!(KindVisits {
    rows,
    begun,
    made,
    under_way,
    to_come,
    made_by_returned,
    returned_under_way,
    returned_ended,
    returned,
    entered,
    recalled,
    usual
});

impl KindVisits {
    /// Returns whether those that ended are too few beside those under way to stand for all: the
    /// first to end are the short ones. A flood of sessions of one page says nothing of those that
    /// stay.
    fn is_young(&self) -> bool {
        let are_few = |ended: u64, under_way: f64| (ended as f64) < YOUNG * under_way;
        let all_are_few = are_few(self.rows[0].ended, self.under_way);
        let stayers_are_few =
            || are_few(self.returned_ended, self.returned_under_way as f64) && self.mostly_passes_by();
        !self.recalled && (all_are_few || stayers_are_few())
    }

    /// Returns whether most sessions, as far as is known, come for one page.
    fn mostly_passes_by(&self) -> bool {
        let ReturnCounts { known, came_back, .. } = self.entered;
        known >= ENTERED_MIN && 2 * came_back < known
    }

    /// Takes note of a session that began at `entry`: whether it came back; `news`: nothing was
    /// assumed of it before.
    fn note_entered(&mut self, entry: LastRoute, news: bool, came_back: bool) {
        self.entered.note(news, came_back, ENTERED_REMEMBERED_ALL);
        self.rows[entry.index()].entered.note(news, came_back, ENTERED_REMEMBERED);
    }
}

impl Visits {
    /// Adds a route.
    pub fn add_route(&mut self) {
        self.routes += 1;
        self.to_come.push(0.0);
        self.at_route.push(0);
        self.offsets.push(Average::new(WEIGHT_MIN));
        self.visits.push(Average::new(WEIGHT_MIN));
        self.ranks.push(Average::new(WEIGHT_MIN));
        for kind in &mut self.kinds {
            // As long as the others before this route is added to all of them.
            let others = vec![0.0; self.routes - 1];
            kind.made.push(0.0);
            kind.to_come.push(0.0);
            kind.made_by_returned.push(0.0);
            kind.usual.add_route();
            kind.rows.push(Transitions { further: others.clone(), next: others, ..Transitions::default() });
            for row in &mut kind.rows {
                row.further.push(0.0);
                row.next.push(0.0);
            }
        }
    }

    /// Forgets what is known of visits to `route`, which is another one from now on. Sessions that
    /// are there stay there.
    pub fn renew_route(&mut self, route: RouteId) {
        let index = route.index();
        self.to_come[index] = 0.0;
        self.offsets[index] = Average::new(WEIGHT_MIN);
        self.visits[index] = Average::new(WEIGHT_MIN);
        self.ranks[index] = Average::new(WEIGHT_MIN);
        for kind in &mut self.kinds {
            (kind.made[index], kind.to_come[index], kind.made_by_returned[index]) = (0.0, 0.0, 0.0);
            kind.usual.renew_route(index);
            for row in &mut kind.rows {
                // A row may be shorter: it was made before the route was known.
                row.further
                    .get_mut(index)
                    .into_iter()
                    .chain(row.next.get_mut(index))
                    .for_each(|it| *it = 0.0);
            }
            let row = &mut kind.rows[index + 1];
            let none = vec![0.0; self.routes];
            *row = Transitions {
                sessions_here: row.sessions_here,
                further: none.clone(),
                next: none,
                ..Transitions::default()
            };
        }
    }

    /// Adds a kind of session.
    pub fn add_kind(&mut self) {
        let none = vec![0.0; self.routes];
        let row = Transitions { further: none.clone(), next: none, ..Transitions::default() };
        self.kinds.push(KindVisits {
            rows: vec![row; self.routes + 1],
            made: vec![0.0; self.routes],
            to_come: vec![0.0; self.routes],
            made_by_returned: vec![0.0; self.routes],
            usual: TypicalVisits::of(self.routes),
            ..KindVisits::default()
        });
    }

    /// Counts a session in that begins.
    pub fn begin(&mut self, kind: KindId) {
        self.kinds[kind.index()].begun += 1;
        self.enter(kind, LastRoute::START);
    }

    /// Takes note that a session taken to have ended goes on: its requests from now on count as a
    /// session of its own.
    pub fn begins_again(&mut self, kind: KindId) {
        self.kinds[kind.index()].begun += 1;
    }

    /// Returns whether one more visit to `route` is usual for a session of `kind` that has made
    /// those of `path`.
    pub fn is_usual(&self, kind: KindId, route: RouteId, path: &[Visit]) -> bool {
        let made = path.iter().filter(|(other, _)| *other == route).count();
        made < self.kinds[kind.index()].usual.learned(route.index()) as usize
    }

    /// Counts a session in at `place`, and the visit that brings it there.
    pub fn enter(&mut self, kind: KindId, place: LastRoute) {
        if let Some(route) = place.index().checked_sub(1) {
            self.kinds[kind.index()].made[route] += 1.0;
        }
        self.enter_uncounted(kind, place);
    }

    /// Counts a session in at `place`; what brings it there is no visit to learn from.
    pub fn enter_uncounted(&mut self, kind: KindId, place: LastRoute) {
        let row = &mut self.kinds[kind.index()].rows[place.index()];
        row.sessions_here[0] += 1;
        for (sum, further) in self.to_come.iter_mut().zip(&row.further) {
            *sum += further;
        }
    }

    /// Counts a session out that stood at `place` in `stage`.
    pub fn leave(&mut self, kind: KindId, place: LastRoute, stage: usize) {
        let row = &mut self.kinds[kind.index()].rows[place.index()];
        debug_assert!(row.sessions_here[stage] > 0, "a session leaves the place it entered");
        row.sessions_here[stage] = row.sessions_here[stage].saturating_sub(1);
        let worth = row.worth(stage);
        for (sum, further) in self.to_come.iter_mut().zip(&row.further) {
            *sum = (*sum - worth * further).max(0.0);
        }
    }

    /// Moves a session at `place` from `stage` of silence to the next. The count (2) follows with
    /// the next tick.
    pub fn fall_silent(&mut self, kind: KindId, place: LastRoute, stage: usize) {
        let row = &mut self.kinds[kind.index()].rows[place.index()];
        row.sessions_here[stage] = row.sessions_here[stage].saturating_sub(1);
        row.sessions_here[stage + 1] += 1;
        row.returned[stage].fold(false);
    }

    /// Takes note of the end of a silence at `place` that had come to `stage`: whether the visitor
    /// came back.
    pub fn silence_over(&mut self, kind: KindId, place: LastRoute, stage: usize, came_back: bool) {
        self.kinds[kind.index()].rows[place.index()].returned[stage].fold(came_back);
    }

    /// Takes note that a session of `kind` asks for its first page, having begun at `entry`.
    /// [`Visits::comes_back`], [`Visits::stays_away`], or one after the other follow.
    pub fn begins_at(&mut self, kind: KindId, entry: LastRoute) {
        let kind = &mut self.kinds[kind.index()];
        kind.entered.open += 1;
        kind.rows[entry.index()].entered.open += 1;
    }

    /// Takes note that a session of `kind` that began at `entry` comes back for a second page,
    /// which it has not done before. `stayed_away`: that was [not expected](Self::stays_away).
    pub fn comes_back(&mut self, kind: KindId, entry: LastRoute, stayed_away: bool) {
        let kind = &mut self.kinds[kind.index()];
        kind.returned += 1;
        kind.note_entered(entry, !stayed_away, true);
    }

    /// Takes note that a session of `kind` that began at `entry` has not come back for so long that
    /// it hardly will.
    pub fn stays_away(&mut self, kind: KindId, entry: LastRoute) {
        self.kinds[kind.index()].note_entered(entry, true, false);
    }

    /// Counts in a session of `kind` that has come back, with this `path` so far.
    pub fn returned_enters(&mut self, kind: KindId, path: [RouteId; 2]) {
        self.kinds[kind.index()].returned_under_way += 1;
        path.iter().for_each(|route| self.goes_on(kind, *route));
    }

    /// Takes note that a session of `kind` that has come back asks for `route`.
    pub fn goes_on(&mut self, kind: KindId, route: RouteId) {
        self.kinds[kind.index()].made_by_returned[route.index()] += 1.0;
    }

    /// Counts out a session of `kind` that has come back; `ended`: it stands for others.
    pub fn returned_leaves(&mut self, kind: KindId, ended: bool) {
        let kind = &mut self.kinds[kind.index()];
        kind.returned_under_way = kind.returned_under_way.saturating_sub(1);
        kind.returned_ended += u64::from(ended);
    }

    /// Takes note of a session's request now at `route`, waiting or running.
    pub fn request_begins(&mut self, route: RouteId) {
        self.at_route[route.index()] += 1;
    }

    /// Takes note that a session's request is no longer at `route`.
    pub fn request_ends(&mut self, route: RouteId) {
        let at = &mut self.at_route[route.index()];
        *at = at.saturating_sub(1);
    }

    /// Takes note of `seconds` between an answer and the session's next request; `first`: it is its
    /// second.
    pub fn thought(&mut self, seconds: f64, first: bool) {
        self.thinks.fold(seconds);
        if first {
            self.first_thinks.fold(seconds);
        }
    }

    /// Learns from the path of a session that ended.
    pub fn teach(&mut self, kind: KindId, path: &[Visit]) {
        let usual = &mut self.kinds[kind.index()].usual;
        let mut made: Vec<(RouteId, u32)> = vec![];
        let mut count = |route: RouteId| match made.iter_mut().find(|(other, _)| *other == route) {
            Some((_, visits)) => {
                *visits += 1;
                *visits
            }
            None => {
                made.push((route, 1));
                1
            }
        };
        let numbered: Vec<(Visit, u32)> = path.iter().map(|visit| (*visit, count(visit.0))).collect();
        usual.fold(made.iter().map(|(route, visits)| (route.index(), *visits)));
        let is_usual = |(visit, number): &(Visit, u32)| *number <= usual.learned(visit.0.index());
        let path: Vec<Visit> = numbered.iter().filter(|one| is_usual(one)).map(|(visit, _)| *visit).collect();
        self.learn(kind, &path);
    }

    fn learn(&mut self, kind: KindId, path: &[Visit]) {
        let weight = |n: u64| WEIGHT_MIN.max(1.0 / n as f64);
        let rows = &mut self.kinds[kind.index()].rows;
        // Walking backwards, what lies ahead is what lies behind.
        let mut ahead = vec![0.0; self.routes];
        for step in (0..=path.len()).rev() {
            let place = if step == 0 { LastRoute::START } else { LastRoute::at(path[step - 1].0) };
            let row = &mut rows[place.index()];
            row.ended += 1;
            let weight = weight(row.ended);
            for (mean, ahead) in row.further.iter_mut().zip(&ahead) {
                *mean += weight * (ahead - *mean);
            }
            row.next.iter_mut().for_each(|share| *share -= weight * *share);
            if let Some((next, _)) = path.get(step) {
                row.next[next.index()] += weight;
            }
            if step > 0 {
                ahead[path[step - 1].0.index()] += 1.0;
            }
        }
        let mut offset = vec![0.0; self.routes];
        path.iter().for_each(|(route, at)| offset[route.index()] += f64::from(*at));
        for route in 0..self.routes {
            self.offsets[route].fold(offset[route]);
            self.visits[route].fold(ahead[route]);
            self.ranks[route].fold(ahead[route] * (ahead[route] + 1.0) / 2.0);
        }
    }

    /// Recomputes (2), now that (1) has changed under the sessions. For the tick, not for a
    /// request.
    pub fn refresh(&mut self) {
        self.stage_ends = Some(self.stage_ends());
        let enough = self.first_thinks.count() >= self.thinks_min();
        self.away_after = self.first_thinks.quantile(AWAY_QUANTILE).filter(|_| enough);
        self.to_come.fill(0.0);
        for kind in &mut self.kinds {
            kind.to_come.fill(0.0);
            kind.under_way = 0.0;
            for row in &kind.rows {
                kind.under_way += f64::from(row.sessions_here.iter().sum::<u32>());
                let worth: f64 =
                    (0..STAGES).map(|stage| f64::from(row.sessions_here[stage]) * row.worth(stage)).sum();
                if worth > 0.0 {
                    for (sum, further) in kind.to_come.iter_mut().zip(&row.further) {
                        *sum += worth * further;
                    }
                }
            }
            for (sum, own) in self.to_come.iter_mut().zip(&kind.to_come) {
                *sum += own;
            }
        }
    }

    fn stage_ends(&self) -> [f64; STAGES] {
        let known = self.knows_think_times();
        let at = |q: f64| self.thinks.quantile(q).filter(|_| known);
        let silence = at(0.99).map_or(SILENCE_UNKNOWN, |p99| SILENCE_MIN.max(1.5 * p99));
        let stage = |index: usize| match (STAGE_QUANTILES.get(index), STAGE_SHARES.get(index)) {
            (Some(q), Some(share)) => at(*q).unwrap_or(share * silence).min(silence),
            _ => silence,
        };
        std::array::from_fn(stage)
    }

    /// Returns R: visits to `route` that sessions already admitted still have to make.
    pub fn remaining(&self, route: RouteId) -> f64 {
        self.to_come[route.index()] + f64::from(self.at_route[route.index()])
    }

    /// Returns F[START]: visits to `route` that a session of `kind` makes in all.
    ///
    /// As long as few sessions have ended beside those under way, F of those that ended is F of
    /// short ones. Then it is taken over all sessions begun: the visits they have made, and those
    /// that the ones under way still have to make.
    pub fn per_session(&self, kind: KindId, route: RouteId) -> f64 {
        let kind = &self.kinds[kind.index()];
        if kind.begun > 0 && kind.is_young() {
            return (kind.made[route.index()] + kind.to_come[route.index()]) / kind.begun as f64;
        }
        kind.rows[0].further[route.index()]
    }

    /// Returns whether too few sessions of `kind` have ended, beside those under way, to stand
    /// for all.
    pub fn is_young(&self, kind: KindId) -> bool {
        self.kinds[kind.index()].is_young()
    }

    /// Returns how many sessions of `kind` are under way that have been silent since their last answer
    /// through at least this many `stages`.
    pub fn silent(&self, kind: KindId, stages: usize) -> u64 {
        let rows = self.kinds[kind.index()].rows.iter();
        rows.flat_map(|row| row.sessions_here.iter().skip(stages)).map(|count| u64::from(*count)).sum()
    }

    /// Returns how often sessions of `kind` have come back for another visit, per session
    /// begun; 0 if none has begun.
    pub fn returns_per_session(&self, kind: KindId) -> f64 {
        let kind = &self.kinds[kind.index()];
        let visits: f64 = kind.made.iter().sum();
        if kind.begun > 0 { (visits / kind.begun as f64 - 1.0).max(0.0) } else { 0.0 }
    }

    /// Returns whether most sessions of `kind`, as far as is known, come for one page: then numbers
    /// of all sessions say little of those that stay.
    pub fn mostly_passes_by(&self, kind: KindId) -> bool {
        self.kinds[kind.index()].mostly_passes_by()
    }

    /// Returns the share of sessions begun at `entry` that come back for another page, counting one
    /// more that does; `None` as long as it is known of none.
    pub fn comes_back_share(&self, kind: KindId, entry: LastRoute) -> Option<f64> {
        let ReturnCounts { known, came_back, .. } = self.kinds[kind.index()].rows.get(entry.index())?.entered;
        (known > 0).then(|| ((came_back + 1) as f64 / (known + 1) as f64).min(1.0))
    }

    /// Returns whether at least `share` of the sessions that begin at `entry` come back, as far as
    /// enough of them are known.
    pub fn often_comes_back(&self, kind: KindId, entry: LastRoute, share: f64) -> bool {
        let entered = self.kinds[kind.index()].rows.get(entry.index()).map(|row| row.entered);
        let entered = entered.unwrap_or_default();
        entered.known >= ENTERED_THERE_MIN && entered.came_back as f64 >= share * entered.known as f64
    }

    /// Returns whether a session that has been silent through `stage` after the first answer hardly
    /// comes back.
    pub fn is_away_after(&self, stage: usize) -> bool {
        self.away_after.is_some_and(|seconds| self.silence_after(stage) >= seconds)
    }

    /// Returns how often sessions of `kind` have asked for `route`.
    pub fn made(&self, kind: KindId, route: RouteId) -> f64 {
        self.kinds[kind.index()].made[route.index()]
    }

    /// Returns how often sessions of `kind` that have come back have asked for `route`.
    pub fn made_by_returned(&self, kind: KindId, route: RouteId) -> f64 {
        self.kinds[kind.index()].made_by_returned[route.index()]
    }

    /// Returns how many sessions of `kind` are under way that have come back, and have made
    /// fewer than [`STAYER_VISITS`] visits.
    pub fn returned_under_way(&self, kind: KindId) -> u64 {
        self.kinds[kind.index()].returned_under_way
    }

    /// Returns how many undecided sessions of `kind` will come back, judged by those that began at
    /// the same places.
    pub fn will_come_back(&self, kind: KindId) -> f64 {
        self.kinds[kind.index()].rows.iter().map(|row| row.entered.will_come_back()).sum()
    }

    /// Returns how many sessions of `kind` have ever come back.
    pub fn returned(&self, kind: KindId) -> u64 {
        self.kinds[kind.index()].returned
    }

    /// Takes note of a request of a session that ended without an answer.
    pub fn unanswered(&mut self) {
        self.unanswered += 1.0;
    }

    /// Returns the share of the sessions under way that were answered and wait for nothing, as far
    /// as that is known; at least 0. A session that ever went without an answer counts as still
    /// under way.
    pub fn answered_share(&self) -> f64 {
        let under_way: f64 = self.kinds.iter().map(|kind| kind.under_way).sum();
        let begun_only = |kind: &KindVisits| kind.rows[0].sessions_here.iter().sum::<u32>();
        let at_start = self.kinds.iter().map(begun_only).sum::<u32>();
        let at_routes: u32 = self.at_route.iter().sum();
        let answered = under_way - f64::from(at_start) - f64::from(at_routes) - self.unanswered;
        if under_way > 0.0 { (answered / under_way).max(0.0) } else { 0.0 }
    }

    /// Returns whether a session of any kind that has come back has asked for `route`.
    pub fn is_asked_by_returned(&self, route: RouteId) -> bool {
        self.kinds.iter().any(|kind| kind.made_by_returned[route.index()] > 0.0)
    }

    /// Returns (5) behind `place`: how many visits there it was learned from, and the shares by
    /// route.
    pub fn next(&self, kind: KindId, place: LastRoute) -> (u64, &[f64]) {
        let row = &self.kinds[kind.index()].rows[place.index()];
        (row.ended, &row.next)
    }

    /// Returns whether enough think times are known for silence to say something.
    pub fn knows_think_times(&self) -> bool {
        self.thinks.count() >= self.thinks_min()
    }

    /// Takes note that the visitors are divided among so many gateways: what one learns from so many
    /// of them alone, all together have seen of as many more.
    pub fn divide_among(&mut self, gateways: u32) {
        self.gateways = gateways;
    }

    fn thinks_min(&self) -> u64 {
        match self.gateways {
            0 | 1 => THINKS_MIN,
            gateways => (THINKS_MIN / u64::from(gateways)).max(THINKS_MIN_SHARED),
        }
    }

    /// Returns the think times, seconds.
    pub fn think_times(&self) -> &DecayingHistogram {
        &self.thinks
    }

    /// Returns δ: mean seconds from admission to a visit at `route`, at least 0; 0 if none is
    /// known.
    pub fn delay(&self, route: RouteId) -> f64 {
        let visits = self.visits[route.index()].get().unwrap_or(0.0);
        if visits > 1e-6 { (self.offsets[route.index()].get().unwrap_or(0.0) / visits).max(0.0) } else { 0.0 }
    }

    /// Returns the average ordinal number, within its session, of a visit to `route`; 1 if none is
    /// known.
    pub fn rank(&self, route: RouteId) -> f64 {
        let visits = self.visits[route.index()].get().unwrap_or(0.0);
        if visits > 1e-6 { self.ranks[route.index()].get().unwrap_or(0.0) / visits } else { 1.0 }
    }

    /// Returns how many sessions of `kind` have ended and been learned from.
    pub fn ended(&self, kind: KindId) -> u64 {
        self.kinds[kind.index()].rows[0].ended
    }

    /// Returns how many sessions of `kind` are counted in.
    pub fn under_way(&self, kind: KindId) -> usize {
        self.kinds[kind.index()].rows.iter().flat_map(|row| row.sessions_here).map(|n| n as usize).sum()
    }

    /// Returns the silence after which a session is taken to have ended, seconds: half as much
    /// again as the 99th percentile of the think times, at least 2.
    pub fn silence(&self) -> f64 {
        self.silence_after(STAGES - 1)
    }

    /// Returns the silence that ends `stage`, seconds; the last ends the session. Computes nothing:
    /// see [`Visits::refresh`].
    pub fn silence_after(&self, stage: usize) -> f64 {
        self.stage_ends.map_or_else(|| self.stage_ends()[stage], |ends| ends[stage])
    }

    /// Returns whether these are visits to `routes` routes of sessions of `kinds` kinds.
    pub fn fits(&self, routes: usize, kinds: usize) -> bool {
        (self.routes, self.kinds.len()) == (routes, kinds)
    }

    /// Returns how many sessions of `kind` are counted in at `place` in `stage`; `None` if
    /// there is no such place or stage.
    pub fn here(&self, kind: KindId, place: LastRoute, stage: usize) -> Option<u32> {
        self.kinds.get(kind.index())?.rows.get(place.index())?.sessions_here.get(stage).copied()
    }

    /// Returns the places, in order: the start, and then the routes.
    pub fn places(&self) -> impl Iterator<Item = LastRoute> + use<> {
        (0..=self.routes as u32).map(LastRoute)
    }

    /// Returns the routes, in order.
    pub fn routes(&self) -> impl Iterator<Item = RouteId> + use<> {
        (0..self.routes as u32).map(RouteId)
    }
}

#[cfg(test)]
mod tests;
