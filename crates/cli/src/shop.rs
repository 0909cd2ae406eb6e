//! `suimon shop`: the bundled application.

use crate::args::Shop;
use crate::exit::Exit;
use crate::interrupt;
use std::io::ErrorKind;
use std::thread;
use suimon_shop::Options;

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
        Err(error) => {
            return match error.kind() {
                ErrorKind::InvalidInput => {
                    eprintln!("{error}");
                    Exit::Usage
                }
                ErrorKind::AddrInUse => {
                    eprintln!(
                        "port {} of 127.0.0.1 is taken: name another with --port, or 0 for a free one",
                        args.port
                    );
                    Exit::Failed
                }
                _ => {
                    eprintln!("127.0.0.1:{}: {error}", args.port);
                    Exit::Failed
                }
            };
        }
    };
    println!("listening on http://{}", shop.local_addr());
    let work = shop.work();
    eprintln!(
        "the same work again: --light-work {} --search-repeats {}",
        work.light_work, work.search_repeats
    );
    let runtime = match tokio::runtime::Builder::new_current_thread().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("signals cannot be waited for: {error}");
            return Exit::Failed;
        }
    };
    let stopping = shop.clone();
    let stopper = thread::Builder::new().name("signals".to_string()).spawn(move || {
        runtime.block_on(interrupt::first());
        stopping.shutdown();
    });
    if let Err(error) = stopper {
        eprintln!("no thread could be had to wait for signals: {error}");
        return Exit::Failed;
    }
    shop.serve();
    Exit::Done
}
