package org.suimon.shop;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.function.LongSupplier;

/**
 * How much work a page is, as counts. The counts are found once, at start, on an idle machine; after that a page is
 * the same work however busy the machine is.
 *
 * @param lightWork     renderings of a light page
 * @param searchRepeats passes of a search
 */
record Work(int lightWork, int searchRepeats) {
    /** CPU of a light page at scale 1, in nanoseconds. */
    static final double LIGHT_NANOS = 30e6;

    /** CPU of a search at scale 1, in nanoseconds. */
    static final double SEARCH_NANOS = 400e6;

    /** The compiler needs this many repetitions before a measurement, or the first visitor, sees final speed. */
    private static final int WARM_UP_RENDERINGS = 60_000;
    private static final int WARM_UP_PASSES = 120;

    private static final int MEASURED_RENDERINGS = 10_000;
    /** Many, for the process' CPU time goes in steps of 10 ms. */
    private static final int MEASURED_PASSES = 150;
    private static final int ATTEMPTS = 4;

    /** Warms the code up and returns the counts: those the options name, the rest measured. */
    static Work prepare(Options options, Catalogue catalogue, CatalogueSearch search) {
        PageWork.table(catalogue.page(1), WARM_UP_RENDERINGS);
        search.search("lantern", WARM_UP_PASSES);
        ThreadMXBean thread = ManagementFactory.getThreadMXBean();
        OperatingSystemMXBean process = ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class);
        int light = options.lightWork() > 0
                ? options.lightWork()
                : count(LIGHT_NANOS / options.scale(), thread::getCurrentThreadCpuTime, MEASURED_RENDERINGS,
                        renderings -> PageWork.table(catalogue.page(1), renderings));
        int repeats = options.searchRepeats() > 0
                ? options.searchRepeats()
                // The process' CPU, because the collector's share is part of what a search costs.
                : count(SEARCH_NANOS / options.scale(), process::getProcessCpuTime, MEASURED_PASSES,
                        passes -> search.search("lantern", passes));
        return new Work(light, repeats);
    }

    private interface Repeated {
        Object run(int times);
    }

    /** Returns how many repetitions cost {@code target} nanoseconds of CPU by that clock; at least one. */
    private static int count(double target, LongSupplier clock, int measured, Repeated work) {
        // The quickest of some: the compiler, still at it, and the neighbours only ever make it longer.
        double nanos = Double.MAX_VALUE;
        for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
            long before = clock.getAsLong();
            work.run(measured);
            nanos = Math.min(nanos, (double) (clock.getAsLong() - before) / measured);
        }
        return (int) Math.max(1, Math.round(target / nanos));
    }
}
