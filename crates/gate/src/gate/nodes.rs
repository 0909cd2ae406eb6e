//! The application's nodes become more or fewer.
//!
//! Limits and capacities were found with the nodes that were there. With others each node has as many
//! requests as before, and does as much, so both change in proportion at once; what is not quite right
//! then is found by the laws, as always. Without this a node that was just borrowed would get nothing
//! until a trial had shown that a higher limit pays.

use super::Gate;
use suimon_model::{Instant, PoolId, RouteId};

impl Gate {
    /// Takes note that the first pool's requests go to `now_there` nodes, where it was `before`. Nothing
    /// follows if either is 0: without nodes nothing is known of limits with nodes.
    pub fn handle_nodes(&mut self, now: Instant, before: u32, now_there: u32) {
        if before == now_there || before == 0 || now_there == 0 {
            return;
        }
        let ratio = f64::from(now_there) / f64::from(before);
        self.law.scale(now, ratio, &mut self.fresh);
        for (route, meter) in self.routes.iter_mut().zip(&self.meters) {
            if route.pool == PoolId(0) {
                route.capacity.scale(now, meter, ratio);
                if let Some(recalled) = &mut route.recalled {
                    recalled.scale(ratio);
                }
            }
        }
        (0..self.routes.len()).for_each(|index| self.serve_route(now, RouteId(index as u32)));
        self.publish();
    }
}
