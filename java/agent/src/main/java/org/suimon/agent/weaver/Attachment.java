package org.suimon.agent.weaver;

import java.lang.instrument.Instrumentation;
import java.lang.instrument.UnmodifiableClassException;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BiFunction;
import javax.management.JMException;
import javax.management.ObjectName;
import org.suimon.agent.runtime.Session;
import org.suimon.agent.runtime.Woven;

/** From attaching to detaching. */
public final class Attachment implements BiFunction<String, Instrumentation, Object[]> {
    private Instrumentation jvm;
    private ClassWeaver classes;
    private Weaver weaver;
    private Session session;
    private ObjectName name;

    /**
     * Attaches. Returns what is to be said, and if it is attached what tells how it is, and what
     * detaches it. They are types of the JDK, as the caller is of another loader.
     */
    @Override
    public Object[] apply(String said, Instrumentation of) {
        Options options;
        try {
            options = Options.read(said);
        } catch (Options.FaultsException wrong) {
            return new Object[] {"refused, the application runs on without the agent:\n  " + wrong.getMessage().replace("\n", "\n  ")};
        }
        if (options.methods().isEmpty()) {
            return new Object[] {"no methods declared: nothing is woven"};
        }
        jvm = of;
        try {
            begin(options);
        } catch (Exception | LinkageError fault) {
            end();
            return new Object[] {"refused, the application runs on without the agent:\n  " + fault};
        }
        Callable<String> status = new Report(session, classes, weaver)::words;
        Callable<String> detach = this::end;
        return new Object[] {"attached: " + options.summary() + said(), status, detach};
    }

    private String said() {
        List<String> woven = new ArrayList<>(weaver.woven());
        woven.remove(readable(ClassWeaver.OWNER));
        return woven.isEmpty() ? "; classes are woven when they are loaded" : "; woven: " + String.join(", ", woven);
    }

    private void begin(Options options) throws UnmodifiableClassException {
        classes = new ClassWeaver(options);
        weaver = new Weaver(classes);
        session = new Session(options.limits(), options.ratio(), options.header(), options.timings(), options.neverIn(), options.requestsBeginAt(),
                options.virtualThreads(), classes.counts());
        Woven.attach(session);
        // All that a lock will call is loaded and has run once before any lock calls it.
        Object some = new ReentrantLock();
        Woven.owner(some, Thread.currentThread());
        Woven.owner(some, null);
        if (!jvm.isRetransformClassesSupported()) {
            throw new IllegalStateException("this JVM cannot weave classes that are loaded");
        }
        jvm.addTransformer(weaver, true);
        jvm.retransformClasses(java.util.concurrent.locks.AbstractOwnableSynchronizer.class);
        if (!weaver.woven().contains(readable(ClassWeaver.OWNER))) {
            throw new IllegalStateException("locks cannot be watched, so nothing may pause");
        }
        session.locksAreWatched();
        for (Class<?> loaded : loaded()) {
            retransform(loaded);
        }
        // Not before the application runs: the platform's beans begin its logging, which it may want to set up first.
        session.onFirstJob(this::show);
        Woven.activate(session, Double.isNaN(options.ratio()) && !options.header() && !options.timings());
    }

    private synchronized void show() {
        try {
            if (Woven.isAttached()) {
                ObjectName beans = new ObjectName("org.suimon:type=Pauses");
                ManagementFactory.getPlatformMBeanServer().registerMBean(new Report(session, classes, weaver), beans);
                name = beans;
            }
        } catch (JMException taken) {
            weaver.remark("no bean for JMX: " + taken);
        }
    }

    private synchronized String hide() {
        try {
            if (name != null) {
                ManagementFactory.getPlatformMBeanServer().unregisterMBean(name);
            }
            return "";
        } catch (JMException gone) {
            return "; " + gone;
        }
    }

    /** Detaches: the JVM makes all classes what they were. Returns what is to be said. */
    private String end() {
        Woven.detach();
        weaver.over();
        jvm.removeTransformer(weaver);
        int restored = 0;
        for (Class<?> woven : loaded()) {
            restored += retransform(woven) ? 1 : 0;
        }
        retransform(java.util.concurrent.locks.AbstractOwnableSynchronizer.class);
        return "detached: " + restored + (restored == 1 ? " class is" : " classes are") + " as before" + hide();
    }

    private boolean retransform(Class<?> it) {
        try {
            jvm.retransformClasses(it);
            return true;
        } catch (UnmodifiableClassException | LinkageError no) {
            weaver.remark(it.getName() + " cannot be woven while it is loaded: " + no);
            return false;
        }
    }

    /** Returns the loaded classes that are woven or to be woven, but for that of locks. */
    private List<Class<?>> loaded() {
        List<Class<?>> wanted = new ArrayList<>();
        for (Class<?> loaded : jvm.getAllLoadedClasses()) {
            String internal = loaded.getName().replace('.', '/');
            if (!loaded.isArray() && classes.wants(internal) && !internal.equals(ClassWeaver.OWNER)) {
                wanted.add(loaded);
            }
        }
        return wanted;
    }

    private static String readable(String internal) {
        return internal.replace('/', '.');
    }
}
