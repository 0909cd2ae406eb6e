//! What an application says that it has thrown: its reasons for what fails.

use std::collections::BTreeMap;

/// Kinds of exceptions that are kept of a turn.
const KINDS_MAX: usize = 20;

/// Returns how often each kind of exception is in what a Tomcat has written: its class, and where it was thrown, outside
/// of Java's own classes.
pub(super) fn thrown(said: &str) -> BTreeMap<String, u64> {
    let mut kinds = BTreeMap::new();
    let mut lines = said.lines().peekable();
    while let Some(line) = lines.next() {
        // Who stands directly before its frames is what was thrown; that of a cause has frames of its own.
        let Some(class) =
            class_in(line).filter(|_| lines.peek().is_some_and(|next| frame_in(next).is_some()))
        else {
            continue;
        };
        let mut place = "Java itself";
        while let Some(frame) = lines.peek().and_then(|next| frame_in(next)) {
            lines.next();
            if !frame.starts_with("java.base/") {
                place = frame;
                break;
            }
        }
        let kind = format!("{class} at {place}");
        if kinds.len() < KINDS_MAX || kinds.contains_key(&kind) {
            *kinds.entry(kind).or_insert(0) += 1;
        }
    }
    kinds
}

/// Returns the class of an exception in this line, if it has one.
fn class_in(line: &str) -> Option<&str> {
    let mut words = line.split([' ', ':', '\t', ',']);
    let is_class =
        |word: &&str| word.contains('.') && (word.ends_with("Exception") || word.ends_with("Error"));
    words.rfind(is_class)
}

fn frame_in(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("at ").filter(|frame| frame.contains('('))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_are_told_apart_by_class_and_place() {
        let said = "\
[INFO ] 2026-11-29 10:00:00.000 [exec-1] o.a.w.W - saved
SEVERE: Servlet.service() for servlet [jsp] threw exception with root cause
java.util.ConcurrentModificationException
\tat java.base/java.util.HashMap$HashIterator.nextNode(HashMap.java:1597)
\tat org.apache.wiki.References.write(References.java:40)
\tat org.apache.wiki.References.save(References.java:20)
[ERROR] 2026-11-29 10:00:01.000 [exec-2] o.a.w.W - failed
 java.util.ConcurrentModificationException: null
\tat java.base/java.util.HashMap$HashIterator.nextNode(HashMap.java:1597)
\tat org.apache.wiki.References.write(References.java:40)
Caused by: java.io.IOException: no room
\tat org.apache.wiki.Disk.write(Disk.java:7)
a line about java.io.IOException: without frames
";
        let expected = [
            ("java.io.IOException at org.apache.wiki.Disk.write(Disk.java:7)", 1),
            (
                "java.util.ConcurrentModificationException at org.apache.wiki.References.write(References.java:40)",
                2,
            ),
        ];
        let expected = expected.map(|(kind, count)| (kind.to_string(), count));
        assert_eq!(thrown(said), BTreeMap::from(expected));
    }
}
