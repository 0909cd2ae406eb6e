//! Scratch.
use suimon_sim::{Laws, generate, run};
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let n: u64 = args[0].parse().unwrap();
    let s = generate(n);
    println!(
        "{:?} even {} nodes {} arrivals {:?} bound {:.2} offered {:.2} cores {}",
        s.machine,
        s.machine.even,
        s.nodes,
        s.workload.arrivals,
        s.bound(std::time::Duration::ZERO),
        s.offered(std::time::Duration::ZERO),
        s.gate.params.cores
    );
    for c in &s.changes {
        println!("{:?}", c.at);
    }
    for (i, r) in s.routes.iter().enumerate() {
        println!("  {i} {} {:?}", r.name, r.cost);
    }
    for (k, j) in s.workload.kinds.iter().enumerate() {
        println!(
            "  {} w{:.2} think {:?} pat {:?} leave {:.2} steps {:?}",
            j.name, j.weight, j.think, j.patience, j.leave, s.steps[k]
        );
    }
    for law in &args[1..] {
        let o = run(&s, n, &Laws::parse(law).unwrap()).unwrap();
        println!("{law}: {:?}", o.summary);
        for (a, b) in o.series.iter().step_by(15).zip(o.series.iter().skip(15).step_by(15)) {
            println!(
                "   {:4.0} lim {:?} wait {:?} fl {:?} int {:?} act {:?} line {:?} done/s {:.2} busy {:.2} work {:.2}",
                b.at_s,
                b.limits.iter().map(|l| l.unwrap_or(0)).collect::<Vec<_>>(),
                b.waiting,
                b.in_flight,
                b.intervals.iter().map(|x| (x * 1000.0).round() / 1000.0).collect::<Vec<_>>(),
                b.active,
                b.line,
                o.seconds[a.at_s as usize..b.at_s as usize].iter().map(|s| s.completed).sum::<u32>() as f64
                    / 15.0,
                (b.busy - a.busy) / 15.0,
                (b.work - a.work) / 15.0
            );
        }
    }
}
