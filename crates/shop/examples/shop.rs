//! Runs the shop alone: `shop [PORT [SCALE [LIGHT_WORK SEARCH_REPEATS]]]`. The real command is
//! `suimon shop`; this one is for measuring without the rest.

use std::process::ExitCode;

use suimon_shop::{Options, Shop};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| arguments.get(index).and_then(|text| text.parse::<f64>().ok());
    let options = Options {
        port: number(0).map_or(0, |port| port as u16),
        scale: number(1).unwrap_or(1.0),
        light_work: number(2).map(|count| count as u32),
        search_repeats: number(3).map(|count| count as u32),
        ..Options::default()
    };
    match Shop::bind(&options) {
        Ok(shop) => {
            println!("work: {:?}", shop.work());
            println!("listening on http://{}", shop.local_addr());
            shop.serve();
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("shop: {error}");
            ExitCode::FAILURE
        }
    }
}
