package org.suimon.agent.weaver;

import java.lang.instrument.ClassFileTransformer;
import java.security.ProtectionDomain;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.suimon.agent.runtime.MethodCounts;
import org.suimon.agent.runtime.Woven;

/** Stands in the JVM's way of loading classes, and weaves those that are declared. */
final class Weaver implements ClassFileTransformer {
    /** Remarks that are kept. */
    private static final int REMARKS_MAX = 100;

    private final ClassWeaver classes;
    private final Set<String> woven = new TreeSet<>();
    private final Set<Integer> found = new TreeSet<>();
    private final List<String> remarks = new ArrayList<>();
    private volatile boolean isOver;

    Weaver(ClassWeaver classes) {
        this.classes = classes;
    }

    @Override
    public byte[] transform(ClassLoader loader, String name, Class<?> before, ProtectionDomain domain, byte[] bytes) {
        // Lambdas' classes have no name.
        if (isOver || name == null || !classes.wants(name)) {
            return null;
        }
        String readable = name.replace('/', '.');
        try {
            if (!isWovenFoundBy(loader)) {
                remark(readable + " is not woven: its class loader hides the agent");
                return null;
            }
            List<String> told = new ArrayList<>();
            List<Integer> methods = new ArrayList<>();
            byte[] made = classes.weave(name, bytes, told, methods);
            told.forEach(this::remark);
            List<String> missing = new ArrayList<>();
            for (String method : classes.declaredOf(name)) {
                if (methods.stream().noneMatch(number -> number >= 0 && nameOf(number).equals(readable + '.' + method))) {
                    missing.add(method);
                }
            }
            missing.forEach(method -> remark(readable + '.' + method + ": no such method with code"));
            if (methods.isEmpty()) {
                return null;
            }
            synchronized (this) {
                woven.add(readable);
                found.addAll(methods);
            }
            return made;
        } catch (Throwable fault) {
            remark(readable + " is not woven: " + (fault instanceof ClassWeaver.TooOldException ? fault.getMessage() : fault));
            return null;
        }
    }

    private static boolean isWovenFoundBy(ClassLoader loader) {
        try {
            return Class.forName(Woven.class.getName(), false, loader) == Woven.class;
        } catch (ClassNotFoundException | LinkageError hidden) {
            return false;
        }
    }

    private String nameOf(int number) {
        return classes.counts().get(number).name();
    }

    /** Weaves nothing any more. */
    void over() {
        isOver = true;
    }

    synchronized void remark(String words) {
        if (remarks.size() < REMARKS_MAX && !remarks.contains(words)) {
            remarks.add(words);
            System.err.println("suimon-agent: " + words);
        }
    }

    synchronized List<String> remarks() {
        return List.copyOf(remarks);
    }

    synchronized List<String> woven() {
        return List.copyOf(woven);
    }

    /** Returns whether this method was in a class that was woven. */
    synchronized boolean isFound(MethodCounts method) {
        return found.contains(classes.counts().indexOf(method));
    }
}
