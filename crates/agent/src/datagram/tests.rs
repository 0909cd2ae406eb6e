use super::*;
use proptest::prelude::*;

pub(crate) fn ring() -> Keyring {
    Keyring::new([(7, [1; 32]), (8, [2; 32])]).unwrap()
}

pub(crate) fn report() -> Report {
    Report {
        name: "http://10.0.0.5:8080".to_owned(),
        boot_us: 1_700_000_000_000_000,
        sequence: 3,
        since_boot: Duration::from_millis(200),
        clock_us: 1_700_000_000_200_000,
        load: Load {
            every: Duration::from_millis(100),
            run_queue: 4,
            mean_100ms_milli: 3500,
            mean_1s_milli: 2250,
            pressure: Some(1234),
            in_flight: Some(17),
            processors: 8,
        },
    }
}

fn reports() -> impl Strategy<Value = Report> {
    let milli = 0..=RUN_QUEUE_MAX * 1000;
    let load = (
        (10_000u64..=1_000_000, 0..=RUN_QUEUE_MAX, milli.clone(), milli),
        (proptest::option::of(0u16..=10_000), proptest::option::of(any::<u32>()), 1u16..),
    );
    (("[!-~]{1,255}", 1u64.., 1u64.., 0..=SINCE_US_MAX, any::<u64>()), load).prop_map(
        |(
            (name, boot_us, sequence, since, clock_us),
            ((every, run_queue, a, b), (pressure, in_flight, processors)),
        )| {
            Report {
                name,
                boot_us,
                sequence,
                since_boot: Duration::from_micros(since),
                clock_us,
                load: Load {
                    every: Duration::from_micros(every),
                    run_queue,
                    mean_100ms_milli: a,
                    mean_1s_milli: b,
                    pressure,
                    in_flight,
                    processors,
                },
            }
        },
    )
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(report in reports()) {
        let bytes = report.encode(&ring()).unwrap();
        prop_assert!(bytes.len() <= DATAGRAM_MAX);
        prop_assert_eq!(Report::decode(&bytes, &ring()), Ok(report));
    }

    #[test]
    fn a_datagram_with_one_bit_changed_is_refused(report in reports(), at: prop::sample::Index, bit in 0u8..8) {
        let mut bytes = report.encode(&ring()).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert!(Report::decode(&bytes, &ring()).is_err());
    }

    #[test]
    fn a_part_of_a_datagram_is_too_short(report in reports(), end: prop::sample::Index) {
        let bytes = report.encode(&ring()).unwrap();
        let end = end.index(bytes.len());
        prop_assert_eq!(Report::decode(&bytes[..end], &ring()), Err(Refused::TooShort));
    }
}

/// Seals whatever stands before the MAC, as somebody with the key could.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(bytes.len() - MAC);
    let ring = ring();
    let mac = blake3::keyed_hash(ring.find(bytes[5]).unwrap(), &bytes);
    bytes.extend_from_slice(mac.as_bytes());
    bytes
}

#[test]
fn each_fault_of_the_format_has_its_reason() {
    let good = report().encode(&ring()).unwrap();
    let with = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        bytes
    };
    let mut longer = good.clone();
    longer.push(0);
    for (bytes, refused) in [
        (vec![], Refused::TooShort),
        (good[..good.len() - 1].to_vec(), Refused::TooShort),
        (longer, Refused::TooLong),
        (vec![0; DATAGRAM_MAX + 1], Refused::TooLong),
        (with(0, b'X'), Refused::BadMagic),
        (with(4, 2), Refused::BadVersion),
        (with(5, 9), Refused::UnknownKey),
        // The key of another number: the MAC is not its.
        (with(5, 8), Refused::BadMac),
        (with(23, 4), Refused::BadMac),
        (with(good.len() - 1, !good[good.len() - 1]), Refused::BadMac),
    ] {
        assert_eq!(Report::decode(&bytes, &ring()), Err(refused), "{refused:?}");
    }
    let other = Keyring::new([(7, [3; 32])]).unwrap();
    assert_eq!(Report::decode(&good, &other), Err(Refused::BadMac), "another secret of the same number");
}

#[test]
fn values_out_of_range_are_refused_although_they_are_sealed() {
    let good = report().encode(&ring()).unwrap();
    assert!(Report::decode(&sealed(good.clone()), &ring()).is_ok(), "sealing alone changes nothing");
    let faults: [(&str, &[(usize, u8)]); 9] = [
        ("an unknown flag", &[(6, 7)]),
        ("pressure without its flag", &[(6, 2)]),
        ("requests in flight without their flag", &[(6, 1)]),
        ("a sequence number of 0", &[(23, 0)]),
        ("a period of 0", &[(40, 0), (41, 0), (42, 0), (43, 0)]),
        ("a period of hours", &[(40, 255)]),
        ("a run queue beyond all tasks", &[(44, 255)]),
        ("no processors", &[(62, 0), (63, 0)]),
        ("a name with a blank", &[(64, b' ')]),
    ];
    for (what, changes) in faults {
        let mut bytes = good.clone();
        for (at, value) in changes {
            bytes[*at] = *value;
        }
        assert_eq!(Report::decode(&sealed(bytes), &ring()), Err(Refused::BadValue), "{what}");
    }
}

#[test]
fn what_nobody_would_believe_is_not_sent() {
    for wrong in [
        Report { name: String::new(), ..report() },
        Report { name: "x".repeat(256), ..report() },
        Report { name: "ü".to_owned(), ..report() },
        Report { boot_us: 0, ..report() },
        Report { sequence: 0, ..report() },
        Report { load: Load { every: Duration::from_secs(2), ..report().load }, ..report() },
        Report { load: Load { processors: 0, ..report().load }, ..report() },
        Report { load: Load { pressure: Some(10_001), ..report().load }, ..report() },
    ] {
        assert_eq!(wrong.encode(&ring()), Err(Refused::BadValue), "{wrong:?}");
    }
}

#[test]
fn a_ring_opens_what_any_of_its_keys_has_sealed() {
    let old = Keyring::new([(8, [2; 32])]).unwrap();
    let bytes = report().encode(&old).unwrap();
    assert_eq!(Report::decode(&bytes, &ring()), Ok(report()));
    let without = Keyring::new([(7, [1; 32])]).unwrap();
    assert_eq!(Report::decode(&bytes, &without), Err(Refused::UnknownKey));
    assert!(Keyring::new([]).is_none());
    assert_eq!(format!("{:?}", ring()), "[7, 8]", "no secrets in logs");
}
