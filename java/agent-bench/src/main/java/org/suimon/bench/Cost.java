package org.suimon.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.CompilerControl;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;

/** What a woven method costs: a call that does next to nothing, a turn of a loop, a lock that nobody else wants. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class Cost {
    private static final int TURNS = 1_000;
    private static final String METHODS = "methods=org.suimon.bench.Cost.call@exit,org.suimon.bench.Cost.turns@loop";

    private final ReentrantLock lock = new ReentrantLock();
    private int number;

    /** Measures all of it: the first argument is the agent's jar; the second, if there is one, the file for the data. */
    public static void main(String[] arguments) throws RunnerException, IOException {
        Map<String, List<String>> setups = new LinkedHashMap<>();
        String agent = "-javaagent:" + arguments[0] + "=";
        setups.put("without the agent", List.of());
        setups.put("nothing declared", List.of(agent));
        setups.put("woven, idle", List.of(agent + METHODS));
        setups.put("woven, ratio 0", List.of(agent + METHODS + ";ratio=0"));
        List<String> lines = new ArrayList<>();
        List<String> data = new ArrayList<>();
        for (Map.Entry<String, List<String>> setup : setups.entrySet()) {
            Collection<RunResult> results = new Runner(new OptionsBuilder().include(Cost.class.getName() + ".*")
                    .jvmArgs(setup.getValue().toArray(new String[0])).forks(3)
                    .warmupIterations(3).warmupTime(TimeValue.seconds(1))
                    .measurementIterations(5).measurementTime(TimeValue.seconds(1))
                    .build()).run();
            StringBuilder line = new StringBuilder(String.format(Locale.ROOT, "%-18s", setup.getKey()));
            for (RunResult result : results) {
                boolean isTurn = result.getParams().getBenchmark().endsWith("turn");
                double per = isTurn ? TURNS : 1;
                String label = result.getPrimaryResult().getLabel();
                double least = result.getPrimaryResult().getStatistics().getMin() / per;
                double mean = result.getPrimaryResult().getScore() / per;
                double error = result.getPrimaryResult().getScoreError() / per;
                // What others take from the machine only adds, so the least says most.
                line.append(String.format(Locale.ROOT, "  %s %.2f (mean %.2f ± %.2f) ns", label, least, mean, error));
                data.add(String.format(Locale.ROOT,
                        "  {\"setup\":\"%s\",\"what\":\"%s\",\"least_ns\":%.3f,\"mean_ns\":%.3f,\"error_ns\":%.3f}",
                        setup.getKey(), label, least, mean, error));
            }
            lines.add(line.toString());
        }
        System.out.println();
        lines.forEach(System.out::println);
        if (arguments.length > 1) {
            Files.writeString(Path.of(arguments[1]), String.format(
                    "{\"java\":\"%s\",\"forks\":3,\"iterations\":5,\"error\":\"99.9 %%\",\"costs\":[%n%s%n]}%n",
                    System.getProperty("java.runtime.version"), String.join(",\n", data)));
        }
    }

    /** One call. */
    @Benchmark
    public int callOnce() {
        return call(number);
    }

    /** A thousand turns. */
    @Benchmark
    public int turn() {
        return turns(number);
    }

    /** Takes a lock and gives it back. */
    @Benchmark
    public int lock() {
        lock.lock();
        try {
            return number++;
        } finally {
            lock.unlock();
        }
    }

    @CompilerControl(CompilerControl.Mode.DONT_INLINE)
    private int call(int of) {
        return of + 1;
    }

    @CompilerControl(CompilerControl.Mode.DONT_INLINE)
    private int turns(int from) {
        int all = from;
        for (int i = 0; i < TURNS; i++) {
            all = all * 31 + i ^ all >>> 7;
        }
        return all;
    }
}
