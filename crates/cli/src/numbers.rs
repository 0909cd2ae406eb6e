//! Formats numbers for people, with significant digits and a suitable unit.

/// Returns a rate.
pub(crate) fn rate(value: f64) -> String {
    if value >= 100.0 {
        format!("{value:.0}")
    } else if value >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

/// Returns a share in per cent.
pub(crate) fn share(value: f64) -> String {
    format!("{:.0}\u{a0}%", value * 100.0)
}

/// Returns a time.
pub(crate) fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 99.5 => format!("{s:.0} s"),
        s if s >= 9.95 => format!("{s:.1} s"),
        s if s >= 1.0 => format!("{s:.2} s"),
        s => format!("{:.0} ms", s * 1000.0),
    }
}

/// Returns a time, with digits below a millisecond where they matter.
pub(crate) fn fine_time(seconds: f64) -> String {
    match seconds * 1000.0 {
        ms if ms < 9.995 => format!("{ms:.2} ms"),
        ms if ms < 99.95 => format!("{ms:.1} ms"),
        _ => time(seconds),
    }
}

/// Returns a time in the unit that people would use, from microseconds to hours.
pub(crate) fn rough_time(seconds: f64) -> String {
    if seconds <= 0.0 {
        "0".to_string()
    } else if seconds < 0.001 {
        format!("{:.0} us", seconds * 1e6)
    } else if seconds < 0.1 {
        format!("{:.1} ms", seconds * 1e3)
    } else if seconds < 1.0 {
        format!("{:.0} ms", seconds * 1e3)
    } else if seconds < 10.0 {
        format!("{seconds:.1} s")
    } else if seconds < 120.0 {
        format!("{seconds:.0} s")
    } else if seconds < 7200.0 {
        format!("{:.0} min", seconds / 60.0)
    } else {
        format!("{:.1} h", seconds / 3600.0)
    }
}

/// Returns an amount of memory.
pub(crate) fn bytes(bytes: u64) -> String {
    let mebibytes = bytes as f64 / f64::from(1 << 20);
    match mebibytes {
        size if size >= 10_240.0 => format!("{:.1} GiB", size / 1024.0),
        size if size >= 99.95 => format!("{size:.0} MiB"),
        size => format!("{size:.1} MiB"),
    }
}

/// Returns a number of things.
pub(crate) fn plural(number: u64, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
}

/// Returns a mean of counts, without decimals if it is whole or large.
pub(crate) fn count(value: f64) -> String {
    if value >= 99.5 || value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_show_what_means_something() {
        assert_eq!([0.123, 6.613, 12.34, 123.4].map(rate), ["0.12", "6.61", "12.3", "123"]);
        assert_eq!([0.004, 1.234, 12.34, 123.4].map(time), ["4 ms", "1.23 s", "12.3 s", "123 s"]);
        assert_eq!(
            [0.0, 0.000_123, 0.012_34, 0.1234, 12.34].map(fine_time),
            ["0.00 ms", "0.12 ms", "12.3 ms", "123 ms", "12.3 s"]
        );
        assert_eq!([0.0, 0.33, 12.0, 317.5].map(count), ["0", "0.3", "12", "318"]);
        assert_eq!(
            [0, 5 << 19, 300 << 20, 20 << 30].map(bytes),
            ["0.0 MiB", "2.5 MiB", "300 MiB", "20.0 GiB"]
        );
        assert_eq!(share(0.925), "92\u{a0}%");
    }
}
