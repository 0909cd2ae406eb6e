//! What php-fpm says of its children, at the path that its `pm.status_path` names.
//!
//! *Source*: php-fpm's `fpm_status.c`: lines of a name, a colon, spaces and a value.

/// The children of php-fpm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PhpStatus {
    /// How many work on a request.
    pub active: u64,
    /// How many wait for one.
    pub idle: u64,
    /// How many there are.
    pub total: u64,
    /// Connections that no child has taken yet.
    pub listen_queue: u64,
    /// How often there were as many as there may be, since php-fpm began.
    pub max_children_reached: u64,
}

/// Reads the page in its plain form; `None`: it is another page.
pub fn read(page: &[u8]) -> Option<PhpStatus> {
    let text = std::str::from_utf8(page).ok()?;
    let number = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        let (_, value) = lines.find(|(own, _)| *own == name)?;
        value.trim().parse().ok()
    };
    Some(PhpStatus {
        active: number("active processes")?,
        idle: number("idle processes")?,
        total: number("total processes")?,
        listen_queue: number("listen queue")?,
        max_children_reached: number("max children reached")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "pool:                 www\nprocess manager:      dynamic\nstart time:           27/Nov/2026:18:00:00 +0000\n\
        start since:          62\naccepted conn:        130\nlisten queue:         7\nmax listen queue:     12\n\
        listen queue len:     511\nidle processes:       1\nactive processes:     4\ntotal processes:      5\n\
        max active processes: 5\nmax children reached: 2\nslow requests:        0\n";

    #[test]
    fn the_page_is_read() {
        let expected = PhpStatus { active: 4, idle: 1, total: 5, listen_queue: 7, max_children_reached: 2 };
        assert_eq!(read(PAGE.as_bytes()), Some(expected));
        assert_eq!(read(PAGE.replace('\n', "\r\n").as_bytes()), Some(expected));
    }

    #[test]
    fn another_page_is_none() {
        for page in ["", "File not found.\n", "<h1>listen queue: 7</h1>", &PAGE.replace("idle", "lazy")] {
            assert_eq!(read(page.as_bytes()), None, "{page}");
        }
        assert_eq!(read(&PAGE.replace("    7", "  -7").into_bytes()), None);
        assert_eq!(read(b"\xFF"), None);
    }
}
