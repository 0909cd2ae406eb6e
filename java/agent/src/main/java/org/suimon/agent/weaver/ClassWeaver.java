package org.suimon.agent.weaver;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;
import org.suimon.agent.runtime.MethodCounts;

/** Weaves classes: bytes in, bytes out. It knows what is to be woven, and no JVM. */
final class ClassWeaver {
    /** The header by which a request tells a ratio; the gateway takes it from clients. */
    static final String HEADER = "Suimon-Pause";
    static final String OWNER = "java/util/concurrent/locks/AbstractOwnableSynchronizer";
    /** What Tomcat's poller hands to its threads: a connection with something to read. */
    static final String HANDED = "org/apache/tomcat/util/net/SocketProcessorBase";

    /** Older class files have no frames, and may have subroutines. */
    private static final int VERSION_LEAST = Opcodes.V1_6;
    private static final List<String> APIS = List.of("jakarta/servlet", "javax/servlet");

    /** A method that is woven. */
    private record Target(String method, int number, int points) {
    }

    /** A class file too old to be woven. */
    static final class TooOldException extends Exception {
        private static final long serialVersionUID = 1L;

        TooOldException() {
            super("its class file is of Java 5 or older");
        }
    }

    private final Map<String, List<Target>> declared = new LinkedHashMap<>();
    private final Map<String, Set<String>> requests = new LinkedHashMap<>();
    private final boolean weavesServlets;
    private final List<MethodCounts> counts = new ArrayList<>();

    ClassWeaver(Options options) {
        options.methods().forEach((name, points) -> {
            int dot = name.lastIndexOf('.');
            Target target = new Target(name.substring(dot + 1), counts.size(), points);
            declared.computeIfAbsent(internal(name.substring(0, dot)), none -> new ArrayList<>()).add(target);
            counts.add(new MethodCounts(name, points));
        });
        for (String name : options.requestsBeginAt()) {
            int dot = name.lastIndexOf('.');
            requests.computeIfAbsent(internal(name.substring(0, dot)), none -> new TreeSet<>()).add(name.substring(dot + 1));
        }
        weavesServlets = options.header() || options.timings();
    }

    /** Returns the counts of all declared methods, by their number. */
    List<MethodCounts> counts() {
        return counts;
    }

    /** Returns whether something is to be woven into the class of this internal name. */
    boolean wants(String name) {
        return name.equals(OWNER) || name.equals(HANDED) || declared.containsKey(name) || requests.containsKey(name) || apiOf(name) != null;
    }

    /** Returns the names of methods declared of this class. */
    List<String> declaredOf(String name) {
        return declared.getOrDefault(name, List.of()).stream().map(Target::method).toList();
    }

    /** Returns the woven class; {@code told} gets what is to be said of it, and {@code woven} each method's number. */
    byte[] weave(String name, byte[] bytes, List<String> told, List<Integer> woven) throws TooOldException {
        ClassReader reader = new ClassReader(bytes);
        if (reader.readUnsignedShort(6) < VERSION_LEAST) {
            throw new TooOldException();
        }
        ClassWriter writer = new ClassWriter(reader, ClassWriter.COMPUTE_MAXS);
        reader.accept(new ClassVisitor(Opcodes.ASM9, writer) {
            @Override
            public MethodVisitor visitMethod(int access, String method, String descriptor, String signature, String[] thrown) {
                MethodVisitor next = super.visitMethod(access, method, descriptor, signature, thrown);
                boolean hasCode = (access & (Opcodes.ACC_ABSTRACT | Opcodes.ACC_NATIVE)) == 0;
                return hasCode ? method(next, name, method, descriptor, access, told, woven) : next;
            }
        }, 0);
        return writer.toByteArray();
    }

    private MethodVisitor method(MethodVisitor next, String name, String method, String descriptor, int access,
            List<String> told, List<Integer> woven) {
        MethodVisitor made = next;
        if (name.equals(OWNER) && method.equals("setExclusiveOwnerThread")) {
            woven.add(-1);
            return MethodWeaver.ofOwner(made);
        }
        if (name.equals(HANDED) && (method.equals("reset") || method.equals("run") && descriptor.equals("()V"))) {
            woven.add(-1);
            made = MethodWeaver.ofHanded(made, method.equals("reset") ? "handsOver" : "takesOver");
        }
        String api = apiOf(name);
        if (api != null && method.equals("service")
                && descriptor.equals("(L" + api + "/ServletRequest;L" + api + "/ServletResponse;)V")) {
            woven.add(-1);
            made = MethodWeaver.ofService(made, api, HEADER);
        }
        if (requests.getOrDefault(name, Set.of()).contains(method)) {
            woven.add(-1);
            made = MethodWeaver.ofRequest(made);
        }
        for (Target target : declared.getOrDefault(name, List.of())) {
            // Compilers write bridges, and what these call is woven.
            if (target.method().equals(method) && (access & Opcodes.ACC_BRIDGE) == 0) {
                woven.add(target.number());
                made = MethodWeaver.ofDeclared(made, target.number(), target.points());
                if ((access & Opcodes.ACC_SYNCHRONIZED) != 0) {
                    told.add(counts.get(target.number()).name()
                            + " is synchronized: inside it nothing ever pauses; declare what calls it");
                }
            }
        }
        return made;
    }

    private String apiOf(String name) {
        for (String api : APIS) {
            if (weavesServlets && name.length() == api.length() + 17 && name.startsWith(api) && name.endsWith("/http/HttpServlet")) {
                return api;
            }
        }
        return null;
    }

    private static String internal(String name) {
        return name.replace('.', '/');
    }
}
