//! Plays all runs on several threads. The result of a run depends only on its scenario, laws and
//! seed. Results are in the order of the questions, in whatever order runs end.

use super::answer::{End, Run};
use super::question::Question;
use crate::interrupt;
use crate::terminal::{self, Colour, Line, Live};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};
use suimon_sim::Violation;

/// How often signals are checked, and how often the bar is drawn.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Time between progress lines if standard error is no terminal.
const QUIET_EVERY: Duration = Duration::from_secs(5);
/// Width of the bar, in characters.
const BAR: usize = 24;

/// One run: the indices of its question, contender and seed.
type Task = (usize, usize, usize);

/// Returns the runs by question, contender and seed. After a signal, unfinished runs stay unplayed.
pub(super) fn play(questions: &Arc<Vec<Question>>, jobs: usize) -> Vec<Vec<Vec<Run>>> {
    let tasks = Arc::new(tasks(questions));
    let mut runs: Vec<Vec<Vec<Run>>> = questions.iter().map(unplayed).collect();
    let next = Arc::new(AtomicUsize::new(0));
    let (sender, done) = channel();
    for number in 0..jobs.clamp(1, tasks.len().max(1)) {
        let (questions, tasks, next, sender) =
            (Arc::clone(questions), Arc::clone(&tasks), Arc::clone(&next), sender.clone());
        // Workers are not joined: after a signal we end at once, while they still play runs that
        // nobody needs.
        let worker = thread::Builder::new().name(format!("run-{number}"));
        if let Err(error) = worker.spawn(move || work(&questions, &tasks, &next, &sender)) {
            eprintln!("only {number} runs are played at once: no more threads can be had ({error})");
            break;
        }
    }
    drop(sender);
    collect(&done, &tasks, &mut runs);
    runs
}

fn tasks(questions: &[Question]) -> Vec<Task> {
    let mut tasks = vec![];
    for (number, question) in questions.iter().enumerate() {
        for contender in 0..question.contenders.len() {
            tasks.extend((0..question.seeds.len()).map(|seed| (number, contender, seed)));
        }
    }
    tasks
}

fn unplayed(question: &Question) -> Vec<Vec<Run>> {
    let run = |seed: &u64| Run { seed: *seed, wall_s: 0.0, end: End::NotPlayed };
    vec![question.seeds.iter().map(run).collect(); question.contenders.len()]
}

fn work(questions: &[Question], tasks: &[Task], next: &AtomicUsize, done: &Sender<(usize, Run)>) {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let Some(task) = tasks.get(number) else { return };
        if interrupt::asked() || done.send((number, one(questions, *task))).is_err() {
            return;
        }
    }
}

fn one(questions: &[Question], (number, contender, seed): Task) -> Run {
    let question = &questions[number];
    let (scenario, laws) = (&question.scenario, &question.contenders[contender].laws);
    let at = question.seeds[seed];
    let began = Instant::now();
    let played = catch_unwind(AssertUnwindSafe(|| suimon_sim::run(scenario, at, laws)));
    let wall_s = began.elapsed().as_secs_f64();
    // The gate's state is kept for the charts of one run only.
    let inside = seed == 0 && question.contenders[contender].is_own();
    let end = match played {
        Ok(Ok(outcome)) => End::played(scenario, outcome, inside),
        Ok(Err(violation)) => End::Violated(violation),
        Err(_) => End::Violated(Violation {
            scenario: scenario.name.clone(),
            seed: at,
            at: suimon_model::Instant::ORIGIN,
            what: "the run broke off in a panic, of which standard error tells".to_owned(),
        }),
    };
    Run { seed: at, wall_s, end }
}

fn collect(done: &Receiver<(usize, Run)>, tasks: &[Task], runs: &mut [Vec<Vec<Run>>]) {
    let mut progress = Progress::new(tasks.len());
    while !interrupt::asked() {
        match done.recv_timeout(LOOK_EVERY) {
            Ok((number, run)) => {
                let (question, contender, seed) = tasks[number];
                runs[question][contender][seed] = run;
                progress.done += 1;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        progress.show();
    }
    progress.end();
}

/// Shows the progress: a bar that is redrawn on a terminal, else a line now and then.
struct Progress {
    began: Instant,
    shown: Instant,
    runs: usize,
    done: usize,
    live: Option<Live>,
}

impl Progress {
    fn new(runs: usize) -> Self {
        let now = Instant::now();
        Progress {
            began: now,
            shown: now,
            runs,
            done: 0,
            live: terminal::can_draw(&std::io::stderr()).then(Live::default),
        }
    }

    fn show(&mut self) {
        if self.shown.elapsed() < if self.live.is_some() { LOOK_EVERY } else { QUIET_EVERY } {
            return;
        }
        self.shown = Instant::now();
        let (filled, text) = (BAR * self.done / self.runs.max(1), self.text());
        match &mut self.live {
            Some(live) => live.draw(&[bar(filled, &text)]),
            // A failure to show progress does not matter.
            None => drop(writeln!(std::io::stderr(), "{text}")),
        }
    }

    fn text(&self) -> String {
        let passed = self.began.elapsed().as_secs_f64();
        let left = match self.done {
            0 => String::new(),
            done => format!(", about {:.0} s left", passed / done as f64 * (self.runs - done) as f64),
        };
        format!("{} of {} runs, {passed:.0} s{left}", self.done, self.runs)
    }

    fn end(&mut self) {
        if let Some(live) = &mut self.live {
            live.wipe();
        }
        let passed = self.began.elapsed().as_secs_f64();
        let told = if self.done < self.runs { ", then interrupted" } else { "" };
        eprintln!("{} of {} runs played in {passed:.1} s{told}", self.done, self.runs);
    }
}

fn bar(filled: usize, text: &str) -> Line {
    Line::default()
        .coloured(Colour::Blue, &"━".repeat(filled))
        .faint(&"─".repeat(BAR - filled))
        .plain(&format!(" {text}"))
}
