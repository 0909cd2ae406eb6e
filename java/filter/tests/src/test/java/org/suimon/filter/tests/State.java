package org.suimon.filter.tests;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** What the admin listener tells, as far as tests ask. */
final class State {
    private static final Pattern ROUTE = Pattern.compile(
            "\"name\":\"(.*?)\",\"mode\":.*?\"in_flight\":(\\d+).*?\"suspended\":(\\d+),\"queued\":(\\d+).*?\"offered\":(\\d+),"
                    + "\"completed\":(\\d+),\"failed\":(\\d+),\"abandoned\":(\\d+),\"refused\":(\\d+),\"waiting_pages\":(\\d+)");

    final String json;

    State(String json) {
        this.json = json;
    }

    long total(String name) {
        Matcher total = Pattern.compile("\"totals\":\\{[^}]*\"" + name + "\":(\\d+)").matcher(json);
        if (!total.find()) {
            throw new AssertionError("no total " + name + " in " + json);
        }
        return Long.parseLong(total.group(1));
    }

    /** Sums over all routes, the ungated requests among them. */
    record Sums(long offered, long completed, long failed, long abandoned, long refused, long waitingPages, long inside) {
        boolean balance() {
            return offered == completed + failed + abandoned + refused + waitingPages + inside;
        }
    }

    Sums sums() {
        long[] sums = new long[7];
        Matcher route = ROUTE.matcher(json);
        while (route.find()) {
            for (int at = 0; at < 6; at++) {
                sums[at] += Long.parseLong(route.group(at + 5));
            }
            sums[6] += Long.parseLong(route.group(2)) + Long.parseLong(route.group(3)) + Long.parseLong(route.group(4));
        }
        return new Sums(sums[0], sums[1], sums[2], sums[3], sums[4], sums[5], sums[6]);
    }

    /** Returns how many ungated requests were answered: they are not offered to a route. */
    long ungated() {
        Matcher ungated = Pattern.compile("\"ungated\":\\{.*?\"statuses\":\\{(.*?)}").matcher(json);
        if (!ungated.find()) {
            throw new AssertionError("no ungated in " + json);
        }
        return Pattern.compile(":(\\d+)").matcher(ungated.group(1)).results()
                .mapToLong(count -> Long.parseLong(count.group(1))).sum();
    }

    /** Returns a number of a route. */
    long route(String name, String number) {
        int at = json.indexOf("{\"name\":\"" + name + "\",\"mode\"");
        Matcher found = Pattern.compile("\"" + number + "\":(\\d+)").matcher(json);
        if (at < 0 || !found.find(at)) {
            return 0;
        }
        return Long.parseLong(found.group(1));
    }

    boolean isIdle() {
        return total("in_flight") == 0 && total("held") == 0 && total("queued") == 0;
    }
}
