//! What is asked for: one page, by visitors who come at equal intervals and do not come back.

use super::fault::Fault;

/// How long a visitor waits.
const PATIENCE_S: u32 = 10;
/// The step whose requests may be sent again if their worker dies, and the one whose may not.
pub(super) const GET: &str = "get";
pub(super) const POST: &str = "post";
/// Visitors under an overload, and how long each rests between two pages.
const ALWAYS: u32 = 60;
const REST_MS: u32 = 100;

/// Returns the journey file of a steady load that ends by itself. One in four is a POST.
pub(super) fn steady(seed: u64, fault: Fault, rate_per_s: f64) -> String {
    let (path, seconds) = (fault.path(), fault.lasts_s());
    let arrivals = format!(
        "[arrivals.open]\nspacing = \"even\"\nphases = [{{ for = \"{seconds}s\", rate_per_s = {rate_per_s:.3} }}]\n"
    );
    let get = step(GET, 3, &format!("path = \"{path}?page=7\"\n"));
    let post =
        step(POST, 1, &format!("path = \"{path}?page=7\"\nmethod = \"POST\"\nform = {{ page = \"7\" }}\n"));
    whole(seed, &arrivals, PATIENCE_S, &(get + &post))
}

/// Returns the journey file of visitors who always ask.
pub(super) fn always(seed: u64) -> String {
    let arrivals =
        format!("[arrivals.closed]\nusers = {ALWAYS}\nstart_over = \"500ms\"\npause = \"{REST_MS}ms\"\n");
    whole(seed, &arrivals, 60, &step(GET, 1, "path = \"/?page=7\"\n"))
}

fn whole(seed: u64, arrivals: &str, patience_s: u32, journeys: &str) -> String {
    format!(
        "seed = {seed}\n\n{arrivals}\n[visitor]\npatience = \"{patience_s}s\"\nreturning = false\n\n\
         [visitor.on_failure]\nretries_max = 0\n\n[visitor.on_refusal]\nretries_max = 0\n\n{journeys}"
    )
}

fn step(name: &str, weight: u32, what: &str) -> String {
    format!(
        "[[journey]]\nname = \"{name}\"\nweight = {weight}\n\n[[journey.steps]]\nname = \"{name}\"\n{what}\
         expect = {{ status = 200, text = \"Digest of the page\" }}\n\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_journey_is_one_the_crowd_understands() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journey.toml");
        for text in Fault::ALL.map(|fault| steady(1, fault, 61.3)).into_iter().chain([always(1)]) {
            std::fs::write(&path, &text).unwrap();
            suimon_settings::journey::load(&path).unwrap_or_else(|faults| panic!("{faults}\n{text}"));
        }
    }
}
