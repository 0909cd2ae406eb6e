//! `suimon shop`: the bundled application; and `suimon lab-node`, a node of a made-up one.

use crate::args::{LabNode, Shop};
use crate::exit::Exit;
use crate::interrupt;
use std::io::{self, ErrorKind};
use std::thread;
use suimon_shop::{Node, NodeOptions, Options};

/// Serves until told to stop.
pub(crate) fn run(args: &Shop) -> Exit {
    interrupt::listen();
    let options = Options {
        port: args.port,
        scale: args.scale,
        threads_max: args.threads,
        light_work: args.light_work,
        search_repeats: args.search_repeats,
        ..Options::default()
    };
    let shop = match suimon_shop::Shop::bind(&options) {
        Ok(shop) => shop,
        Err(error) => return unbound(args.port, &error),
    };
    println!("listening on http://{}", shop.local_addr());
    let work = shop.work();
    eprintln!(
        "the same work again: --light-work {} --search-repeats {}",
        work.light_work, work.search_repeats
    );
    let stopping = shop.clone();
    serve(|| shop.serve(), move || stopping.shutdown())
}

/// Serves as one node of several until told to stop.
pub(crate) fn run_node(args: &LabNode) -> Exit {
    interrupt::listen();
    let options = NodeOptions {
        address: args.address,
        port: args.port,
        slots: args.slots,
        mean: args.mean,
        is_fixed: args.fixed,
        dynamic: (args.dynamic, args.dynamic_from, args.dynamic_to),
        slice: args.slice,
        cpu: args.cpu,
        starts_after: args.starts_after,
        proc: args.proc.clone(),
    };
    let node = match Node::bind(&options) {
        Ok(node) => node,
        Err(error) => return unbound(args.port, &error),
    };
    println!("listening on http://{}", node.local_addr());
    let stopping = node.clone();
    serve(|| node.serve(), move || stopping.shutdown())
}

/// Says why the port could not be served.
fn unbound(port: u16, error: &io::Error) -> Exit {
    match error.kind() {
        ErrorKind::InvalidInput => {
            eprintln!("{error}");
            Exit::Usage
        }
        ErrorKind::AddrInUse => {
            eprintln!("port {port} of 127.0.0.1 is taken: name another with --port, or 0 for a free one");
            Exit::Failed
        }
        _ => {
            eprintln!("127.0.0.1:{port}: {error}");
            Exit::Failed
        }
    }
}

/// Serves until a signal comes.
fn serve(serve: impl FnOnce(), shutdown: impl FnOnce() + Send + 'static) -> Exit {
    let runtime = match tokio::runtime::Builder::new_current_thread().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("signals cannot be waited for: {error}");
            return Exit::Failed;
        }
    };
    let stopper = thread::Builder::new().name("signals".to_string()).spawn(move || {
        runtime.block_on(interrupt::first());
        shutdown();
    });
    if let Err(error) = stopper {
        eprintln!("no thread could be had to wait for signals: {error}");
        return Exit::Failed;
    }
    serve();
    Exit::Done
}
