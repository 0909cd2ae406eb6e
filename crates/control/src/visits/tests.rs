use super::*;

const SHOP: KindId = KindId(0);
const LOGIN: RouteId = RouteId(0);
const BROWSE: RouteId = RouteId(1);
const SEARCH: RouteId = RouteId(2);

fn learned() -> Visits {
    let mut visits = Visits::default();
    (0..3).for_each(|_| visits.add_route());
    visits.add_kind();
    let path = [(LOGIN, 0.0), (BROWSE, 3.0), (BROWSE, 6.0), (BROWSE, 9.0), (SEARCH, 12.0)];
    (0..50).for_each(|_| visits.teach(SHOP, &path));
    visits
}

#[test]
fn further_visits_are_learned_from_the_whole_path() {
    let visits = learned();
    assert!((visits.per_session(SHOP, BROWSE) - 3.0).abs() < 1e-9);
    assert!((visits.per_session(SHOP, SEARCH) - 1.0).abs() < 1e-9);
    assert!((visits.delay(BROWSE) - 6.0).abs() < 1e-6);
    assert!((visits.delay(SEARCH) - 12.0).abs() < 1e-6);
}

#[test]
fn the_rank_of_a_visit_is_that_among_its_session_s_own_to_the_same_route() {
    let visits = learned();
    assert!((visits.rank(BROWSE) - 2.0).abs() < 1e-6, "the first, the second or the third of three");
    assert!((visits.rank(SEARCH) - 1.0).abs() < 1e-6);
    let mut unknown = Visits::default();
    unknown.add_route();
    assert!((unknown.rank(LOGIN) - 1.0).abs() < 1e-9, "nothing is known");
}

#[test]
fn what_comes_next_is_learned_place_by_place() {
    let visits = learned();
    let next = |place| visits.next(SHOP, place).1.to_vec();
    let close = |a: &[f64], b: [f64; 3]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 0.02);
    assert!(close(&next(LastRoute::START), [1.0, 0.0, 0.0]), "{:?}", next(LastRoute::START));
    assert!(close(&next(LastRoute::at(BROWSE)), [0.0, 0.667, 0.333]), "{:?}", next(LastRoute::at(BROWSE)));
    assert!(close(&next(LastRoute::at(SEARCH)), [0.0; 3]), "sessions end there");
    assert_eq!(
        (visits.next(SHOP, LastRoute::START).0, visits.next(SHOP, LastRoute::at(BROWSE)).0),
        (50, 150)
    );
}

#[test]
fn a_route_found_later_has_a_place_in_what_comes_next() {
    let mut visits = learned();
    visits.add_route();
    let late = RouteId(3);
    (0..200).for_each(|_| visits.teach(SHOP, &[(LOGIN, 0.0), (late, 1.0)]));
    assert!(visits.next(SHOP, LastRoute::at(LOGIN)).1[3] > 0.99, "and what was learned before is forgotten");
    assert!(visits.next(SHOP, LastRoute::at(late)).1.iter().all(|share| *share == 0.0));
}

#[test]
fn remaining_visits_follow_the_sessions_under_way() {
    let mut visits = learned();
    visits.enter(SHOP, LastRoute::START);
    assert!((visits.remaining(SEARCH) - 1.0).abs() < 1e-9);
    visits.leave(SHOP, LastRoute::START, 0);
    visits.enter(SHOP, LastRoute::at(SEARCH));
    visits.request_begins(SEARCH);
    assert!((visits.remaining(SEARCH) - 1.0).abs() < 1e-9, "the visit under way still counts");
    visits.request_ends(SEARCH);
    assert!(visits.remaining(SEARCH) < 1e-9);
    visits.leave(SHOP, LastRoute::at(SEARCH), 0);
    assert_eq!(visits.under_way(SHOP), 0);
}

#[test]
fn a_recount_agrees_with_the_running_count() {
    let mut visits = learned();
    for _ in 0..7 {
        visits.enter(SHOP, LastRoute::START);
        visits.enter(SHOP, LastRoute::at(BROWSE));
    }
    let running: Vec<_> = visits.routes().map(|r| visits.remaining(r)).collect();
    visits.refresh();
    let recounted: Vec<_> = visits.routes().map(|r| visits.remaining(r)).collect();
    running.iter().zip(&recounted).for_each(|(a, b)| assert!((a - b).abs() < 1e-9));
}

#[test]
fn silence_follows_the_longest_thinkers() {
    let mut visits = learned();
    assert!((visits.silence() - SILENCE_UNKNOWN).abs() < 1e-9);
    (0..100).for_each(|_| visits.thought(4.0, false));
    visits.refresh();
    assert!((visits.silence() / 6.0 - 1.0).abs() < 0.1);
    assert!((visits.silence_after(0) / 4.0 - 1.0).abs() < 0.1);
}

#[test]
fn whoever_is_silent_for_long_is_worth_what_such_were_worth_before() {
    let mut visits = learned();
    let place = LastRoute::at(BROWSE);
    // Nine in ten come back in the first stage; of the rest, one in four in the fourth.
    for n in 0..4000 {
        visits.enter(SHOP, place);
        let came_back = n % 10 != 0 || n % 40 == 0;
        let stage = if n % 10 != 0 { 0 } else { 3 + usize::from(!came_back) };
        (0..stage).for_each(|stage| visits.fall_silent(SHOP, place, stage));
        visits.silence_over(SHOP, place, stage, came_back);
        visits.leave(SHOP, place, stage);
    }
    (0..10).for_each(|_| visits.enter(SHOP, place));
    visits.refresh();
    let fresh = visits.remaining(SEARCH);
    (0..3).for_each(|stage| (0..10).for_each(|_| visits.fall_silent(SHOP, place, stage)));
    visits.refresh();
    let silent = visits.remaining(SEARCH);
    assert!((0.15..0.4).contains(&(silent / fresh)), "{silent} of {fresh}");
    (0..10).for_each(|_| visits.leave(SHOP, place, 3));
    assert!(visits.remaining(SEARCH) < 1e-9 && visits.under_way(SHOP) == 0);
}

#[test]
fn a_route_added_later_is_known_to_earlier_kinds() {
    let mut visits = learned();
    visits.add_route();
    visits.enter(SHOP, LastRoute::at(RouteId(3)));
    assert!(visits.remaining(RouteId(3)) < 1e-9);
    visits.leave(SHOP, LastRoute::at(RouteId(3)), 0);
}

#[test]
fn what_follows_a_route_added_later_is_learned_for_every_route() {
    let mut visits = Visits::default();
    visits.add_kind();
    (0..3).for_each(|_| visits.add_route());
    (0..50).for_each(|_| visits.teach(SHOP, &[(LOGIN, 0.0), (BROWSE, 3.0), (SEARCH, 6.0)]));
    visits.enter(SHOP, LastRoute::at(BROWSE));
    assert!((visits.remaining(SEARCH) - 1.0).abs() < 1e-9, "{}", visits.remaining(SEARCH));
    visits.leave(SHOP, LastRoute::at(BROWSE), 0);
    visits.enter(SHOP, LastRoute::at(LOGIN));
    assert!((visits.remaining(SEARCH) - 1.0).abs() < 1e-9, "{}", visits.remaining(SEARCH));
}

/// Sessions that begin within 3 s. Four of five ask for one page and are taken to have ended 10 s
/// later; the others browse three times and then search, all within 9 s. Returns what is known
/// after `until` seconds, and which share went on.
fn bounce(seed: u64, sessions: usize, until: f64) -> (Visits, f64) {
    let mut rng = suimon_model::Rng::new(seed);
    let mut visits = Visits::default();
    (0..3).for_each(|_| visits.add_route());
    visits.add_kind();
    let mut moves = vec![];
    let mut went_on = 0;
    for session in 0..sessions {
        let begin = rng.between(0.0, 3.0);
        let path: Vec<Visit> = if rng.chance(0.8) {
            vec![(LOGIN, 0.0)]
        } else {
            went_on += 1;
            vec![(LOGIN, 0.0), (BROWSE, 2.0), (BROWSE, 4.0), (BROWSE, 6.0), (SEARCH, 8.9)]
        };
        let end = begin + 10.0 + f64::from(path.last().unwrap().1);
        moves.extend((0..=path.len()).map(|step| {
            let at = path.get(step).map_or(end, |(_, after)| begin + f64::from(*after));
            (at, session, step, path.clone())
        }));
    }
    moves.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.2.cmp(&b.2)));
    for (_, _, step, path) in moves.into_iter().take_while(|(at, ..)| *at <= until) {
        if step == 0 {
            visits.begin(SHOP);
        }
        let before = step.checked_sub(1).map_or(LastRoute::START, |before| LastRoute::at(path[before].0));
        visits.leave(SHOP, before, 0);
        match path.get(step) {
            Some((route, _)) => visits.enter(SHOP, LastRoute::at(*route)),
            None => visits.teach(SHOP, &path),
        }
    }
    visits.refresh();
    (visits, f64::from(went_on) / sessions as f64)
}

#[test]
fn while_sessions_are_young_the_first_to_end_do_not_stand_for_those_who_stay() {
    for seed in 0..200 {
        let (visits, went_on) = bounce(seed, 200, 12.0);
        assert!(visits.ended(SHOP) > 20 && visits.is_young(SHOP), "seed {seed}: {}", visits.ended(SHOP));
        assert!(visits.kinds[0].rows[0].further[SEARCH.index()] < 1e-9, "those that ended never searched");
        let (search, browse) = (visits.per_session(SHOP, SEARCH), visits.per_session(SHOP, BROWSE));
        assert!((search / went_on - 1.0).abs() < 0.25, "seed {seed}: {search} of {went_on}");
        assert!((browse / (3.0 * went_on) - 1.0).abs() < 0.25, "seed {seed}: {browse}, 3 × {went_on}");
        assert!((visits.per_session(SHOP, LOGIN) - 1.0).abs() < 1e-9);
    }
}

#[test]
fn once_twice_as_many_have_ended_as_are_under_way_they_stand_for_all() {
    let (visits, _) = bounce(1, 200, 60.0);
    assert!(!visits.is_young(SHOP) && visits.under_way(SHOP) == 0);
    let search = visits.per_session(SHOP, SEARCH);
    assert_eq!(search.to_bits(), visits.kinds[0].rows[0].further[SEARCH.index()].to_bits());
}

#[test]
fn sessions_are_young_until_twice_as_many_have_ended_as_are_under_way() {
    let mut visits = learned();
    (0..25).for_each(|_| visits.begin(SHOP));
    visits.refresh();
    assert!(!visits.is_young(SHOP), "50 have ended, 25 are under way");
    assert!((visits.per_session(SHOP, SEARCH) - 1.0).abs() < 1e-9);
    visits.begin(SHOP);
    assert!(!visits.is_young(SHOP), "it is counted at the tick");
    visits.refresh();
    assert!(visits.is_young(SHOP));
}

#[test]
fn young_sessions_yet_to_come_somewhere_count_for_what_lies_ahead() {
    let mut visits = learned();
    (0..100).for_each(|_| visits.begin(SHOP));
    visits.refresh();
    assert!(visits.is_young(SHOP));
    assert!((visits.per_session(SHOP, BROWSE) - 3.0).abs() < 1e-9, "none was made, and all lie ahead");
}

#[test]
fn a_flood_that_ends_at_once_does_not_make_those_that_stay_old() {
    let mut visits = learned();
    (0..30).for_each(|_| comes_back(&mut visits, LastRoute::at(LOGIN), [LOGIN, BROWSE]));
    visits.refresh();
    assert!(!visits.is_young(SHOP), "nobody came for one page: those that ended stand for all");
    (0..100).for_each(|_| visits.stays_away(SHOP, LastRoute::at(SEARCH)));
    assert!(visits.is_young(SHOP), "30 of those that stay are under way, and none has ended");
    (0..20).for_each(|_| visits.returned_leaves(SHOP, true));
    assert!(!visits.is_young(SHOP), "20 have ended, 10 are under way");
}

fn comes_back(visits: &mut Visits, entry: LastRoute, path: [RouteId; 2]) {
    visits.comes_back(SHOP, entry, false);
    visits.returned_enters(SHOP, path);
}

#[test]
fn of_each_entry_it_is_known_how_many_come_back() {
    let mut visits = learned();
    let (login, browse) = (LastRoute::at(LOGIN), LastRoute::at(BROWSE));
    assert_eq!(visits.comes_back_share(SHOP, login), None);
    (0..9).for_each(|_| visits.stays_away(SHOP, browse));
    (0..9).for_each(|_| comes_back(&mut visits, login, [LOGIN, BROWSE]));
    assert_eq!(visits.comes_back_share(SHOP, login), Some(1.0));
    assert_eq!(visits.comes_back_share(SHOP, browse), Some(0.1), "one more that does is counted");
    (0..2).for_each(|_| visits.comes_back(SHOP, browse, true));
    visits.returned_enters(SHOP, [BROWSE, BROWSE]);
    assert_eq!(visits.comes_back_share(SHOP, browse), Some(0.3), "it was wrong of two of the nine");
    visits.goes_on(SHOP, BROWSE);
    assert!((visits.made_by_returned(SHOP, BROWSE) - 12.0).abs() < 1e-9);
    visits.renew_route(BROWSE);
    assert_eq!(visits.comes_back_share(SHOP, browse), None, "the number is another route's now");
    assert_eq!(visits.returned(SHOP), 11);
}

#[test]
fn those_of_whom_nothing_is_known_are_judged_by_the_others_of_their_entry() {
    let mut visits = learned();
    let (login, browse) = (LastRoute::at(LOGIN), LastRoute::at(BROWSE));
    (0..30).for_each(|_| visits.begins_at(SHOP, login));
    (0..700).for_each(|_| visits.begins_at(SHOP, browse));
    assert!(visits.will_come_back(SHOP) == 0.0, "nobody has");
    (0..10).for_each(|_| comes_back(&mut visits, login, [LOGIN, BROWSE]));
    assert!(
        (visits.will_come_back(SHOP) - 10.0).abs() < 1e-9,
        "20 are open; 10 came back of 10 and half of 20"
    );
    (0..3).for_each(|_| comes_back(&mut visits, browse, [BROWSE, BROWSE]));
    let of_browse = visits.will_come_back(SHOP) - 10.0;
    assert!((5.0..7.0).contains(&of_browse), "three of a flood do not stand for it: {of_browse}");
    (0..20).for_each(|_| visits.stays_away(SHOP, login));
    (0..697).for_each(|_| visits.stays_away(SHOP, browse));
    assert!(visits.will_come_back(SHOP) == 0.0, "of all of them it is known");
}

#[test]
fn a_few_who_did_not_come_back_say_nothing_of_an_entry() {
    let mut visits = learned();
    let login = LastRoute::at(LOGIN);
    (0..3).for_each(|_| comes_back(&mut visits, login, [LOGIN, BROWSE]));
    (0..4).for_each(|_| visits.stays_away(SHOP, login));
    assert!(!visits.often_comes_back(SHOP, login, 0.3), "seven are known");
    visits.stays_away(SHOP, login);
    assert!(visits.often_comes_back(SHOP, login, 0.3), "three of eight came back");
}

#[test]
fn whoever_began_long_ago_is_forgotten() {
    let mut visits = learned();
    let login = LastRoute::at(LOGIN);
    (0..100_000).for_each(|_| visits.stays_away(SHOP, login));
    (0..500).for_each(|_| comes_back(&mut visits, login, [LOGIN, BROWSE]));
    assert!(
        visits.comes_back_share(SHOP, login).unwrap() > 0.8,
        "a night's bounces do not make a morning cheap"
    );
    assert!(!visits.mostly_passes_by(SHOP));
}

#[test]
fn a_silence_is_held_against_what_came_before_a_second_page() {
    let mut visits = learned();
    // Scripts of a page ask a moment after it.
    (0..100).for_each(|_| visits.thought(0.2, false));
    visits.refresh();
    assert!(!visits.is_away_after(STAGES - 1), "nobody's second page is known");
    (0..20).for_each(|n| visits.thought(f64::from(n), true));
    visits.refresh();
    assert!(!visits.is_away_after(1), "after {} s", visits.silence_after(1));
    assert!(visits.is_away_after(STAGES - 1), "after {} s", visits.silence_after(STAGES - 1));
}

#[test]
fn returns_are_visits_beyond_the_first_of_each_session() {
    let mut visits = learned();
    assert!(visits.returns_per_session(SHOP) == 0.0, "none has begun");
    let walk = |visits: &mut Visits, routes: &[RouteId]| {
        let mut place = LastRoute::START;
        for route in routes {
            visits.leave(SHOP, place, 0);
            place = LastRoute::at(*route);
            visits.enter(SHOP, place);
        }
        visits.leave(SHOP, place, 0);
    };
    visits.begin(SHOP);
    assert!(visits.returns_per_session(SHOP) == 0.0, "nothing was asked for yet");
    walk(&mut visits, &[LOGIN]);
    assert!(visits.returns_per_session(SHOP) == 0.0);
    visits.begin(SHOP);
    walk(&mut visits, &[LOGIN, BROWSE, BROWSE]);
    assert!((visits.returns_per_session(SHOP) - 1.0).abs() < 1e-9, "four visits of two sessions");
}

#[test]
fn whoever_was_taken_to_have_ended_and_goes_on_counts_as_another_session() {
    let mut visits = learned();
    visits.begin(SHOP);
    visits.leave(SHOP, LastRoute::START, 0);
    visits.enter(SHOP, LastRoute::at(LOGIN));
    visits.leave(SHOP, LastRoute::at(LOGIN), 0);
    visits.begins_again(SHOP);
    assert_eq!(visits.under_way(SHOP), 0, "it is counted in where it goes on");
    visits.enter(SHOP, LastRoute::at(BROWSE));
    assert_eq!(visits.under_way(SHOP), 1);
    assert!(visits.returns_per_session(SHOP) == 0.0, "two visits of two");
}

/// Teaches a site where every session makes `usual` visits to search, and `robots` in a hundred are
/// robots that make 64.
fn with_robots(usual: usize, robots: u64, seed: u64) -> Visits {
    let mut visits = learned();
    let mut rng = suimon_model::Rng::stream(seed, 1);
    let session = |visits: usize| -> Vec<Visit> { (0..visits).map(|n| (SEARCH, n as f32)).collect() };
    for _ in 0..2000 {
        let is_robot = rng.between(0.0, 100.0) < robots as f64;
        visits.teach(SHOP, &session(if is_robot { PATH_MAX } else { usual }));
    }
    visits
}

#[test]
fn robots_among_twenty_sessions_do_not_make_sessions_look_dear() {
    for usual in [1, 3, 10] {
        for seed in 1..=5 {
            let visits = with_robots(usual, 5, seed);
            let seen = visits.per_session(SHOP, SEARCH);
            assert!(seen < 1.5 * usual as f64, "{seen} visits instead of {usual}, seed {seed}");
            let mut under_way = visits.clone();
            under_way.enter(SHOP, LastRoute::at(SEARCH));
            let to_come = under_way.remaining(SEARCH);
            assert!(to_come <= usual as f64, "{to_come} more, where {usual} in all are usual, seed {seed}");
        }
    }
}

#[test]
fn a_robot_among_twenty_on_a_route_that_few_ask_for_is_worth_two_visits() {
    let mut visits = learned();
    for n in 0..2000_usize {
        let searches = if n % 20 == 0 { PATH_MAX } else { 0 };
        let path: Vec<Visit> = std::iter::once(LOGIN)
            .chain(std::iter::repeat_n(SEARCH, searches))
            .map(|route| (route, 1.0))
            .collect();
        visits.teach(SHOP, &path);
    }
    assert!(visits.per_session(SHOP, SEARCH) < 0.2, "{}", visits.per_session(SHOP, SEARCH));
}

#[test]
fn long_sessions_of_every_visitor_are_learned_in_full() {
    let visits = with_robots(40, 0, 1);
    assert!((visits.per_session(SHOP, SEARCH) - 40.0).abs() < 0.1, "{}", visits.per_session(SHOP, SEARCH));
}

#[test]
fn a_tenth_of_visitors_who_stay_is_learned_in_full_beside_those_who_bounce() {
    for seed in 1..=5 {
        let mut visits = learned();
        let mut rng = suimon_model::Rng::stream(seed, 1);
        let (mut made, mut seen) = (0.0, 0.0);
        for n in 0..4000 {
            let searches = if rng.between(0.0, 1.0) < 0.1 { 20 } else { 1 };
            let path: Vec<Visit> = (0..searches).map(|n| (SEARCH, n as f32)).collect();
            visits.teach(SHOP, &path);
            if n >= 1000 {
                made += f64::from(searches);
                seen += visits.per_session(SHOP, SEARCH);
            }
        }
        assert!(
            (seen / made - 1.0).abs() < 0.1,
            "{} instead of {}, seed {seed}",
            seen / 3000.0,
            made / 3000.0
        );
    }
}

#[test]
fn a_heavy_tail_of_honest_sessions_is_learned() {
    let mut visits = learned();
    let mut rng = suimon_model::Rng::stream(1, 1);
    let (mut made, mut seen) = (0.0, 0.0);
    for _ in 0..4000 {
        let mut path: Vec<Visit> = vec![(SEARCH, 0.0)];
        while path.len() < PATH_MAX && rng.between(0.0, 1.0) > 0.125 {
            path.push((SEARCH, path.len() as f32));
        }
        made += path.len() as f64;
        visits.teach(SHOP, &path);
        seen += visits.per_session(SHOP, SEARCH);
    }
    assert!((seen / made - 1.0).abs() < 0.05, "{} instead of {}", seen / 4000.0, made / 4000.0);
}

#[test]
fn sessions_that_became_long_are_learned_within_some_dozens() {
    let mut visits = with_robots(2, 0, 1);
    let path: Vec<Visit> = (0..40).map(|n| (SEARCH, n as f32)).collect();
    (0..150).for_each(|_| visits.teach(SHOP, &path));
    assert!(visits.per_session(SHOP, SEARCH) > 30.0, "{}", visits.per_session(SHOP, SEARCH));
}
