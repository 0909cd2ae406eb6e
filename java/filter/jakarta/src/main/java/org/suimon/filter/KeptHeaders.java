package org.suimon.filter;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.function.BiConsumer;

/**
 * Headers of one answer that are kept until its head goes out, as responses have no way to take a header out: what the
 * application says to the gate, and what the gate may take out. The threads of an asynchronous request may use it at
 * once.
 */
final class KeptHeaders {
    private static final String PAUSED = "suimon-paused";
    private static final List<String> REMOVABLE = List.of("cdn-cache-control", "surrogate-control");

    private final List<Header> kept = new ArrayList<>();

    private record Header(String name, String value) {
        boolean is(String other) {
            return name.equalsIgnoreCase(other);
        }
    }

    /** Returns whether a header is one of those that are kept. */
    static boolean isKept(String name) {
        return name != null && (REMOVABLE.stream().anyMatch(name::equalsIgnoreCase) || Signals.isOne(name));
    }

    synchronized void add(String name, String value) {
        kept.add(new Header(name, value));
    }

    synchronized void remove(String name) {
        kept.removeIf(header -> header.is(name));
    }

    /** Forgets what the application takes back, with all of its answer. How long it has paused is none of its answer. */
    synchronized void reset() {
        kept.removeIf(header -> !header.is(PAUSED));
    }

    synchronized boolean isEmpty() {
        return kept.isEmpty();
    }

    synchronized List<String> of(String name) {
        return kept.isEmpty() ? List.of() : kept.stream().filter(header -> header.is(name)).map(Header::value).toList();
    }

    synchronized void addNamesTo(Set<String> names) {
        kept.forEach(header -> names.add(header.name().toLowerCase(Locale.ROOT)));
    }

    synchronized void forEach(BiConsumer<String, String> each) {
        kept.forEach(header -> each.accept(header.name(), header.value()));
    }

    /** Lets go of all. Those that visitors may have are passed on: not what is said to the gate, or taken out by it. */
    synchronized void release(HeaderChanges changes, BiConsumer<String, String> passOn) {
        List<Header> released = List.copyOf(kept);
        kept.clear();
        for (Header header : released) {
            if (!Signals.isOne(header.name()) && !changes.removes(header.name())) {
                passOn.accept(header.name(), header.value());
            }
        }
    }
}
