//! Scratch.
use suimon_sim::{Laws, generate, run};
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let from: u64 = args[0].parse().unwrap();
    let to: u64 = args[1].parse().unwrap();
    for law in &args[2..] {
        let laws = Laws::parse(law).unwrap();
        let began = std::time::Instant::now();
        let half = (from + to) / 2;
        let play = |a: u64, b: u64| {
            (a..b)
                .map(|n| {
                    let s = generate(n);
                    (n, run(&s, n, &laws).unwrap_or_else(|v| panic!("{v}")))
                })
                .collect::<Vec<_>>()
        };
        let mut all = std::thread::scope(|scope| {
            let h = scope.spawn(|| play(from, half));
            let mut b = play(half, to);
            let mut a = h.join().unwrap();
            a.append(&mut b);
            a
        });
        let mut shares: Vec<f64> = all.iter().map(|(_, o)| o.summary.goodput_share).collect();
        shares.sort_by(f64::total_cmp);
        let done: u64 = all.iter().map(|(_, o)| o.summary.completed + o.counts.sessions_left).sum();
        let mid: u64 = all.iter().map(|(_, o)| o.summary.mid_session_failures).sum();
        let q = |p: f64| shares[((shares.len() - 1) as f64 * p) as usize];
        println!(
            "{law:24} median {:.3} decile {:.3} min {:.3} mean {:.3} | mid {mid} of {done} = {:.3} % | {:.1} s",
            q(0.5),
            q(0.1),
            q(0.0),
            shares.iter().sum::<f64>() / shares.len() as f64,
            100.0 * mid as f64 / done as f64,
            began.elapsed().as_secs_f64()
        );
        if std::env::var_os("WORST").is_some() {
            all.sort_by(|a, b| a.1.summary.goodput_share.total_cmp(&b.1.summary.goodput_share));
            let n: usize = std::env::var("WORST").unwrap().parse().unwrap_or(10);
            for (n, o) in all.iter().take(n) {
                let s = generate(*n);
                println!(
                    "  {n}: share {:.2} of {:.2}/s mid {} refs {} {:?} even {} cores {} think {:?} offered {:.1}x changes {}",
                    o.summary.goodput_share,
                    s.reachable(std::time::Duration::from_secs(200)),
                    o.summary.mid_session_failures,
                    o.summary.refusals,
                    s.machine.efficiency,
                    s.machine.even,
                    s.machine.cores,
                    s.workload.kinds[0].think,
                    s.offered(std::time::Duration::ZERO) / s.bound(std::time::Duration::ZERO),
                    s.changes.len()
                );
                println!(
                    "      limits {:?} costs {:?}",
                    o.series.last().unwrap().limits,
                    s.routes
                        .iter()
                        .map(|r| format!(
                            "{}:{:.0}ms cv{:.1} io{:.2} m{:.2}",
                            r.name,
                            r.cost.cpu * 1e3,
                            r.cost.variation,
                            r.cost.elsewhere,
                            r.cost.memory
                        ))
                        .collect::<Vec<_>>()
                );
            }
            all.sort_by_key(|a| std::cmp::Reverse(a.1.summary.mid_session_failures));
            for (n, o) in all.iter().take(8) {
                println!(
                    "  {n}: mid {} of {} share {:.2}",
                    o.summary.mid_session_failures, o.summary.completed, o.summary.goodput_share
                );
            }
        }
    }
}
