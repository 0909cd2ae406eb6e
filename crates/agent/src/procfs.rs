//! What the kernel writes of load, as it stands in its files.

/// The longest of these files that is read, in bytes.
pub const TEXT_MAX: usize = 4096;

/// Returns the tasks that run or could, of `/proc/loadavg`: the number before the `/`. Whoever reads
/// the file is one of them.
pub fn run_queue(loadavg: &str) -> Option<u32> {
    let tasks = loadavg.split_ascii_whitespace().nth(3)?;
    let (running, all) = tasks.split_once('/')?;
    let (running, all) = (number(running)?, number(all)?);
    (running <= all).then_some(running)
}

/// Returns for how long, since the machine started, some task waited for a processor, in
/// microseconds: the `total` of `some` in `/proc/pressure/cpu` or a group's `cpu.pressure`.
pub fn waited_us(pressure: &str) -> Option<u64> {
    let some = pressure.lines().find_map(|line| line.strip_prefix("some "))?;
    let total = some.split_ascii_whitespace().find_map(|word| word.strip_prefix("total="))?;
    number(total)
}

/// Returns how many processors a list such as `0-3,8` has, as in `/sys/devices/system/cpu/online`.
pub fn processors(list: &str) -> Option<u16> {
    let mut count: u16 = 0;
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (number::<u16>(first)?, number::<u16>(last)?);
        count = count.checked_add(last.checked_sub(first)?.checked_add(1)?)?;
    }
    (count > 0).then_some(count)
}

/// Returns a number of the file in which an application writes how many requests it has.
pub fn in_flight(text: &str) -> Option<u32> {
    number(text.trim())
}

fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_queue_is_the_fourth_word() {
        assert_eq!(run_queue("0.20 0.18 0.12 1/80 11206\n"), Some(1));
        assert_eq!(run_queue("9.20 0.18 0.12 4194303/4194304 1\n"), Some(4_194_303));
        for wrong in
            ["", "0.20 0.18 0.12", "0 0 0 1 2", "0 0 0 x/2 3", "0 0 0 -1/2 3", "0 0 0 +1/2 3", "0 0 0 3/2 3"]
        {
            assert_eq!(run_queue(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn pressure_is_the_total_of_some() {
        let text = "some avg10=0.90 avg60=0.16 avg300=0.20 total=2907653921\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        assert_eq!(waited_us(text), Some(2_907_653_921));
        for wrong in ["", "full avg10=0 total=7", "some avg10=0.90", "some total=", "some total=-1"] {
            assert!(waited_us(wrong).is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn processors_are_counted_in_ranges() {
        assert_eq!(processors("0\n"), Some(1));
        assert_eq!(processors("0-1"), Some(2));
        assert_eq!(processors("0-3,8,10-11\n"), Some(7));
        for wrong in ["", "a", "3-1", "0-", "0-65535,0-65535", "0,,1"] {
            assert_eq!(processors(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn requests_in_flight_are_a_number_alone() {
        assert_eq!(in_flight("17\n"), Some(17));
        for wrong in ["", "x", "-1", "1 2"] {
            assert_eq!(in_flight(wrong), None, "{wrong:?}");
        }
    }
}
