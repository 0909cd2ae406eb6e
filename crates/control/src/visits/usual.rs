//! How many visits to a route are usual for one session: more are a robot's, and nothing is learned
//! from them.
//!
//! *Law*. Of the sessions of a kind that ended lately, at most the share [`UNUSUAL`] makes more
//! visits to a route than the bound u; up to twice u visits are learned from, at least
//! [`LEARNED_LEAST`]. So a twentieth of all sessions teaches next to nothing however many requests
//! each of them makes, and the behaviour of a tenth of them is learned in full, as is a heavy tail
//! of honest sessions.
//!
//! *Signals*: the visits to each route, of each session that ended. *Memory*: [`REMEMBERED`]
//! sessions to twice as many. As long as these are few, so is the share of one of them, and it is
//! no more than a single session among fifteen that counts for unusual.

/// Visits of one session that are remembered to learn from.
pub const PATH_MAX: usize = 64;
/// The largest share of sessions that is not believed.
const UNUSUAL: f64 = 0.07;
/// Multiple of the usual number that is learned from, and at least the number of visits below.
const LEARNED: u32 = 2;
const LEARNED_LEAST: u32 = 2;
/// Sessions after twice as many of which each counts half.
const REMEMBERED: u32 = 512;
/// The most visits of each class of sessions.
const CLASSES: [u32; 12] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, PATH_MAX as u32];

/// The sessions of one kind that ended lately, by their visits to each route.
#[derive(Clone, Debug, Default)]
pub(super) struct TypicalVisits {
    sessions: u32,
    /// By route: sessions with visits to it, by class.
    routes: Vec<Classes>,
}

#[derive(Clone, Debug)]
struct Classes {
    counts: Vec<u32>,
}

suimon_model::saved_struct!(TypicalVisits { sessions, routes });
suimon_model::saved_struct!(Classes { counts }, |it: &Classes| it.counts.len() == CLASSES.len());

impl TypicalVisits {
    /// Returns one that knows nothing, for this number of `routes`.
    pub(super) fn of(routes: usize) -> Self {
        let mut usual = TypicalVisits::default();
        (0..routes).for_each(|_| usual.add_route());
        usual
    }

    pub(super) fn add_route(&mut self) {
        self.routes.push(Classes { counts: vec![0; CLASSES.len()] });
    }

    /// Forgets what is known of `route`.
    pub(super) fn renew_route(&mut self, route: usize) {
        self.routes[route].counts.fill(0);
    }

    pub(super) fn routes(&self) -> usize {
        self.routes.len()
    }

    /// Takes note of a session that ended, with its visits to each route it has been to.
    pub(super) fn fold(&mut self, visits: impl Iterator<Item = (usize, u32)>) {
        if self.sessions >= 2 * REMEMBERED {
            self.sessions /= 2;
            self.routes.iter_mut().flat_map(|route| &mut route.counts).for_each(|count| *count /= 2);
        }
        self.sessions += 1;
        for (route, visits) in visits {
            let class = CLASSES.partition_point(|most| *most < visits).min(CLASSES.len() - 1);
            self.routes[route].counts[class] += 1;
        }
    }

    /// Returns how many visits of one session to `route` are learned from.
    pub(super) fn learned(&self, route: usize) -> u32 {
        if self.sessions == 0 {
            return u32::MAX;
        }
        let unusual = (UNUSUAL * f64::from(self.sessions)) as u32;
        let mut above = 0;
        for (most, count) in CLASSES.iter().zip(&self.routes[route].counts).rev() {
            above += count;
            if above > unusual {
                return LEARNED * most;
            }
        }
        LEARNED_LEAST
    }
}
