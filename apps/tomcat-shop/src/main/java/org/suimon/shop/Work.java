package org.suimon.shop;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;

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
    private static final int MEASURED_RENDERINGS = 20_000;
    private static final int MEASURED_PASSES = 150;

    /** Warms the code up and returns the counts: those the options name, the rest measured. */
    static Work prepare(Options options, Catalogue catalogue, CatalogueSearch search) {
        PageWork.table(catalogue.page(1), WARM_UP_RENDERINGS);
        search.search("lantern", WARM_UP_PASSES);
        int light = options.lightWork() > 0
                ? options.lightWork()
                : count(LIGHT_NANOS / options.scale(), MEASURED_RENDERINGS, n -> PageWork.table(catalogue.page(1), n));
        int repeats = options.searchRepeats() > 0
                ? options.searchRepeats()
                : count(SEARCH_NANOS / options.scale(), MEASURED_PASSES, n -> search.search("lantern", n));
        return new Work(light, repeats);
    }

    private interface Repeated {
        Object run(int times);
    }

    /** Returns how many repetitions cost {@code targetNanos} of the process' CPU, the collector's part included; at least one. */
    private static int count(double targetNanos, int measured, Repeated work) {
        OperatingSystemMXBean process = ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class);
        // The quicker of two: what disturbs a measurement only ever makes it longer.
        double nanos = Double.MAX_VALUE;
        for (int attempt = 0; attempt < 2; attempt++) {
            long before = process.getProcessCpuTime();
            work.run(measured);
            nanos = Math.min(nanos, (double) (process.getProcessCpuTime() - before) / measured);
        }
        return (int) Math.max(1, Math.round(targetNanos / nanos));
    }
}
