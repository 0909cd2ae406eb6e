package org.suimon.filter;

import java.util.ArrayList;
import java.util.List;

/** What to change in the head of an answer, a line each: {@code +name: value}, {@code =name: value}, {@code -name}. */
final class HeaderChanges {
    static final HeaderChanges NONE = new HeaderChanges(List.of());

    /** What is done with a header. */
    enum Deed {
        ADD,
        SET,
        REMOVE
    }

    /**
     * One change.
     *
     * @param value empty for {@link Deed#REMOVE}
     */
    record Change(Deed deed, String name, String value) {}

    private static final String SET_COOKIE = "Set-Cookie";

    private final List<Change> changes;

    private HeaderChanges(List<Change> changes) {
        this.changes = changes;
    }

    static HeaderChanges parse(String lines) {
        if (lines.isEmpty()) {
            return NONE;
        }
        List<Change> changes = new ArrayList<>();
        for (String line : lines.lines().toList()) {
            if (line.isEmpty()) {
                continue;
            }
            Deed deed = switch (line.charAt(0)) {
                case '+' -> Deed.ADD;
                case '=' -> Deed.SET;
                default -> Deed.REMOVE;
            };
            int colon = deed == Deed.REMOVE ? line.length() : line.indexOf(':');
            String value = deed == Deed.REMOVE ? "" : line.substring(colon + 1).strip();
            changes.add(new Change(deed, line.substring(1, colon), value));
        }
        return new HeaderChanges(changes);
    }

    List<Change> changes() {
        return changes;
    }

    /** Returns whether the gate has said what becomes of a header. Cookies of the application may stand beside its own. */
    boolean settles(String name) {
        return !SET_COOKIE.equalsIgnoreCase(name)
                && changes.stream().anyMatch(change -> change.name().equalsIgnoreCase(name));
    }

    /** Returns whether a header is to be taken out. */
    boolean removes(String name) {
        return changes.stream().anyMatch(change -> change.deed() == Deed.REMOVE && change.name().equalsIgnoreCase(name));
    }
}
