package org.suimon.filter;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

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

    static final String SET_COOKIE = "Set-Cookie";
    static final String CACHE_CONTROL = "Cache-Control";

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

    /**
     * Returns whether the gate has said what becomes of a header. Cookies of the application may stand beside its own; where
     * there is one of its own, caches are told so, by the gate or by the application before.
     */
    boolean settles(String name) {
        if (SET_COOKIE.equalsIgnoreCase(name)) {
            return false;
        }
        return has(name) || CACHE_CONTROL.equalsIgnoreCase(name) && has(SET_COOKIE);
    }

    private boolean has(String name) {
        return changes.stream().anyMatch(change -> change.name().equalsIgnoreCase(name));
    }

    /** Calls for each cookie of the gate's own. */
    void forEachCookie(Consumer<String> each) {
        changes.stream().filter(change -> SET_COOKIE.equalsIgnoreCase(change.name())).map(Change::value).forEach(each);
    }

    /** Returns whether a header is to be taken out. */
    boolean removes(String name) {
        return changes.stream().anyMatch(change -> change.deed() == Deed.REMOVE && change.name().equalsIgnoreCase(name));
    }
}
