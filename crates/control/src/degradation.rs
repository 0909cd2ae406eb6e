//! The split: how much of the host each service gets, so that services are slowed as was wished.
//!
//! *Law*. A service is a group of routes. Once in a window of 1 to 4 s each service i has
//!
//! ```text
//! D_i = (waiting + inside) / inside · S / S0      slowdown: response time ÷ response time alone, by Little's law    (1)
//! y_i = inside · w / S                            effort: processor seconds a second, at most                       (2)
//! Y   = max of min(Σ y, its average)              what the host can do; fades while the host is short               (3)
//! e_i = ln(D_i / r_i)                             mode slowdown: r is the wish                                      (4)
//! e_i = max(ln(t_i / y_i), −1)                    modes shares, bands: t is its part of Σ y by floors, weights,
//!                                                 ceilings (water filling; a floor is part of Σ y, a ceiling of Y)  (5)
//! ln m_i += −γ · max_j (e_j − e_i)                gives way: another one, j, is further behind its wish             (6)
//! ln m_i += +γ · max_j (e_i − e_j)                gets more: it is itself behind, and has a cap                     (7)
//! ```
//!
//! m_i, the *cap*, is the mean number of its requests in the application, held by a
//! [`Credit`](crate::Credit); j has none in (6), as else (7) is enough. It need not be whole, and
//! begins at what is there when the service first gives way. A service counts as *behind* only
//! while it is slowed at all, by more than [`service::CALM`]: on a host that is not short nobody
//! gives way, and caps rise until they are gone. While every active service has a cap all caps rise
//! together: one has none, in the end. *Units*: requests, seconds; e and ln m are natural
//! logarithms. *Regimes*: a cap is not lowered while more is inside than it allows (what was
//! started goes on), nor below what its queue needs to be served within [`service::PATIENCE_SHARE`]
//! of the patience (mode slowdown; the wish is then reported as out of reach), unless that would
//! take more than all its slots or the other one is not served in time either. A cap that does
//! nothing for the one it was lowered for is [given up](effect): that one is slow for another
//! reason. While Σ y is below [`BUSY`] of Y, nobody waits who may start and S ÷
//! S0 is below [`CROWDED`], caps rise: the host is idle; for [`AFTER_IDLE`] they then fall slowly.
//! γ is less where the window told little of what is known ([`GAIN_FRESH`]): a service of few ends
//! is known late, and caps that do not wait for it swing. *Who moves first*: the route law owns the
//! total, this one the split. A route whose service has a cap does not bind its own limit, so the
//! route law learns nothing there and tries nothing; where a trial was under way it is dropped.
//! While one of its limits is on trial caps stay, for at most [`TRIAL_MAX`]; then, and once there
//! is a cap, no trial begins and no limit rises for [`CAPS_FIRST`]. Its capacity X is what it does
//! under the cap, and session admission follows that. *Limits*: without S0, the time alone, a
//! service is neither slowed nor helped: unknown is not small. *Source*: LAWS §4 of the design; the
//! goal is that of the papers on degradation schemes; `docs/laws/degradation.md`.

mod binding;
mod effect;
mod estimate;
mod filling;
mod need;
mod service;
mod wish;

pub use binding::Binding;
pub use estimate::ServiceSample;
pub use wish::{Amount, DegradationMode, ServiceWish};

use crate::credit::CAP_LEAST;
use effect::VAIN_GAP;
use filling::{Claim, fill};
use need::Need;
use service::{CALM, Service, WINDOWS_TOLD};
use suimon_model::real::{exp, ln};
use suimon_model::{Instant, Record, ServiceId, seconds};

/// What is aimed at ÷ a floor in completions, at most: what swings around its floor is below it half
/// of the time.
const FLOOR_AIM: f64 = 1.15;
/// The same of a floor in percent, which also goes by what a request takes alone, and that is known
/// to a tenth: on a shared machine 1.15 kept half of the work in 57 to 93 % of the seconds.
const FLOOR_AIM_OF_HOST: f64 = 1.3;
/// What the aims take at most of what the floors leave to others.
const AIM_OF_REST: f64 = 0.5;
/// Length of a window: at least the first, until every service had [`ENDS_MIN`] ends, at most the
/// second. Seconds.
const WINDOW_MIN: f64 = 1.0;
const WINDOW_MAX: f64 = 4.0;
const ENDS_MIN: f64 = 3.0;
/// γ of (6) and (7), and the most that ln m changes in a window.
const GAIN: f64 = 0.3;
const STEP_MAX: f64 = 0.7;
/// γ, where only a part of what is known is from the last window, by that part.
const GAIN_FRESH: f64 = 1.2;
/// The most by which a service counts as ahead of its part, as a logarithm: a part of nothing, which
/// floors leave in a window in which the host seems to do less, must not end it at once.
const AHEAD_MAX: f64 = 1.0;
/// Differences below this are noise.
const DEADBAND: f64 = 0.05;
/// What ln m rises by in a window in which nobody is behind.
const RELAX: f64 = 0.1;
/// What every ln m rises by in a window in which all services have caps.
const COMMON_RISE: f64 = 0.2;
/// Y forgets a factor of e in this many seconds; the newest window of Σ y weighs this much.
const CAPACITY_MEMORY: f64 = 600.0;
const EFFORT_WEIGHT: f64 = 0.3;
/// Share of Y below which the host may be idle, requests up to which nobody waits, and S / S0 from
/// which what is in the application is slowed there.
const BUSY: f64 = 0.9;
const IDLE_WAITING: f64 = 0.5;
const CROWDED: f64 = 4.0;
/// For how many seconds after the host was idle caps fall by no more than this, as a logarithm, a
/// window: it would only be idle again.
const AFTER_IDLE: f64 = 10.0;
const AFTER_IDLE_FALL: f64 = 0.05;
/// The longest time, in seconds, for which caps stay because a limit is on trial: what it does to
/// the services is no reason to move a cap, and a cap that moves is a reason to misjudge it.
const TRIAL_MAX: f64 = 5.0;
/// For how many seconds after the first cap, and after each trial, caps move and no trial begins.
const CAPS_FIRST: f64 = 22.0;
/// Lateness of the probe above which the heaviest service gives way, seconds, and by how much.
const LAG_MAX: f64 = 0.005;
const LAG_STEP: f64 = 0.2;
/// Relative change of a cap from which it is a decision to tell.
const TOLD: f64 = 0.02;

/// What the law is told of a service once per tick.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct ServiceInput {
    /// What happened since the last tick.
    pub sample: ServiceSample,
    /// How many may be in the application by the limits of its routes; infinite where one has none.
    pub slots: f64,
}

/// How a service stands.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct ServiceStanding {
    /// D of (1), if it is known and the service active.
    pub slowdown: Option<f64>,
    /// y of (2), processor seconds a second; 0 where the time alone is unknown.
    pub effort: f64,
    /// y as a share of Y.
    pub share: f64,
    /// Completions per second.
    pub rate: f64,
    /// Seconds in the application of a request now; 0 where none was answered.
    pub service: f64,
    /// Seconds of a request alone, if that is known.
    pub alone: Option<f64>,
    /// m.
    pub cap: Option<f64>,
    /// What binds it.
    pub binding: Binding,
}

/// The law over all services of a host.
#[derive(Clone, Debug)]
pub struct Degradation {
    mode: DegradationMode,
    services: Vec<Service>,
    window_begin: Instant,
    /// Σ y over the last windows, and Y.
    effort: Option<f64>,
    capacity: f64,
    /// Windows in a row in which the host was short, and whether there were ever enough of them: Y
    /// is known from then on.
    short_windows: u32,
    was_short: bool,
    /// The least share of what is known of an active service that the last window told.
    freshness: f64,
    /// When the host was idle last.
    idle_at: Option<Instant>,
    /// Since when a limit of one of the services is on trial.
    on_trial_since: Option<Instant>,
    /// Until when no trial is to begin.
    caps_first_until: Option<Instant>,
    /// The last lateness of the probe, seconds, until it was looked at.
    lag: Option<f64>,
}

suimon_model::saved_struct!(Degradation {
    mode,
    services,
    window_begin,
    effort,
    capacity,
    short_windows,
    was_short,
    freshness,
    idle_at,
    on_trial_since,
    caps_first_until,
    lag
});

impl Degradation {
    /// Returns the law for services with these wishes, of which nothing is known.
    pub fn new(mode: DegradationMode, wishes: &[ServiceWish], now: Instant) -> Self {
        Degradation {
            mode,
            services: wishes.iter().cloned().map(Service::new).collect(),
            window_begin: now,
            effort: None,
            capacity: 0.0,
            short_windows: 0,
            was_short: false,
            freshness: 1.0,
            idle_at: None,
            on_trial_since: None,
            caps_first_until: None,
            lag: None,
        }
    }

    /// Wishes from now on for these, as many as before. What was measured is kept, and so is each
    /// cap: it goes from there to where it belongs now.
    pub fn adopt(&mut self, mode: DegradationMode, wishes: &[ServiceWish]) {
        self.mode = mode;
        for (service, wish) in self.services.iter_mut().zip(wishes) {
            service.adopt(wish, mode);
        }
    }

    /// Returns how many services there are.
    pub fn len(&self) -> usize {
        self.services.len()
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.services.is_empty()
    }

    /// Returns the cap of `service`, if it has one.
    pub fn cap(&self, service: ServiceId) -> Option<f64> {
        self.services[service.index()].cap
    }

    /// Returns whether a trial of a limit of one of the services may begin. Caps come first: where
    /// they had no time between two trials, they would be held most of the time.
    pub fn lets_try(&self, now: Instant) -> bool {
        !self.has_caps() || self.caps_first_until.is_none_or(|until| now >= until)
    }

    fn has_caps(&self) -> bool {
        self.services.iter().any(|service| service.cap.is_some())
    }

    /// Returns the wish for `service`.
    pub fn wish(&self, service: ServiceId) -> &ServiceWish {
        &self.services[service.index()].wish
    }

    /// Takes note of how late the application took in a request without any work, in seconds.
    pub fn set_lag(&mut self, lag: f64) {
        self.lag = Some(lag);
    }

    /// Returns how `service` stands.
    pub fn standing(&self, service: ServiceId) -> ServiceStanding {
        let state = &self.services[service.index()];
        let is_active = state.estimate.is_active();
        let is_known = is_active && state.estimate.alone().is_some();
        let effort = if is_known { state.estimate.effort() } else { 0.0 };
        ServiceStanding {
            slowdown: state.estimate.slowdown().filter(|_| is_active),
            effort,
            share: if self.capacity > 0.0 { effort / self.capacity } else { 0.0 },
            rate: if is_active { state.estimate.rate() } else { 0.0 },
            service: state.estimate.service().map_or(0.0, |(service, _)| service),
            alone: state.estimate.alone(),
            cap: state.cap,
            binding: state.binding,
        }
    }

    /// Returns Y, processor seconds a second: the most seen so far, which says little before the host
    /// was short.
    pub fn capacity(&self) -> f64 {
        self.capacity
    }

    /// Takes in what happened since the last tick, and decides when a window is over. `inputs`: by
    /// [`ServiceId`]. `patience`: of the least patient visitors, seconds. `is_on_trial`: whether
    /// the route law tries a limit of one of the services; caps stay meanwhile, for at most
    /// [`TRIAL_MAX`]. Returns whether a cap has changed.
    pub fn on_tick(
        &mut self,
        now: Instant,
        inputs: &[ServiceInput],
        patience: f64,
        is_on_trial: bool,
        out: &mut Vec<Record>,
    ) -> bool {
        if self.on_trial_since.is_some() && !is_on_trial {
            self.caps_first_until = Some(now + seconds(CAPS_FIRST));
        }
        self.on_trial_since = is_on_trial.then(|| self.on_trial_since.unwrap_or(now));
        for (service, input) in self.services.iter_mut().zip(inputs) {
            service.window.add(&input.sample);
            service.slots = input.slots;
        }
        let passed = now.secs_since(self.window_begin);
        let has_enough = |service: &Service| {
            service.window.answered >= ENDS_MIN || service.window.inside() + service.window.waiting() < 0.05
        };
        if passed < WINDOW_MIN || passed < WINDOW_MAX && !self.services.iter().all(has_enough) {
            return false;
        }
        self.window_begin = now;
        self.freshness = 1.0;
        for service in &mut self.services {
            service.estimate.fold(&service.window, service.cap);
            if service.estimate.is_occupied() {
                self.freshness = self.freshness.min(service.estimate.fresh());
            }
            service.window = ServiceSample::default();
        }
        self.measure_capacity(passed);
        let is_held =
            self.has_caps() && self.on_trial_since.is_some_and(|since| now.secs_since(since) < TRIAL_MAX);
        let had_caps = self.has_caps();
        let changed = !is_held && self.decide(now, patience, out);
        if !had_caps && self.has_caps() {
            self.caps_first_until = Some(now + seconds(CAPS_FIRST));
        }
        changed
    }

    /// Takes note that the application is away: what happens meanwhile says nothing.
    pub fn on_absence(&mut self, now: Instant) {
        self.window_begin = now;
        self.services.iter_mut().for_each(|service| service.window = ServiceSample::default());
    }

    fn measure_capacity(&mut self, passed: f64) {
        let effort = self.effort_now();
        let before = self.effort.filter(|before| *before > 0.0).unwrap_or(effort);
        let smooth = before + EFFORT_WEIGHT * (effort - before);
        // A host that has less to do than it could, or whose services are held, shows nothing of
        // what it can do at most.
        let is_short = self.services.iter().any(Service::is_slowed_by_the_host);
        self.short_windows = if is_short { self.short_windows.saturating_add(1) } else { 0 };
        self.was_short |= self.short_windows >= WINDOWS_TOLD;
        // A ceiling must not shrink with itself, whoever else is slow.
        let is_held = self.services.iter().any(|service| service.binding == Binding::Ceiling);
        let kept = if is_short && !is_held { exp(-passed / CAPACITY_MEMORY) } else { 1.0 };
        // What a service does that has answered nothing in this window is known at most.
        let shown = self.effort_of(|service| !service.estimate.is_silent());
        self.capacity = (self.capacity * kept).max(smooth.min(shown));
        self.effort = Some(smooth);
    }

    /// Returns Σ y in the last window. Of a service of which the time alone is unknown the work is,
    /// too: it may all be waiting.
    fn effort_now(&self) -> f64 {
        self.effort_of(|_| true)
    }

    fn effort_of(&self, counts: impl Fn(&Service) -> bool) -> f64 {
        let known = self.services.iter().filter(|service| service.estimate.alone().is_some());
        known.filter(|service| counts(service)).map(|service| service.estimate.effort()).sum()
    }

    /// Returns the Σ y that is divided: a window in which the host seems to do less than in those
    /// before says nothing, one in which it does more does.
    fn divided(&self) -> f64 {
        self.effort_now().max(self.effort.unwrap_or(0.0))
    }

    /// Returns what ln of all caps must rise by so that the host has enough to do; `None`: it has.
    /// It does less than its best, nobody waits who may start, and what is in the application is
    /// hardly slowed there. A host that does less because too much is in it slows all of it.
    fn idle(&self) -> Option<f64> {
        let effort = self.effort.unwrap_or(0.0);
        let active = || self.services.iter().filter(|service| service.estimate.is_occupied());
        let waiting: f64 =
            active().filter(|service| service.cap.is_none()).map(|service| service.estimate.waiting()).sum();
        let stretch = active().filter_map(|service| service.estimate.stretch()).fold(0.0, f64::max);
        let is_idle = effort < BUSY * self.capacity && waiting < IDLE_WAITING && stretch < CROWDED;
        is_idle.then(|| ln(self.capacity / effort.max(EFFORT_LEAST)).min(COMMON_RISE))
    }

    /// Moves the caps, and returns whether one has changed.
    fn decide(&mut self, now: Instant, patience: f64, out: &mut Vec<Record>) -> bool {
        let needs = self.needs();
        let late = self.lag.take().filter(|lag| *lag > LAG_MAX).and_then(|_| self.heaviest());
        let mut changed = false;
        let idle = self.idle();
        self.idle_at = idle.map_or(self.idle_at, |_| Some(now));
        let least = match self.idle_at {
            Some(at) if now.secs_since(at) < AFTER_IDLE => -AFTER_IDLE_FALL,
            _ => f64::MIN,
        };
        // Caps that hold all of them hold nobody for the sake of another.
        let active = self.services.iter().zip(&needs).filter(|(_, need)| need.is_some());
        let all_capped =
            active.clone().count() > 0 && active.clone().all(|(service, _)| service.cap.is_some());
        for index in 0..self.services.len() {
            let service = &mut self.services[index];
            let Some(need) = needs[index] else {
                let is_occupied = service.estimate.is_occupied();
                let is_unknown = is_occupied && service.estimate.stretch().is_none();
                if is_unknown && self.mode != DegradationMode::Off {
                    service.binding = Binding::Unknown;
                } else if !is_occupied && service.cap.is_none() {
                    service.binding = Binding::Free;
                }
                // A cap that is left behind would meet the first who come back.
                if let Some(old) = service.cap.filter(|_| is_unknown || !is_occupied) {
                    service.raise_without_need();
                    changed = true;
                    out.push(service.record(now, ServiceId(index as u32), old, None));
                }
                continue;
            };
            let others = needs.iter().enumerate().filter(|(other, _)| *other != index);
            let mut others: Vec<Need> = others.filter_map(|(_, need)| *need).collect();
            for other in &mut others {
                other.is_given_up = service.effects.is_given_up(now, other.service);
                other.is_behind &= !other.is_given_up;
            }
            let (mut step, mut binding) = self.step_of(&need, &others);
            if matches!(binding, Binding::Split | Binding::Floor) {
                step = step.map(|step| step.max(least));
            }
            if all_capped && binding != Binding::Ceiling {
                step = Some(step.unwrap_or(0.0) + COMMON_RISE);
            }
            if let Some(rise) = idle.filter(|_| binding != Binding::Ceiling) {
                // Up to its ceiling, not over it.
                let left = ln(need.ceiling / need.effort);
                let reason = if left < rise { Binding::Ceiling } else { Binding::Idle };
                (step, binding) = (Some(step.unwrap_or(0.0).max(rise.min(left))), reason);
            }
            let service = &mut self.services[index];
            if late == Some(index) && step.is_none_or(|step| step > -LAG_STEP) {
                (step, binding) = (Some(-LAG_STEP), Binding::Lag);
            }
            let before = service.cap;
            service.move_cap(now, step, binding, &need, &others, patience, self.mode);
            let (old, new) = (before.unwrap_or(0.0), service.cap.unwrap_or(0.0));
            changed |= before != service.cap;
            if (new - old).abs() > TOLD * old.max(new) {
                out.push(service.record(now, ServiceId(index as u32), old, Some(&need)));
            }
        }
        self.tell_out_of_reach(&needs);
        changed
    }

    /// Marks whose wish cannot be had: a service far behind beside others of which none gives way
    /// any further, and one whose floor is more than its part.
    fn tell_out_of_reach(&mut self, needs: &[Option<Need>]) {
        let gives = |service: &Service| {
            let can_give = service.cap.is_some_and(|cap| cap > CAP_LEAST);
            can_give && matches!(service.binding, Binding::Split | Binding::Ceiling | Binding::Lag)
        };
        let far_behind: Vec<bool> = (0..needs.len())
            .map(|index| {
                let Some(need) = needs[index].filter(|need| need.is_behind) else { return false };
                let others = needs.iter().zip(&self.services).enumerate();
                let mut others = others
                    .filter(|(other, _)| *other != index)
                    .filter_map(|(_, (need, service))| Some(((*need)?, service)));
                let misses_floor = need.effort < (1.0 - DEADBAND) * need.wished_floor;
                let has_its_part = self.mode != DegradationMode::Slowdown && need.error < DEADBAND;
                // What lacks to the aim is no debt while the floor itself is kept.
                let is_kept = need.floor > need.wished_floor && need.effort >= need.wished_floor;
                let beyond = if is_kept { ln(need.floor / need.wished_floor) } else { 0.0 };
                let gap = |other: Need| need.error - beyond - other.error;
                let is_far = misses_floor || others.clone().any(|(other, _)| gap(other) > VAIN_GAP);
                let nobody_gives = !need.is_capped && !others.any(|(_, service)| gives(service));
                is_far && nobody_gives || misses_floor && has_its_part
            })
            .collect();
        for (service, is_far_behind) in self.services.iter_mut().zip(far_behind) {
            service.tell_far_behind(is_far_behind);
        }
    }

    /// Returns the active service whose requests are most work, if there is another one.
    fn heaviest(&self) -> Option<usize> {
        let active = self.services.iter().enumerate().filter(|(_, service)| service.estimate.is_occupied());
        let work = |service: &Service| service.estimate.service().map_or(0.0, |(_, work)| work);
        let all: Vec<_> = active.map(|(index, service)| (work(service), index)).collect();
        (all.len() > 1).then(|| all.into_iter().max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, index)| index))?
    }

    /// Returns where each active service of which enough is known is with its wish.
    fn needs(&self) -> Vec<Option<Need>> {
        let mut needs: Vec<Option<Need>> =
            (0..).zip(&self.services).map(|(index, service)| self.need(index, service)).collect();
        let most = self.floor_aim_max(&needs);
        for need in needs.iter_mut().flatten() {
            // What is aimed at keeps a distance from the service's own ceiling, too.
            let below_ceiling = need.wished_floor + 0.5 * (need.ceiling - need.wished_floor).max(0.0);
            let aim = need.floor_aim.min(most) * need.wished_floor;
            need.floor = aim.min(below_ceiling).min(need.ceiling);
        }
        match self.mode {
            DegradationMode::Off => needs.fill(None),
            DegradationMode::Slowdown => {
                let top = needs.iter().flatten().map(|need| need.error).fold(f64::MIN, f64::max);
                for need in needs.iter_mut().flatten() {
                    // A floor comes first: below it nobody else is further behind.
                    if need.is_behind && need.effort < need.floor {
                        need.error = top + ln(need.floor / need.effort);
                    }
                }
            }
            DegradationMode::Shares | DegradationMode::Bands => {
                let claim = |(need, service): (&Need, &Service)| Claim {
                    demand: if need.is_behind { f64::INFINITY } else { need.effort },
                    floor: need.floor,
                    ceiling: need.ceiling,
                    weight: service.wish.weight,
                };
                let known = needs.iter().zip(&self.services);
                let claims: Vec<Claim> =
                    known.filter_map(|(need, service)| Some((need.as_ref()?, service))).map(claim).collect();
                let parts = fill(self.divided(), &claims, self.mode == DegradationMode::Bands);
                for (need, part) in needs.iter_mut().flatten().zip(parts) {
                    need.error = ln(part.max(EFFORT_LEAST) / need.effort).max(-AHEAD_MAX);
                }
            }
        }
        needs
    }

    /// Returns what is aimed at ÷ a floor, as far as the floors leave room for it.
    fn floor_aim_max(&self, needs: &[Option<Need>]) -> f64 {
        let all = self.divided();
        // Where they cannot all be had, the first ones are kept at the cost of the last, and a floor
        // in percent takes no more beyond its due than one in completions.
        let (mut kept, mut most) = (0.0, f64::INFINITY);
        for need in needs.iter().flatten() {
            if kept + need.wished_floor > (1.0 + DEADBAND) * all {
                most = FLOOR_AIM;
                break;
            }
            kept += need.wished_floor;
        }
        let room = 1.0 + AIM_OF_REST * (all - kept).max(0.0) / kept.max(EFFORT_LEAST);
        room.min(most)
    }

    fn need(&self, index: u32, service: &Service) -> Option<Need> {
        let slowdown = service.estimate.slowdown().filter(|_| service.estimate.is_active())?;
        let amount = |amount: Option<Amount>, host: f64| amount.and_then(|it| service.effort_of(it, host));
        // A share of what is unknown holds nobody.
        let is_host_known = self.was_short && self.capacity > 0.0;
        let is_known = |amount: &Amount| is_host_known || matches!(amount, Amount::PerSecond(_));
        let ceiling = service.wish.ceiling.filter(is_known);
        Some(Need {
            service: index,
            told: service.estimate.told(),
            slowdown,
            response: (service.estimate.inside() + service.estimate.waiting())
                / service.estimate.rate().max(EFFORT_LEAST),
            rate: service.estimate.rate(),
            stretch: service.estimate.stretch().unwrap_or(1.0),
            error: service.estimate.ln_slowdown()? - ln(service.wish.slowdown),
            // What its own ceiling or a late probe holds back is nobody else's debt.
            is_behind: slowdown > CALM && !matches!(service.binding, Binding::Ceiling | Binding::Lag),
            is_capped: service.cap.is_some(),
            is_given_up: false,
            wished_floor: amount(service.wish.floor, self.divided()).unwrap_or(0.0),
            floor_aim: match service.wish.floor {
                Some(Amount::OfHost(_)) => FLOOR_AIM_OF_HOST,
                Some(Amount::PerSecond(_)) | None => FLOOR_AIM,
            },
            floor: 0.0,
            ceiling: amount(ceiling, self.capacity).unwrap_or(f64::INFINITY),
            effort: service.estimate.effort().max(EFFORT_LEAST),
        })
    }

    /// Returns what ln m changes by, and why; `None`: it stays.
    fn step_of(&self, need: &Need, others: &[Need]) -> (Option<f64>, Binding) {
        // One that has a cap itself gets more by that, and nobody has to give.
        let behind = others.iter().filter(|other| other.is_behind && !other.is_capped);
        let behind = behind.map(|other| other.error);
        let gap = behind.fold(f64::MIN, f64::max) - need.error;
        // What has no more than its part gives nothing.
        let may_give = self.mode == DegradationMode::Slowdown || need.error < -DEADBAND;
        let ahead = need.error - others.iter().map(|other| other.error).fold(f64::MAX, f64::min);
        let gain = (GAIN_FRESH * self.freshness).min(GAIN);
        let (mut step, mut binding) = if gap > DEADBAND && may_give {
            // In the modes of shares a floor is in its part already, as far as it can be had.
            let keeps_floor = self.mode == DegradationMode::Slowdown && need.floor > 0.0;
            let least = if keeps_floor { gain * ln(need.floor / need.effort).min(0.0) } else { f64::MIN };
            let wanted = -gain * gap;
            let is_at_floor = wanted < least && need.effort < (1.0 + DEADBAND) * need.floor;
            let binding = if is_at_floor { Binding::Floor } else { Binding::Split };
            (Some(wanted.max(least).max(-STEP_MAX)), binding)
        } else if need.is_behind && ahead > DEADBAND && !others.is_empty() {
            (Some((gain * ahead).min(STEP_MAX)), Binding::Split)
        } else if !others.iter().any(|other| other.is_behind) {
            (Some(RELAX), Binding::Split)
        } else {
            (None, Binding::Split)
        };
        if need.ceiling.is_finite() {
            let to_ceiling = (GAIN * ln(need.ceiling / need.effort)).clamp(-STEP_MAX, STEP_MAX);
            if step.is_none_or(|step| to_ceiling < step) && to_ceiling < RELAX {
                (step, binding) = (Some(to_ceiling), Binding::Ceiling);
            }
        }
        (step, binding)
    }
}

/// Effort below which a service does nothing, processor seconds a second.
const EFFORT_LEAST: f64 = 1e-6;

#[cfg(test)]
mod tests;
