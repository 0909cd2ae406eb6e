//! What binds a service, as it is told.

suimon_model::choices! {
    /// What binds a service.
    #[derive(Eq)]
    pub enum Binding {
        /// It has all it asks for, as far as its routes' limits go.
        Free = 0, "free", "nothing: it has all it asks for, as far as the limits of its routes go";
        /// It gives way so that another one is slowed no more than was wished.
        Split = 1, "split", "it gives way to a service that is further behind its wish";
        /// Its own ceiling.
        Ceiling = 2, "ceiling", "its own ceiling";
        /// It would have to give way further, and those who wait could not be served in time.
        Patience = 3, "patience", "those who wait for it must be served in time, so that another service's wish is out of reach";
        /// It was slowed for another service, which was no faster for it.
        NoEffect = 4, "no_effect", "slowing it helped no other service, so it is not slowed for now";
        /// What its requests take alone is not known.
        Unknown = 5, "unknown", "what its requests take alone is not known yet, so it is neither slowed nor helped";
        /// The probe is late.
        Lag = 6, "lag", "the application is late to take in requests, and this service is the heaviest";
        /// Slowing it further would leave the host idle.
        Idle = 7, "idle", "slowing it further would leave the host idle, so that another service's wish is out of reach";
        /// Its wish cannot be had.
        OutOfReach = 8, "out_of_reach", "its wish cannot be had: no other service gives way any further";
        /// Its own floor.
        Floor = 9, "floor", "its own floor: it would give way further, if it had none";
    }
}
