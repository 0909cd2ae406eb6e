//! The split, on samples of services whose answer to a cap is known.

use super::*;
use suimon_model::Reason;

const A: ServiceId = ServiceId(0);
const B: ServiceId = ServiceId(1);

fn at(secs: f64) -> Instant {
    Instant::ORIGIN + seconds(secs)
}

/// A closed loop: this many clients of a service, whose requests take so many processor seconds.
#[derive(Clone, Copy, Debug)]
struct Clients {
    number: f64,
    work: f64,
}

/// A host of `cores` cores that shares them evenly among what runs.
struct Host {
    cores: f64,
    clients: Vec<Clients>,
}

impl Host {
    /// Returns what happens in `passed` seconds under these caps.
    fn inputs(&self, caps: &[Option<f64>], passed: f64) -> Vec<ServiceInput> {
        let inside = |(clients, cap): (&Clients, &Option<f64>)| cap.unwrap_or(f64::MAX).min(clients.number);
        let inside: Vec<f64> = self.clients.iter().zip(caps).map(inside).collect();
        let each = (self.cores / inside.iter().sum::<f64>()).min(1.0);
        let input = |(clients, inside): (&Clients, &f64)| {
            let ended = inside * each / clients.work * passed;
            ServiceInput {
                sample: ServiceSample {
                    seconds: passed,
                    inside_seconds: inside * passed,
                    waiting_seconds: (clients.number - inside) * passed,
                    ended,
                    spent_seconds: ended * clients.work / each,
                    answered: ended,
                    answered_seconds: ended * clients.work / each,
                    known: ended,
                    known_seconds: ended * clients.work / each,
                    alone_seconds: ended * clients.work,
                    work_seconds: ended * clients.work,
                },
                slots: f64::INFINITY,
            }
        };
        self.clients.iter().zip(&inside).map(input).collect()
    }

    fn caps(law: &Degradation) -> Vec<Option<f64>> {
        (0..law.len() as u32).map(|id| law.cap(ServiceId(id))).collect()
    }

    /// Plays from `from` on for `lasts` seconds.
    fn play(&self, law: &mut Degradation, from: f64, lasts: f64) -> Vec<Record> {
        let (tick, mut records) = (0.25, vec![]);
        for step in 1..=(lasts / tick) as u32 {
            let inputs = self.inputs(&Host::caps(law), tick);
            law.on_tick(at(from + tick * f64::from(step)), &inputs, 60.0, false, &mut records);
        }
        records
    }
}

/// Thirty light ones and twenty heavy ones on two cores.
fn shop() -> Host {
    let clients = vec![Clients { number: 30.0, work: 0.002 }, Clients { number: 20.0, work: 0.35 }];
    Host { cores: 2.0, clients }
}

/// Returns a second of `inside` requests that wait for something else than the processor: they take
/// `takes` seconds and would take `alone`.
fn waits(inside: f64, takes: f64, alone: f64) -> ServiceInput {
    let ended = inside / takes;
    let sample = ServiceSample {
        seconds: 1.0,
        inside_seconds: inside,
        waiting_seconds: 0.0,
        ended,
        spent_seconds: inside,
        answered: ended,
        answered_seconds: inside,
        known: ended,
        known_seconds: inside,
        alone_seconds: ended * alone,
        work_seconds: ended * alone,
    };
    ServiceInput { sample, slots: f64::INFINITY }
}

fn law(mode: DegradationMode, wishes: &[ServiceWish]) -> Degradation {
    Degradation::new(mode, wishes, at(0.0))
}

fn slowdowns(of: &[f64]) -> Vec<ServiceWish> {
    of.iter().map(|slowdown| ServiceWish { slowdown: *slowdown, ..ServiceWish::default() }).collect()
}

fn slowdown(law: &Degradation, id: ServiceId) -> f64 {
    law.standing(id).slowdown.expect("it is active")
}

#[test]
fn services_are_slowed_in_the_declared_ratio() {
    for ratio in [0.25, 0.5, 1.0, 2.0, 4.0] {
        let mut law = law(DegradationMode::Slowdown, &slowdowns(&[1.0, ratio]));
        shop().play(&mut law, 0.0, 60.0);
        let reached = slowdown(&law, B) / slowdown(&law, A);
        assert!((reached / ratio - 1.0).abs() < 0.1, "{reached} for {ratio}");
        let all: f64 = [A, B].iter().map(|id| law.standing(*id).effort).sum();
        assert!(all > 1.98, "two cores do {all}");
    }
}

#[test]
fn three_services_have_their_ratios_too() {
    let mut host = shop();
    host.clients.push(Clients { number: 10.0, work: 0.05 });
    let mut law = law(DegradationMode::Slowdown, &slowdowns(&[1.0, 4.0, 2.0]));
    host.play(&mut law, 0.0, 90.0);
    for (id, ratio) in [(B, 4.0), (ServiceId(2), 2.0)] {
        let reached = slowdown(&law, id) / slowdown(&law, A);
        assert!((reached / ratio - 1.0).abs() < 0.1, "{reached} for {ratio}");
    }
}

#[test]
fn nobody_gives_way_on_a_host_that_is_not_short() {
    let clients = vec![Clients { number: 1.0, work: 0.002 }, Clients { number: 1.0, work: 0.35 }];
    let host = Host { cores: 2.0, clients };
    let mut law = law(DegradationMode::Slowdown, &slowdowns(&[1.0, 10.0]));
    assert_eq!(host.play(&mut law, 0.0, 30.0), []);
    // A rush, and its end: the cap goes again.
    shop().play(&mut law, 30.0, 30.0);
    assert!(law.cap(B).is_some());
    host.play(&mut law, 60.0, 120.0);
    assert_eq!(Host::caps(&law), [None, None]);
    assert_eq!(law.standing(B).binding, Binding::Free);
}

#[test]
fn work_is_shared_by_weight_after_floors_and_below_ceilings() {
    let share = |law: &Degradation, id| law.standing(id).effort / 2.0;
    let weigh = |weight| ServiceWish { weight, ..ServiceWish::default() };
    let mut by_weight = law(DegradationMode::Shares, &[weigh(3.0), weigh(1.0)]);
    shop().play(&mut by_weight, 0.0, 60.0);
    assert!((share(&by_weight, A) - 0.75).abs() < 0.05, "{}", share(&by_weight, A));

    let floor = ServiceWish { floor: Some(Amount::OfHost(0.9)), ..weigh(1.0) };
    let mut with_floor = law(DegradationMode::Bands, &[floor, weigh(1.0)]);
    shop().play(&mut with_floor, 0.0, 60.0);
    assert!((0.88..0.97).contains(&share(&with_floor, A)), "{}", share(&with_floor, A));

    let rate = ServiceWish { floor: Some(Amount::PerSecond(800.0)), ..weigh(1.0) };
    let mut with_rate = law(DegradationMode::Shares, &[rate, weigh(9.0)]);
    shop().play(&mut with_rate, 0.0, 60.0);
    assert!((760.0..900.0).contains(&with_rate.standing(A).rate), "{}", with_rate.standing(A).rate);

    let ceiling = ServiceWish { ceiling: Some(Amount::OfHost(0.2)), ..weigh(1.0) };
    let mut with_ceiling = law(DegradationMode::Shares, &[weigh(1.0), ceiling]);
    shop().play(&mut with_ceiling, 0.0, 60.0);
    assert!((0.17..0.23).contains(&share(&with_ceiling, B)), "{}", share(&with_ceiling, B));
    assert_eq!(with_ceiling.standing(B).binding, Binding::Ceiling);
}

#[test]
fn a_ceiling_stays_where_it_is_while_nobody_else_asks_for_anything() {
    let ceiling = ServiceWish { ceiling: Some(Amount::OfHost(0.5)), ..ServiceWish::default() };
    let clients = |number| vec![Clients { number, work: 0.35 }];
    let mut busy = law(DegradationMode::Slowdown, std::slice::from_ref(&ceiling));
    Host { cores: 2.0, clients: clients(20.0) }.play(&mut busy, 0.0, 1800.0);
    let effort = busy.standing(A).effort;
    assert!((0.9..1.1).contains(&effort), "of two cores it does {effort}");
    let mut law = law(DegradationMode::Slowdown, &[ceiling]);
    // A host that was never short shows nothing of what it can do.
    Host { cores: 2.0, clients: clients(1.0) }.play(&mut law, 0.0, 60.0);
    assert_eq!(law.cap(A), None);
    Host { cores: 2.0, clients: clients(20.0) }.play(&mut law, 60.0, 1800.0);
    // As the rush begins what the host does is taken for more than it is.
    let effort = law.standing(A).effort;
    assert!((0.9..1.2).contains(&effort), "of two cores it does {effort}");
    assert_eq!(law.standing(A).binding, Binding::Ceiling);
}

#[test]
fn a_cap_does_not_wait_for_those_who_come_back() {
    let floor = ServiceWish { floor: Some(Amount::OfHost(0.9)), ..ServiceWish::default() };
    let mut law = law(DegradationMode::Bands, &[floor, ServiceWish::default()]);
    let few = Clients { number: 3.0, ..shop().clients[0] };
    Host { cores: 2.0, clients: vec![few, shop().clients[1]] }.play(&mut law, 0.0, 60.0);
    assert!(law.cap(B).is_some_and(|cap| cap < 0.5), "{:?}", law.cap(B));
    let mut records = vec![];
    for second in 61..=120 {
        let nobody = ServiceInput {
            sample: ServiceSample { seconds: 1.0, ..ServiceSample::default() },
            slots: f64::INFINITY,
        };
        law.on_tick(at(f64::from(second)), &[nobody, nobody], 60.0, false, &mut records);
    }
    assert_eq!(Host::caps(&law), [None, None]);
    let reasons: Vec<Reason> = records.iter().map(|record| record.reason).collect();
    assert!(reasons.contains(&Reason::CapRaised) && reasons.contains(&Reason::CapGone), "{reasons:?}");
}

#[test]
fn a_ceiling_holds_beside_one_that_is_slow_for_its_own_reason_and_does_not_shrink() {
    let half = ServiceWish { ceiling: Some(Amount::OfHost(0.5)), ..ServiceWish::default() };
    let mut law = law(DegradationMode::Shares, &[ServiceWish::default(), half]);
    shop().play(&mut law, 0.0, 60.0);
    let before = law.capacity();
    // One chat of 12 s at a time, which would take 6 s alone and computes for next to none of it.
    let exports = Host { cores: 2.0, clients: vec![shop().clients[1]] };
    let chat = ServiceSample {
        seconds: 1.0,
        inside_seconds: 1.0,
        spent_seconds: 1.0,
        answered: 1.0 / 12.0,
        answered_seconds: 1.0,
        known: 1.0 / 12.0,
        known_seconds: 1.0,
        alone_seconds: 0.5,
        work_seconds: 0.005,
        ..ServiceSample::default()
    };
    for second in 61..=3660 {
        let mut inputs = exports.inputs(&Host::caps(&law)[1..], 1.0);
        inputs.insert(0, ServiceInput { sample: chat, slots: f64::INFINITY });
        law.on_tick(at(f64::from(second)), &inputs, 60.0, false, &mut vec![]);
    }
    let share = law.standing(B).effort / before;
    assert!((0.4..0.6).contains(&share), "{share} of what the host could do an hour ago");
}

#[test]
fn what_its_ceiling_held_is_helped_again_once_others_take_its_place() {
    let held = ServiceWish {
        floor: Some(Amount::OfHost(0.4)),
        ceiling: Some(Amount::OfHost(0.5)),
        ..ServiceWish::default()
    };
    for mode in [DegradationMode::Shares, DegradationMode::Slowdown, DegradationMode::Bands] {
        let mut law = law(mode, &[held.clone(), ServiceWish::default()]);
        let heavy = Clients { number: 20.0, work: 0.35 };
        let none = Clients { number: 0.0, work: 0.002 };
        Host { cores: 2.0, clients: vec![heavy, none] }.play(&mut law, 0.0, 60.0);
        assert_eq!(law.standing(A).binding, Binding::Ceiling);
        let light = Clients { number: 30.0, ..none };
        Host { cores: 2.0, clients: vec![heavy, light] }.play(&mut law, 60.0, 180.0);
        let share = law.standing(A).effort / 2.0;
        assert!(share > 0.38, "{mode:?}: {share} of the host for a floor of 0.4");
    }
}

#[test]
fn a_high_floor_leaves_the_others_what_is_not_promised() {
    let floor = ServiceWish { floor: Some(Amount::OfHost(0.95)), ..ServiceWish::default() };
    let mut law = law(DegradationMode::Shares, &[floor, ServiceWish::default()]);
    shop().play(&mut law, 0.0, 120.0);
    let share = law.standing(B).effort / 2.0;
    assert!((0.015..0.06).contains(&share), "{share} of the 0.05 that are left");
}

#[test]
fn a_floor_in_percent_is_of_what_the_host_does_now() {
    let floor = ServiceWish { floor: Some(Amount::OfHost(0.8)), ..ServiceWish::default() };
    let mut law = law(DegradationMode::Bands, &[floor, ServiceWish::default()]);
    shop().play(&mut law, 0.0, 60.0);
    // Somebody else takes half of the machine: what was 80 % is more than all that is left.
    Host { cores: 1.0, ..shop() }.play(&mut law, 60.0, 60.0);
    let share = law.standing(A).effort;
    assert!((0.8..0.93).contains(&share), "{share} of one core");
}

#[test]
fn work_that_is_unknown_is_not_divided() {
    let floor = ServiceWish { floor: Some(Amount::OfHost(0.5)), ..ServiceWish::default() };
    let mut law = law(DegradationMode::Bands, &[floor, ServiceWish::default(), ServiceWish::default()]);
    // Twenty that wait for something else, of whom nobody knows what they take alone.
    let sample = ServiceSample {
        seconds: 0.25,
        inside_seconds: 5.0,
        spent_seconds: 5.0,
        answered: 5.0,
        answered_seconds: 5.0,
        work_seconds: 5.0,
        ..ServiceSample::default()
    };
    for step in 1..=240 {
        let mut inputs = shop().inputs(&Host::caps(&law)[..2], 0.25);
        inputs.push(ServiceInput { sample, slots: f64::INFINITY });
        law.on_tick(at(0.25 * f64::from(step)), &inputs, 60.0, false, &mut vec![]);
    }
    let share = law.standing(A).effort / 2.0;
    assert!((0.6..0.7).contains(&share) && law.capacity() < 2.1, "{share}, {}", law.capacity());
}

#[test]
fn what_floors_leave_nothing_gives_way_step_by_step() {
    let floor = ServiceWish { floor: Some(Amount::PerSecond(1200.0)), ..ServiceWish::default() };
    let mut law = law(DegradationMode::Bands, &[floor, ServiceWish::default()]);
    let records = shop().play(&mut law, 0.0, 30.0);
    let falls: Vec<f64> = records.iter().filter(|it| it.old > 0.0).map(|it| it.new / it.old).collect();
    assert!(falls.len() > 5 && falls.iter().all(|fall| *fall > 0.6), "{falls:?}");
}

#[test]
fn requests_that_hang_or_fail_are_no_work_of_the_host() {
    let mut law = law(DegradationMode::Slowdown, &slowdowns(&[1.0, 1.0]));
    let mut records = vec![];
    // One answer a second, beside sixty that wait for a database until they fail.
    let sample = ServiceSample {
        seconds: 1.0,
        inside_seconds: 60.35,
        spent_seconds: 60.35,
        answered: 1.0,
        answered_seconds: 0.35,
        known: 1.0,
        known_seconds: 0.35,
        alone_seconds: 0.35,
        work_seconds: 0.35,
        ..ServiceSample::default()
    };
    for second in 1..=120 {
        let inputs = [ServiceInput { sample, slots: f64::INFINITY }, ServiceInput::default()];
        law.on_tick(at(f64::from(second)), &inputs, 60.0, false, &mut records);
    }
    let standing = law.standing(A);
    assert!((0.3..0.4).contains(&standing.effort) && law.capacity() < 0.5, "{standing:?}");
    assert!((0.9..1.1).contains(&standing.rate), "{standing:?}");
}

#[test]
fn requests_of_which_nothing_is_known_do_not_make_a_service_look_slow() {
    let mut law = law(DegradationMode::Slowdown, &slowdowns(&[1.0, 1.0]));
    let mut records = vec![];
    // Half of A's requests take 2 s; of those it is not known what they take alone.
    let sample = ServiceSample {
        seconds: 0.25,
        inside_seconds: 0.5,
        spent_seconds: 0.5,
        answered: 0.5,
        answered_seconds: 0.5,
        known: 0.25,
        known_seconds: 0.25 * 0.002,
        alone_seconds: 0.25 * 0.002,
        work_seconds: 0.5,
        ..ServiceSample::default()
    };
    for step in 1..=200 {
        let inputs = [ServiceInput { sample, slots: f64::INFINITY }, ServiceInput::default()];
        law.on_tick(at(0.25 * f64::from(step)), &inputs, 60.0, false, &mut records);
    }
    assert!((slowdown(&law, A) - 1.0).abs() < 0.01, "{}", slowdown(&law, A));
}

#[test]
fn a_floor_that_cannot_be_had_is_told_and_so_is_one_that_holds_another_back() {
    let floor = |share| ServiceWish { floor: Some(Amount::OfHost(share)), ..ServiceWish::default() };
    let mut bands = law(DegradationMode::Bands, &[floor(0.9), floor(0.6)]);
    shop().play(&mut bands, 0.0, 60.0);
    assert_eq!(bands.standing(B).binding, Binding::OutOfReach);
    let slow = ServiceWish { slowdown: 100.0, ..floor(0.25) };
    let mut kept = law(DegradationMode::Slowdown, &[ServiceWish::default(), slow]);
    shop().play(&mut kept, 0.0, 60.0);
    assert_eq!(kept.standing(B).binding, Binding::Floor);
    let effort = kept.standing(B).effort;
    assert!((0.56..0.68).contains(&effort), "of two cores it does {effort}");
    assert_eq!(kept.standing(A).binding, Binding::OutOfReach);
}

#[test]
fn floors_of_both_kinds_that_do_not_fit_shrink_alike() {
    // 0.5 and 0.6 of two cores.
    let percent = ServiceWish { floor: Some(Amount::OfHost(0.5)), ..ServiceWish::default() };
    let rate = ServiceWish { floor: Some(Amount::PerSecond(0.6 * 2.0 / 0.35)), ..ServiceWish::default() };
    let mut law = law(DegradationMode::Shares, &[percent, rate]);
    shop().play(&mut law, 0.0, 120.0);
    let [light, heavy] = [A, B].map(|id| law.standing(id).effort);
    let share = light / (light + heavy);
    assert!((share - 0.5 / 1.1).abs() < 0.02, "{share}");
}

#[test]
fn another_wish_begins_with_the_caps_that_are_there() {
    let mut law = law(DegradationMode::Slowdown, &slowdowns(&[1.0, 2.0]));
    shop().play(&mut law, 0.0, 60.0);
    let (cap, capacity) = (law.cap(B), law.capacity());
    assert!(cap.is_some());
    law.adopt(DegradationMode::Slowdown, &slowdowns(&[1.0, 4.0]));
    assert_eq!((law.cap(B), law.capacity()), (cap, capacity));
    shop().play(&mut law, 60.0, 30.0);
    let reached = slowdown(&law, B) / slowdown(&law, A);
    assert!((reached / 4.0 - 1.0).abs() < 0.1, "{reached} for 4");
    law.adopt(DegradationMode::Off, &slowdowns(&[1.0, 4.0]));
    assert_eq!(Host::caps(&law), [None, None]);
}

#[test]
fn what_its_requests_take_alone_being_unknown_a_service_is_neither_slowed_nor_helped() {
    let mut law = law(DegradationMode::Slowdown, &slowdowns(&[1.0, 10.0]));
    let mut records = vec![];
    for step in 1..200 {
        let mut inputs = shop().inputs(&[None, None], 0.25);
        inputs[1].sample.alone_seconds = 0.0;
        law.on_tick(at(0.25 * f64::from(step)), &inputs, 60.0, false, &mut records);
    }
    assert_eq!(records, []);
    assert_eq!(law.standing(B).binding, Binding::Unknown);
}

#[test]
fn a_service_that_is_slow_for_another_reason_costs_the_others_nothing_for_long() {
    // A waits for something else: what B does changes nothing.
    let mut law = law(DegradationMode::Slowdown, &slowdowns(&[1.0, 1.0]));
    let (mut records, mut capped) = (vec![], 0);
    for step in 1..=4800 {
        let caps = Host::caps(&law);
        let mut inputs = Host { cores: 2.0, clients: vec![shop().clients[1]] }.inputs(&caps[1..], 0.25);
        let slow = ServiceSample {
            seconds: 0.25,
            inside_seconds: 5.0,
            spent_seconds: 5.0,
            answered: 50.0,
            answered_seconds: 5.0,
            ..ServiceSample::default()
        };
        let sample =
            ServiceSample { known: 50.0, known_seconds: 5.0, alone_seconds: 0.1, work_seconds: 0.1, ..slow };
        inputs.insert(0, ServiceInput { sample, slots: f64::INFINITY });
        law.on_tick(at(0.25 * f64::from(step)), &inputs, 60.0, false, &mut records);
        capped += usize::from(law.cap(B).is_some_and(|cap| cap < 2.0));
    }
    assert!(records.iter().any(|record| record.reason == Reason::CapNoEffect));
    assert!(capped < 4800 / 20, "slowed in {capped} of 4800 ticks");
}

#[test]
fn a_ratio_that_helps_nobody_is_given_up() {
    // A is five times as slow as alone because of its database: B has that ratio at a fifth of what
    // it could do, on a host that is idle.
    for mode in [DegradationMode::Slowdown, DegradationMode::Shares] {
        let mut law = law(mode, &slowdowns(&[1.0, 1.0]));
        let few = Host { cores: 2.0, clients: vec![Clients { number: 2.0, work: 0.35 }] };
        let mut done = 0.0;
        for second in 1..=3600 {
            let mut inputs = few.inputs(&Host::caps(&law)[1..], 1.0);
            done += inputs[0].sample.work_seconds / 3600.0;
            inputs.insert(0, waits(5.0, 0.5, 0.1));
            law.on_tick(at(f64::from(second)), &inputs, 60.0, false, &mut vec![]);
        }
        assert!(done > 1.85, "{mode:?}: B does {done} of 2");
    }
}

#[test]
fn one_that_cannot_be_helped_costs_the_others_no_help() {
    // C is slow for another reason, A is slow because of B.
    let mut law = law(DegradationMode::Slowdown, &slowdowns(&[1.0, 4.0, 1.0]));
    let mut records = vec![];
    let mut play = |law: &mut Degradation, from: u32, to: u32| -> f64 {
        let mut slowed = 0.0;
        for second in from + 1..=to {
            let mut inputs = shop().inputs(&Host::caps(law)[..2], 1.0);
            slowed += law.standing(A).slowdown.unwrap_or(0.0) / f64::from(to - from);
            inputs.push(waits(5.0, 5.0, 0.01));
            law.on_tick(at(f64::from(second)), &inputs, 60.0, false, &mut records);
        }
        slowed
    };
    play(&mut law, 0, 120);
    let slowed = play(&mut law, 120, 1800);
    assert!(records.iter().any(|record| record.reason == Reason::CapNoEffect));
    assert!(slowed < 20.0, "slowed {slowed}: 25 without");
}

#[test]
fn what_was_given_up_often_is_tried_soon_again_an_hour_later() {
    let mut effects = effect::Effects::default();
    let mut lasts = |from: f64| -> u32 {
        effects.give_up(at(from), 0, false);
        (1..2000).find(|second| !effects.is_given_up(at(from + f64::from(*second)), 0)).expect("it ends")
    };
    assert_eq!([lasts(0.0), lasts(100.0), lasts(300.0), lasts(4000.0)], [60, 120, 240, 480]);
    assert_eq!(lasts(4480.0 + 3600.0), 60);
}

#[test]
fn a_service_that_hangs_or_only_fails_is_not_known_by_what_it_did_before() {
    for is_failing in [false, true] {
        let mut law = law(DegradationMode::Slowdown, &slowdowns(&[1.0, 1.0]));
        // A rush at both; then A dies: what comes piles up, or is refused within a millisecond.
        Host { cores: 2.0, clients: vec![shop().clients[0], Clients { number: 4.0, work: 0.35 }] }
            .play(&mut law, 0.0, 60.0);
        let before = law.capacity();
        let healthy = Host { cores: 2.0, clients: vec![Clients { number: 2.0, work: 0.35 }] };
        let mut done = 0.0;
        for second in 1..=120 {
            let mut inputs = healthy.inputs(&Host::caps(&law)[1..], 1.0);
            done += inputs[0].sample.work_seconds / 120.0;
            inputs.insert(0, if is_failing { unanswered(0.1, 100.0) } else { unanswered(60.0, 0.0) });
            law.on_tick(at(60.0 + f64::from(second)), &inputs, 60.0, false, &mut vec![]);
        }
        assert_eq!(law.standing(A).slowdown, None, "failing: {is_failing}");
        assert!(law.capacity() < 1.2 * before, "failing: {is_failing}, {} of {before}", law.capacity());
        assert!(done > 1.6, "failing: {is_failing}, B does {done} of 2");
    }
}

/// Returns a second of `inside` requests of which `ended` end without an answer.
fn unanswered(inside: f64, ended: f64) -> ServiceInput {
    let sample = ServiceSample {
        seconds: 1.0,
        inside_seconds: inside,
        ended,
        spent_seconds: 0.001 * ended,
        ..ServiceSample::default()
    };
    ServiceInput { sample, slots: f64::INFINITY }
}

#[test]
fn one_request_without_an_answer_hides_nothing_of_what_the_host_does() {
    let mut law = law(DegradationMode::Slowdown, &slowdowns(&[1.0, 4.0, 1.0]));
    for second in 1..=180 {
        let mut inputs = shop().inputs(&Host::caps(&law)[..2], 1.0);
        inputs.push(match second {
            1..=20 => waits(0.5, 0.5, 0.5),
            30 => unanswered(0.001, 1.0),
            _ => unanswered(0.0, 0.0),
        });
        law.on_tick(at(f64::from(second)), &inputs, 60.0, false, &mut vec![]);
    }
    let reached = slowdown(&law, B) / slowdown(&law, A);
    assert!((3.6..4.4).contains(&reached) && law.capacity() > 1.9, "{reached}, {}", law.capacity());
}

#[test]
fn one_long_request_at_a_time_is_work_while_it_runs() {
    let mut law = law(DegradationMode::Shares, &slowdowns(&[1.0]));
    for second in 1..=400 {
        // One of a minute, then a second without any.
        let input = match second % 61 {
            0 => unanswered(0.0, 0.0),
            60 => {
                let mut last = waits(1.0, 60.0, 40.0);
                let sample = &mut last.sample;
                (sample.ended, sample.answered, sample.known) = (1.0, 1.0, 1.0);
                (sample.spent_seconds, sample.answered_seconds, sample.known_seconds) = (60.0, 60.0, 60.0);
                (sample.alone_seconds, sample.work_seconds) = (40.0, 40.0);
                last
            }
            _ => unanswered(1.0, 0.0),
        };
        law.on_tick(at(f64::from(second)), &[input], 60.0, false, &mut vec![]);
        if second > 130 && second % 61 == 30 {
            let effort = law.standing(A).effort;
            assert!((0.6..0.7).contains(&effort), "{effort} of two thirds after {second} s");
        }
    }
}

#[test]
fn what_is_not_known_any_more_has_no_cap_for_long() {
    let mut law = law(DegradationMode::Slowdown, &slowdowns(&[1.0, 4.0]));
    shop().play(&mut law, 0.0, 60.0);
    assert!(law.cap(B).is_some_and(|cap| cap < 15.0));
    for second in 61..=180 {
        let light = Host { cores: 2.0, clients: vec![shop().clients[0]] };
        let inputs = [light.inputs(&[None], 1.0)[0], unanswered(1.0, 0.0)];
        law.on_tick(at(f64::from(second)), &inputs, 60.0, false, &mut vec![]);
    }
    assert_eq!((law.cap(B), law.standing(B).binding), (None, Binding::Unknown));
}

#[test]
fn quick_refusals_between_slow_answers_do_not_make_a_service_unknown() {
    let mut law = law(DegradationMode::Slowdown, &slowdowns(&[1.0, 1.0]));
    for second in 1..=120 {
        // An export of ten seconds ends every ten seconds; a scanner asks five times a second.
        let mut export = unanswered(1.0, 5.0);
        if second % 10 == 0 {
            let ServiceSample { answered, answered_seconds, known, known_seconds, .. } = &mut export.sample;
            (*answered, *answered_seconds, *known, *known_seconds) = (1.0, 10.0, 1.0, 10.0);
            (export.sample.alone_seconds, export.sample.work_seconds) = (8.0, 8.0);
        }
        law.on_tick(at(f64::from(second)), &[export, unanswered(0.0, 0.0)], 60.0, false, &mut vec![]);
        assert!(second < 20 || law.standing(A).slowdown.is_some(), "after {second} s");
    }
}

#[test]
fn a_service_of_which_hardly_ever_one_is_there_has_its_floor() {
    let floor = ServiceWish { floor: Some(Amount::PerSecond(8.0)), ..ServiceWish::default() };
    let mut law = law(DegradationMode::Bands, &[floor, ServiceWish::default()]);
    // Ten a second of one millisecond, slowed to four.
    for second in 1..=60 {
        let mut inputs =
            Host { cores: 2.0, clients: vec![shop().clients[1]] }.inputs(&Host::caps(&law)[1..], 1.0);
        inputs.insert(0, waits(0.04, 0.004, 0.001));
        law.on_tick(at(f64::from(second)), &inputs, 60.0, false, &mut vec![]);
    }
    assert!(law.standing(A).slowdown.is_some_and(|slowdown| slowdown > 3.9));
    assert!(law.standing(A).rate > 9.0);
}

#[test]
fn who_waits_is_served_within_the_patience_and_a_wish_beyond_is_said_to_be_out_of_reach() {
    let mut law = law(DegradationMode::Slowdown, &slowdowns(&[1.0, 100.0]));
    shop().play(&mut law, 0.0, 120.0);
    let standing = law.standing(B);
    assert_eq!(standing.binding, Binding::Patience);
    let wait = 20.0 / standing.rate;
    assert!((40.0..60.0).contains(&wait), "{wait} s of a patience of 60 s");
    assert_eq!(law.standing(A).binding, Binding::OutOfReach);
}

#[test]
fn a_late_probe_makes_the_heaviest_give_way() {
    let mut law = law(DegradationMode::Slowdown, &slowdowns(&[1.0, 1.0]));
    let host = Host { cores: 50.0, ..shop() };
    host.play(&mut law, 0.0, 10.0);
    assert_eq!(Host::caps(&law), [None, None]);
    for second in 0..5 {
        law.set_lag(0.05);
        host.play(&mut law, 10.0 + f64::from(second), 1.0);
    }
    assert!(law.cap(A).is_none() && law.cap(B).is_some_and(|cap| cap < 20.0));
    assert_eq!(law.standing(B).binding, Binding::Lag);
    host.play(&mut law, 15.0, 60.0);
    assert_eq!(Host::caps(&law), [None, None]);
}

#[test]
fn a_host_is_not_left_idle_for_a_wish() {
    // B may be slowed a thousand times as much as A, which is slowed twice for reasons of its own.
    let mut law = law(DegradationMode::Slowdown, &slowdowns(&[1.0, 1000.0]));
    shop().play(&mut law, 0.0, 30.0);
    assert!(law.capacity() > 1.9 && law.cap(B).is_some());
    let heavy = Host { cores: 2.0, clients: vec![shop().clients[1]] };
    let mut records = vec![];
    for step in 1..=400 {
        let mut inputs = heavy.inputs(&Host::caps(&law)[1..], 0.25);
        let sample = ServiceSample {
            seconds: 0.25,
            inside_seconds: 0.05,
            spent_seconds: 0.05,
            answered: 12.5,
            answered_seconds: 0.05,
            known: 12.5,
            known_seconds: 0.05,
            alone_seconds: 0.025,
            work_seconds: 0.025,
            ..ServiceSample::default()
        };
        inputs.insert(0, ServiceInput { sample, slots: f64::INFINITY });
        law.on_tick(at(30.0 + 0.25 * f64::from(step)), &inputs, 1e6, false, &mut records);
    }
    let effort = law.standing(B).effort;
    assert!(effort > 1.5, "of 1.9 that are left it does {effort}");
    assert!(records.iter().all(|record| record.reason != Reason::CapNoEffect));
}

#[test]
fn caps_stay_while_a_limit_is_on_trial_but_not_for_long() {
    let mut law = law(DegradationMode::Slowdown, &slowdowns(&[1.0, 4.0]));
    let (mut records, mut moved) = (vec![], vec![]);
    for step in 1..=200 {
        let now = 0.25 * f64::from(step);
        let inputs = shop().inputs(&Host::caps(&law), 0.25);
        if law.on_tick(at(now), &inputs, 60.0, now > 5.0, &mut records) {
            moved.push(now);
        }
    }
    assert!(moved.iter().any(|at| *at <= 5.0), "{moved:?}");
    let again = moved.iter().find(|at| **at > 5.0).expect("a trial that does not end holds nobody");
    assert!((5.0 + TRIAL_MAX - 1.0..5.0 + TRIAL_MAX + 3.0).contains(again), "{moved:?}");
}

#[test]
fn no_trial_begins_until_the_caps_have_had_their_time() {
    let mut law = law(DegradationMode::Slowdown, &slowdowns(&[1.0, 4.0]));
    let mut play = |from: f64, to: f64, is_on_trial: bool| -> Vec<bool> {
        let steps = (4.0 * from) as u32 + 1..=(4.0 * to) as u32;
        steps
            .map(|step| {
                let (now, inputs) = (0.25 * f64::from(step), shop().inputs(&Host::caps(&law), 0.25));
                law.on_tick(at(now), &inputs, 60.0, is_on_trial, &mut vec![]);
                law.lets_try(at(now))
            })
            .collect()
    };
    assert!(play(0.0, 0.5, false).iter().all(|lets| *lets), "nobody has a cap");
    let first = play(0.5, 30.0, false);
    let refused = first.iter().filter(|lets| !**lets).count() as f64 / 4.0;
    assert!((refused - CAPS_FIRST).abs() < 2.0 && first[first.len() - 1], "{refused} s");
    assert!(play(30.0, 35.0, true).iter().all(|lets| *lets));
    let after = play(35.0, 60.0, false);
    let refused = after.iter().filter(|lets| !**lets).count() as f64 / 4.0;
    assert!((refused - CAPS_FIRST).abs() < 1.0 && after[after.len() - 1], "{refused} s");
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    fn amount() -> impl Strategy<Value = Option<Amount>> {
        prop_oneof![
            Just(None),
            (0.01f64..1.0).prop_map(|share| Some(Amount::OfHost(share))),
            (0.1f64..5000.0).prop_map(|rate| Some(Amount::PerSecond(rate))),
        ]
    }

    /// Wishes that can be had and wishes that cannot: floors of more than there is, floors above
    /// ceilings, slowdowns that nothing reaches.
    fn wish() -> impl Strategy<Value = ServiceWish> {
        (0.01f64..100.0, amount(), amount(), -7f64..7.0).prop_map(|(weight, floor, ceiling, slowdown)| {
            ServiceWish { weight, floor, ceiling, slowdown: exp(slowdown), alone: None }
        })
    }

    fn clients() -> impl Strategy<Value = Clients> {
        (1u32..60, -7f64..0.0).prop_map(|(number, work)| Clients { number: number.into(), work: exp(work) })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        /// Whatever is wished for: caps are numbers that can be held, whoever waits is served, and the
        /// host has something to do.
        #[test]
        fn nobody_starves_and_the_host_is_not_idle(
            services in prop::collection::vec((clients(), wish()), 1..4),
            mode in prop::sample::select(vec![
                DegradationMode::Off, DegradationMode::Shares, DegradationMode::Slowdown, DegradationMode::Bands,
            ]),
            cores in 1u32..5,
        ) {
            let (clients, wishes): (Vec<_>, Vec<_>) = services.into_iter().unzip();
            let host = Host { cores: cores.into(), clients };
            let mut law = law(mode, &wishes);
            let mut records = host.play(&mut law, 0.0, 60.0);
            // What is done in the next minute, and not what the law has seen of it at its end.
            let (mut done, mut least) = (vec![0.0; law.len()], vec![1.0f64; law.len()]);
            let mut effort = 0.0;
            for step in 1..=240 {
                let caps = Host::caps(&law);
                let inputs = host.inputs(&caps, 0.25);
                for (index, input) in inputs.iter().enumerate() {
                    done[index] += input.sample.answered / 60.0;
                    effort += input.sample.work_seconds / 60.0;
                    least[index] = least[index].min(caps[index].unwrap_or(1.0));
                }
                law.on_tick(at(60.0 + 0.25 * f64::from(step)), &inputs, 60.0, false, &mut records);
            }
            let all: f64 = host.clients.iter().map(|clients| clients.number).sum();
            for id in (0..law.len() as u32).map(ServiceId) {
                let standing = law.standing(id);
                prop_assert!(standing.effort.is_finite() && standing.rate.is_finite());
                let (rate, least) = (done[id.index()], least[id.index()]);
                prop_assert!((CAP_LEAST..=1.0).contains(&least), "{least}");
                // One at a time beside all others, and after each the pause of the cap: so often at least.
                let bound = host.clients[id.index()].work * all / least;
                prop_assert!(rate >= 0.999 / bound, "{rate} per second, at a cap of {least} at least");
            }
            if mode == DegradationMode::Off {
                prop_assert_eq!(records, []);
            }
            let asked = all.min(f64::from(cores));
            let is_ceiling = wishes.iter().any(|wish| wish.ceiling.is_some());
            if !is_ceiling || matches!(mode, DegradationMode::Off) {
                prop_assert!(effort > 0.8 * asked, "{effort} of {asked}");
            }
        }
    }
}
