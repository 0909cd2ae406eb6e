package org.suimon.woven;

import java.io.File;
import java.util.Locale;
import java.util.concurrent.locks.ReentrantLock;
import org.apache.catalina.Context;
import org.apache.catalina.startup.Tomcat;
import org.suimon.agent.Pauses;

/** Tomcat with one servlet, whose class is the first argument. It runs on versions of both APIs. */
public final class Server {
    private static final ReentrantLock LOCK = new ReentrantLock();

    private Server() {
    }

    /** Serves until its input ends. */
    public static void main(String[] arguments) throws Exception {
        Tomcat tomcat = new Tomcat();
        tomcat.setPort(0);
        tomcat.setBaseDir(arguments[1]);
        Context context = tomcat.addContext("", new File(arguments[1]).getAbsolutePath());
        tomcat.addServlet("", "job", arguments[0]);
        context.addServletMappingDecoded("/job", "job");
        // One thread: who comes meanwhile waits for it.
        tomcat.getConnector().setProperty("minSpareThreads", "1");
        tomcat.getConnector().setProperty("maxThreads", "1");
        tomcat.start();
        System.out.println("listening " + tomcat.getConnector().getLocalPort());
        while (System.in.read() >= 0) {
            Thread.onSpinWait();
        }
        System.exit(0);
    }

    /** Works for a fifth of a second; returns the ratio that it saw, and the seconds it paused. */
    static String job(String how) {
        Work.Took took = switch (how) {
            case "synchronized" -> inMonitor();
            case "locked" -> locked();
            case "told" -> told();
            default -> Work.measure(() -> Work.run(200));
        };
        return String.format(Locale.ROOT, "%.3f %.3f", took.ratio(), took.pausedMs() / 1e3);
    }

    private static synchronized Work.Took inMonitor() {
        return Work.measure(() -> Work.run(200));
    }

    private static Work.Took locked() {
        LOCK.lock();
        try {
            return Work.measure(() -> Work.run(200));
        } finally {
            LOCK.unlock();
        }
    }

    private static Work.Took told() {
        Pauses.tell(1);
        try {
            return Work.measure(() -> Work.run(200));
        } finally {
            Pauses.forget();
        }
    }
}
