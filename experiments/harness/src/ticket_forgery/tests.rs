use super::edits::{MAC, fields};
use super::*;

fn bench(seed: u64) -> Bench {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("data")).unwrap();
    Bench::new(seed, folder.path()).unwrap()
}

#[test]
fn tries_are_shared_out_to_the_last_one() {
    for tries in [1, 33, 1000, 12_345_678] {
        let works = works(tries);
        assert_eq!(works.iter().map(|work| work.tries).sum::<u64>(), tries);
        assert!(works.windows(2).all(|pair| pair[0].stream + 1 == pair[1].stream));
    }
}

#[test]
fn each_way_makes_something_that_is_no_true_one_and_each_time_another() {
    let bench = bench(1);
    assert_eq!(bench.shown(), (3 * TRUE_ONES as u64, 3 * TRUE_ONES as u64));
    for kept in SignedItem::ALL {
        for way in Way::ALL {
            let mut rng = Rng::new(5);
            let texts: HashSet<String> =
                (0..200).map(|_| bench.forged(&mut rng, kept, way).expect("an edit").0).collect();
            assert!(texts.len() > 150, "{kept:?} {way:?}: {}", texts.len());
            assert!(texts.iter().all(|text| !bench.known[kept as usize].contains(text)));
        }
    }
}

#[test]
fn a_gateway_that_takes_what_others_have_signed_is_found_out() {
    let mut bench = bench(1);
    let data = forge(&bench, 1, 3300).unwrap();
    assert!(claims::all_hold(&data.claims), "{:?}", data.claims);
    assert_eq!(data, forge(&bench, 1, 3300).unwrap(), "the same seed, the same forgeries");
    // Another gateway that has the same keys.
    bench.others = self::bench(1).mint;
    let data = forge(&bench, 1, 3300).unwrap();
    assert!(!data.claims[0].holds, "{:?}", data.claims);
    let taken = data.forged.iter().filter(|part| part.taken > 0);
    let taken: Vec<_> = taken.map(|part| (part.way.as_str(), part.taken, part.tries)).collect();
    assert_eq!(taken, [(Way::OtherKeys.text(), 100, 100); 3]);
}

#[test]
fn fields_end_where_the_text_does() {
    let bench = bench(2);
    for kept in SignedItem::ALL {
        let length = bytes_of(&bench.true_ones[kept as usize][0]).len();
        let ends = fields(kept);
        assert_eq!(ends.last(), Some(&length));
        assert!(ends.is_sorted() && ends.contains(&(length - MAC)) && ends.contains(&(TAG + 2)));
    }
}
