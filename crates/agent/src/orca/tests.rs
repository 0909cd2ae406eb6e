use super::*;
use proptest::prelude::*;

fn parse(value: &str) -> Result<OrcaReport, BadOrca> {
    OrcaReport::parse(value.as_bytes())
}

fn example() -> OrcaReport {
    OrcaReport {
        cpu_utilization: 0.3,
        mem_utilization: 0.8,
        rps_fractional: 10.0,
        eps: 1.0,
        named_metrics: [("custom_metric_util".to_owned(), 0.4)].into(),
        ..OrcaReport::default()
    }
}

#[test]
fn the_three_forms_of_the_specification_say_the_same() {
    let text = "TEXT cpu_utilization=0.3, mem_utilization=0.8, rps_fractional=10.0, eps=1, named_metrics.custom_metric_util=0.4";
    let colons = "TEXT cpu_utilization:0.3,mem_utilization:0.8,rps_fractional:10.0,eps:1,named_metrics.custom_metric_util:0.4";
    let json = r#"JSON {"cpu_utilization": 0.3, "mem_utilization": 0.8, "rps_fractional": 10.0, "eps": 1, "named_metrics": {"custom_metric_util": 0.4}}"#;
    let camel = r#"JSON {"cpuUtilization": "0.3", "memUtilization": 0.8, "rpsFractional": 10, "eps": 1, "namedMetrics": {"custom_metric_util": 0.4}, "utilization": null, "somethingNew": [1, {"a": 2}]}"#;
    for value in [text, colons, json, camel] {
        assert_eq!(parse(value), Ok(example()), "{value}");
    }
    let binary = example().to_bin();
    assert_eq!(OrcaReport::parse_bin(binary.as_bytes()), Ok(example()));
    assert_eq!(OrcaReport::parse_bin(binary.trim_end_matches('=').as_bytes()), Ok(example()));
    assert_eq!(parse(&format!("BIN {binary}")), Ok(example()));
}

#[test]
fn the_binary_example_that_others_publish_is_read() {
    let report = parse("BIN CZqZmZmZmbk/MQAAAAAAAABAQg4KA2ZvbxGamZmZmZm5P0IOCgNiYXIRmpmZmZmZyT8=").unwrap();
    let wanted = OrcaReport {
        cpu_utilization: 0.1,
        rps_fractional: 2.0,
        named_metrics: [("foo".to_owned(), 0.1), ("bar".to_owned(), 0.2)].into(),
        ..OrcaReport::default()
    };
    assert_eq!(report, wanted);
}

#[test]
fn maps_and_the_old_count_of_requests_are_read() {
    let wanted = OrcaReport {
        rps: 7,
        application_utilization: 1.5,
        utilization: [("disk".to_owned(), 0.5)].into(),
        request_cost: [("rows".to_owned(), 12.0)].into(),
        ..OrcaReport::default()
    };
    assert_eq!(
        parse(
            r#"JSON {"rps": "7", "application_utilization": 1.5, "utilization": {"disk": 0.5}, "request_cost": {"rows": 12}}"#
        ),
        Ok(wanted.clone())
    );
    assert_eq!(OrcaReport::parse_bin(wanted.to_bin().as_bytes()), Ok(wanted.clone()));
    let without = OrcaReport { rps: 0, ..wanted };
    assert_eq!(
        parse("TEXT application_utilization=1.5,utilization.disk=0.5,request_cost.rows=12"),
        Ok(without)
    );
}

#[test]
fn each_fault_has_its_reason() {
    let long = format!("TEXT eps=1{}", " ".repeat(VALUE_MAX));
    let long_name = format!("TEXT named_metrics.{}=1", "x".repeat(NAME_MAX + 1));
    let many: Vec<String> = (0..=NAMED_MAX).map(|number| format!("named_metrics.n{number}=1")).collect();
    let many = format!("TEXT {}", many.join(","));
    for (value, fault) in [
        (&*long, BadOrca::TooLong),
        ("", BadOrca::UnknownFormat),
        ("text eps=1", BadOrca::UnknownFormat),
        ("XML <a/>", BadOrca::UnknownFormat),
        ("TEXT eps", BadOrca::Malformed),
        ("TEXT eps=", BadOrca::BadNumber),
        ("TEXT eps=x", BadOrca::BadNumber),
        ("TEXT eps=nan", BadOrca::BadNumber),
        ("TEXT eps=inf", BadOrca::BadNumber),
        ("TEXT eps=1e999", BadOrca::BadNumber),
        ("TEXT eps=\"0.7\"", BadOrca::BadNumber),
        ("TEXT eps=-1", BadOrca::OutOfRange),
        ("TEXT mem_utilization=1.01", BadOrca::OutOfRange),
        ("TEXT utilization.disk=2", BadOrca::OutOfRange),
        ("TEXT eps=1,eps=1", BadOrca::Duplicate),
        ("TEXT named_metrics.a=1,named_metrics.a=1", BadOrca::Duplicate),
        ("TEXT named_metrics.=1", BadOrca::BadName),
        ("TEXT named_metrics=1", BadOrca::BadName),
        ("TEXT load=1", BadOrca::BadName),
        (&*long_name, BadOrca::BadName),
        (&*many, BadOrca::TooMany),
        ("JSON", BadOrca::UnknownFormat),
        ("JSON ", BadOrca::Malformed),
        ("JSON []", BadOrca::Malformed),
        ("JSON {} {}", BadOrca::Malformed),
        (r#"JSON {"eps": 1"#, BadOrca::Malformed),
        (r#"JSON {"eps": "x"}"#, BadOrca::BadNumber),
        (r#"JSON {"eps": true}"#, BadOrca::BadNumber),
        (r#"JSON {"eps": "NaN"}"#, BadOrca::BadNumber),
        (r#"JSON {"rps": -1}"#, BadOrca::BadNumber),
        (r#"JSON {"eps": -1}"#, BadOrca::OutOfRange),
        (r#"JSON {"eps": 1, "eps": 1}"#, BadOrca::Duplicate),
        (r#"JSON {"cpu_utilization": 1, "cpuUtilization": 1}"#, BadOrca::Duplicate),
        (r#"JSON {"named_metrics": {"a": 1, "a": 2}}"#, BadOrca::Duplicate),
        (r#"JSON {"named_metrics": {"": 1}}"#, BadOrca::BadName),
        (r#"JSON {"named_metrics": 5}"#, BadOrca::Malformed),
        ("BIN !", BadOrca::Malformed),
        // A field that is cut off, field 0, a group, and a number without an end.
        ("BIN CQ==", BadOrca::Malformed),
        ("BIN AAA=", BadOrca::Malformed),
        ("BIN Cw==", BadOrca::Malformed),
        ("BIN GP///////////////w==", BadOrca::Malformed),
        // Field 1 is not a number, and below 0.
        ("BIN CQAAAAAAAPh/", BadOrca::BadNumber),
        ("BIN CQAAAAAAAPC/", BadOrca::OutOfRange),
        // Field 8 with a name that is no text.
        ("BIN QgMKAf8=", BadOrca::Malformed),
    ] {
        assert_eq!(parse(value), Err(fault), "{value:.80}");
    }
    let deep = |key: &str| format!("JSON {{\"{key}\": {}{}}}", "[".repeat(1000), "]".repeat(1000));
    assert_eq!(parse(&deep("eps")), Err(BadOrca::Malformed), "no deeper than it is read");
    assert_eq!(parse(&deep("x")), Ok(OrcaReport::default()), "what is skipped may be as deep as it likes");
}

#[test]
fn fields_that_nobody_knows_are_skipped() {
    // Fields 15 of each form, then cpu_utilization = 0.5.
    let bytes: &[u8] = &[
        0x78, 1, 0x79, 0, 0, 0, 0, 0, 0, 0, 0, 0x7a, 1, 0, 0x7d, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0xe0, 0x3f,
    ];
    let base64 = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, bytes);
    let wanted = OrcaReport { cpu_utilization: 0.5, ..OrcaReport::default() };
    assert_eq!(OrcaReport::parse_bin(base64.as_bytes()), Ok(wanted));
}

#[test]
fn the_application_says_best_how_busy_it_is() {
    assert_eq!(OrcaReport::default().utilization(), None);
    let cpu = OrcaReport { cpu_utilization: 0.25, ..OrcaReport::default() };
    assert_eq!(cpu.utilization(), Some(0.25));
    assert_eq!(OrcaReport { application_utilization: 0.5, ..cpu }.utilization(), Some(0.5));
}

fn reports() -> impl Strategy<Value = OrcaReport> {
    let names = |value: std::ops::Range<f64>| proptest::collection::btree_map("[a-z_.-]{1,20}", value, 0..5);
    let fields = (0.0..1e9f64, 0.0..1.0f64, 0.0..9.0f64, 0.0..1e9f64, 0.0..1e9f64);
    (fields, any::<u64>(), names(-1e9..1e9), names(0.0..1.0), names(-1e9..1e9)).prop_map(
        |((cpu, memory, application, requests, errors), rps, named_metrics, utilization, request_cost)| {
            OrcaReport {
                cpu_utilization: cpu,
                mem_utilization: memory,
                application_utilization: application,
                rps_fractional: requests,
                eps: errors,
                rps,
                named_metrics,
                utilization,
                request_cost,
            }
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read(report in reports()) {
        prop_assert_eq!(OrcaReport::parse(format!("JSON {}", report.to_json()).as_bytes()), Ok(report.clone()));
        prop_assert_eq!(OrcaReport::parse_bin(report.to_bin().as_bytes()), Ok(report.clone()));
        // The text form has no `rps`.
        let text = report.to_text();
        prop_assert_eq!(OrcaReport::parse(text.as_bytes()), Ok(OrcaReport { rps: 0, ..report }));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), form in 0usize..4) {
        let mut value = [&b"TEXT "[..], b"JSON ", b"BIN ", b""][form].to_vec();
        value.extend(&bytes);
        let _ = OrcaReport::parse(&value);
        let _ = OrcaReport::parse_bin(&bytes);
    }
}
