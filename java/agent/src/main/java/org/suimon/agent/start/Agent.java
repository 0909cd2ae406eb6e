package org.suimon.agent.start;

import java.io.File;
import java.lang.instrument.Instrumentation;
import java.util.concurrent.Callable;
import java.util.function.BiFunction;
import java.util.jar.JarFile;

/**
 * Where the JVM begins: at its start, or when somebody attaches. Whatever goes wrong is said on
 * standard error, and the application runs on without the agent.
 */
public final class Agent {
    /** The system property that holds what was last said; {@link Command} reads it. */
    static final String SAID = "suimon.agent";

    static final String DETACH = "detach";
    static final String STATUS = "status";

    private static boolean isOnBootPath;
    private static AgentLoader loader;
    /** What is attached: called, it says how it is; null: nothing. */
    private static Callable<String> status;
    private static Callable<String> detach;

    private Agent() {
    }

    /** With {@code -javaagent}. */
    public static void premain(String options, Instrumentation jvm) {
        run(options, jvm);
    }

    /** With attach. */
    public static void agentmain(String options, Instrumentation jvm) {
        run(options, jvm);
    }

    private static synchronized void run(String options, Instrumentation jvm) {
        try {
            String asked = options == null ? "" : options.trim();
            switch (asked) {
                case DETACH -> say(detached());
                case STATUS -> System.setProperty(SAID, status == null ? "not attached" : status.call());
                default -> say(attached(asked, jvm));
            }
        } catch (Throwable fault) {
            try {
                say("fault: " + fault + "; the application runs on without the agent");
            } catch (Throwable again) {
                // There is nobody to tell.
            }
        }
    }

    private static void say(String words) {
        System.setProperty(SAID, words);
        System.err.println("suimon-agent: " + words);
    }

    private static String attached(String options, Instrumentation jvm) throws Exception {
        if (detach != null) {
            return "refused: already attached; detach first";
        }
        File file = new File(Agent.class.getProtectionDomain().getCodeSource().getLocation().toURI());
        // Before that, so that it is of the same loader as this class.
        loader = new AgentLoader(file, ClassLoader.getPlatformClassLoader());
        if (!isOnBootPath) {
            // Every class of the application is to find what woven code calls.
            jvm.appendToBootstrapClassLoaderSearch(new JarFile(file));
            isOnBootPath = true;
        }
        boolean isAttached = false;
        try {
            @SuppressWarnings("unchecked")
            BiFunction<String, Instrumentation, Object[]> begin = (BiFunction<String, Instrumentation, Object[]>)
                    loader.loadClass("org.suimon.agent.weaver.Attachment").getConstructor().newInstance();
            Object[] begun = begin.apply(options, jvm);
            isAttached = begun.length == 3;
            if (isAttached) {
                status = callable(begun[1]);
                detach = callable(begun[2]);
            }
            return (String) begun[0];
        } finally {
            if (!isAttached) {
                unload();
            }
        }
    }

    @SuppressWarnings("unchecked")
    private static Callable<String> callable(Object it) {
        return (Callable<String>) it;
    }

    private static String detached() throws Exception {
        if (detach == null) {
            return "not attached";
        }
        try {
            return detach.call();
        } finally {
            unload();
        }
    }

    private static void unload() throws Exception {
        status = null;
        detach = null;
        AgentLoader done = loader;
        loader = null;
        done.close();
    }
}
