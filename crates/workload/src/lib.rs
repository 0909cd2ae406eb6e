//! Journeys, arrivals, think times and patience, from a seed.
