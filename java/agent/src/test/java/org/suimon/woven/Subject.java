package org.suimon.woven;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.ReentrantLock;
import javax.management.ObjectName;
import javax.management.openmbean.CompositeData;

/** A program that does what it reads, line by line, and answers each line with one. */
public final class Subject {
    private final ReentrantLock oldLock = new ReentrantLock();
    private final CountDownLatch attached = new CountDownLatch(1);
    private Thread oldThread;
    private volatile String oldThreadSaid;

    /** Reads until there is no more. */
    public static void main(String[] arguments) throws Exception {
        Subject subject = new Subject();
        Work.run(1);
        Work.walk(1);
        System.out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(subject.answer(line.split(" ")));
        }
    }

    private String answer(String[] words) throws Exception {
        return switch (words[0]) {
            case "ratio" -> ratio(words[1], Integer.parseInt(words[2]));
            case "threads" -> threads();
            case "classes" -> classes();
            case "bean" -> bean();
            case "old-thread" -> beginOldThread();
            case "old-thread-works" -> oldThreadWorks();
            case "interrupted" -> interrupted();
            case "locks" -> String.join(";", new Locks().all());
            case "random-locks" -> new Locks().random(Long.parseLong(words[1]), Integer.parseInt(words[2]));
            case "tell-all" -> String.valueOf(org.suimon.agent.Pauses.tellAll(Double.parseDouble(words[1])));
            case "tell" -> String.valueOf(org.suimon.agent.Pauses.tell(Double.parseDouble(words[1])));
            case "forget" -> {
                org.suimon.agent.Pauses.forget();
                yield "forgot";
            }
            case "long-pause" -> longPause();
            case "virtual" -> virtual(words[1]);
            default -> "what is " + words[0] + "?";
        };
    }

    /** Works for so many milliseconds; answers with pauses ÷ work. */
    private static String ratio(String how, int millis) throws Exception {
        Work.Took took = switch (how) {
            case "loop" -> Work.measure(() -> Work.run(millis));
            case "exit" -> Work.measure(() -> times(millis * 2, () -> Work.walk(500)));
            case "entry" -> Work.measure(() -> times(millis * 2, () -> Work.step(500)));
            case "thrown" -> Work.measure(() -> times(millis * 2, Subject::fails));
            case "threads" -> onThreads(4, millis);
            default -> throw new IllegalArgumentException(how);
        };
        return String.format(Locale.ROOT, "%.4f", took.ratio());
    }

    private static void fails() {
        try {
            Work.fail(500);
        } catch (IllegalStateException asItShould) {
            return;
        }
        throw new AssertionError("nothing was thrown");
    }

    private static void times(int times, Runnable it) {
        for (int i = 0; i < times; i++) {
            it.run();
        }
    }

    private static Work.Took onThreads(int threads, int millis) throws InterruptedException {
        List<Work.Took> all = java.util.Collections.synchronizedList(new ArrayList<>());
        List<Thread> running = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            running.add(new Thread(() -> all.add(Work.measure(() -> times(4, () -> Work.run(millis / 4))))));
            running.get(i).start();
        }
        for (Thread thread : running) {
            thread.join();
        }
        return new Work.Took(all.stream().mapToLong(Work.Took::worked).sum(), all.stream().mapToLong(Work.Took::paused).sum());
    }

    private static String threads() {
        TreeSet<String> names = new TreeSet<>();
        Thread.getAllStackTraces().keySet().forEach(thread -> names.add(thread.getName()));
        // The JVM's own, which comes with the first one that attaches.
        names.remove("Attach Listener");
        return names.toString();
    }

    /** Collects all garbage, and names the agent's classes and loaders that are left. */
    private static String classes() throws Exception {
        String histogram = (String) ManagementFactory.getPlatformMBeanServer().invoke(
                new ObjectName("com.sun.management:type=DiagnosticCommand"), "vmClassloaders",
                new Object[] {new String[] {"show-classes"}}, new String[] {String[].class.getName()});
        System.gc();
        return "weaver=" + histogram.lines().filter(line -> line.contains("org.suimon.agent.weaver.")).count()
                + " loaders=" + histogram.lines().filter(line -> line.contains("suimon-agent")).count();
    }

    private static String bean() throws Exception {
        ObjectName name = new ObjectName("org.suimon:type=Pauses");
        if (!ManagementFactory.getPlatformMBeanServer().isRegistered(name)) {
            return "none";
        }
        StringBuilder all = new StringBuilder();
        for (Object it : (Object[]) ManagementFactory.getPlatformMBeanServer().getAttribute(name, "Methods")) {
            CompositeData method = (CompositeData) it;
            all.append(method.get("name")).append(" woven=").append(method.get("woven")).append(" calls=").append(method.get("calls"))
                    .append(" pauses=").append(method.get("pauses")).append(" postponed=").append(method.get("postponed"))
                    .append(" why=").append(method.get("postponedWhy")).append(" distribution=")
                    .append(Arrays.stream((Object[]) boxed(method.get("jobDistribution"))).mapToLong(n -> (Long) n).sum()).append("; ");
        }
        return all.toString();
    }

    private static Object boxed(Object numbers) {
        return Arrays.stream((long[]) numbers).boxed().toArray();
    }

    /** A thread that takes a lock before anybody watches, and keeps it until it is told to work. */
    private String beginOldThread() throws InterruptedException {
        CountDownLatch holds = new CountDownLatch(1);
        oldThread = new Thread(() -> {
            oldLock.lock();
            holds.countDown();
            try {
                attached.await();
            } catch (InterruptedException wanted) {
                return;
            }
            Work.Took locked = Work.measure(() -> times(3, () -> Work.walk(30_000)));
            oldLock.unlock();
            long until = System.nanoTime() + 20_000_000_000L;
            Work.Took free = new Work.Took(1, 0);
            while (free.pausedMs() < 100 && System.nanoTime() < until) {
                free = Work.measure(() -> Work.walk(1_000));
            }
            oldThreadSaid = locked.pausedMs() + " " + free.pausedMs();
        });
        oldThread.start();
        holds.await();
        return "it holds";
    }

    private String oldThreadWorks() throws InterruptedException {
        attached.countDown();
        oldThread.join();
        return oldThreadSaid;
    }

    /** An interrupted thread does not pause, and stays interrupted; one interrupted in a pause ends it. */
    private static String interrupted() throws InterruptedException {
        Thread.currentThread().interrupt();
        Work.Took took = Work.measure(() -> Work.walk(100_000));
        boolean isStill = Thread.interrupted();
        boolean[] woken = new boolean[1];
        long[] lasted = new long[1];
        Thread sleeper = new Thread(() -> {
            lasted[0] = Work.measure(() -> Work.walk(1_000_000)).pausedMs();
            woken[0] = Thread.interrupted();
        });
        sleeper.start();
        while (sleeper.getState() != Thread.State.TIMED_WAITING) {
            Thread.onSpinWait();
        }
        sleeper.interrupt();
        sleeper.join();
        return took.pausedMs() + " " + isStill + " " + lasted[0] + " " + woken[0];
    }

    /** Begins a pause on a thread of its own, and answers once it pauses; the thread says when it is over. */
    private static String longPause() {
        Thread sleeper = new Thread(() -> {
            long paused = Work.measure(() -> Work.walk(1_000_000)).pausedMs();
            System.out.println("paused for " + paused);
        });
        sleeper.start();
        while (sleeper.getState() != Thread.State.TIMED_WAITING) {
            Thread.onSpinWait();
        }
        return "it pauses";
    }

    /** On Java 21 and later: the same on a virtual thread. */
    private static String virtual(String how) throws Exception {
        ReentrantLock lock = new ReentrantLock();
        long[] said = new long[2];
        Runnable work = () -> {
            if (how.equals("locked")) {
                lock.lock();
                said[0] = Work.measure(() -> Work.walk(100_000)).pausedMs();
                lock.unlock();
                said[1] = Work.measure(() -> Work.walk(1_000)).pausedMs();
            } else {
                said[0] = Work.measure(() -> Work.walk(100_000)).pausedMs();
            }
        };
        try {
            ((Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, work)).join();
        } catch (InvocationTargetException wrong) {
            return wrong.getCause().toString();
        }
        return said[0] + " " + said[1];
    }

}
