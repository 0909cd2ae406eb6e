package org.suimon.agent.weaver;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.InputStream;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.TreeSet;
import java.util.jar.JarFile;
import org.junit.jupiter.api.Test;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;
import org.suimon.woven.Loops;

class ClassWeaverTest {
    private static byte[] bytes(Class<?> of) throws Exception {
        try (InputStream in = of.getClassLoader().getResourceAsStream(of.getName().replace('.', '/') + ".class")) {
            return in.readAllBytes();
        }
    }

    private static List<String> wovenCalls(byte[] bytes, String method) {
        List<String> calls = new ArrayList<>();
        new ClassReader(bytes).accept(new ClassVisitor(Opcodes.ASM9) {
            @Override
            public MethodVisitor visitMethod(int access, String name, String descriptor, String signature, String[] thrown) {
                return !name.equals(method) ? null : new MethodVisitor(Opcodes.ASM9) {
                    @Override
                    public void visitMethodInsn(int opcode, String owner, String called, String of, boolean isInterface) {
                        if (owner.equals(MethodWeaver.WOVEN)) {
                            calls.add(called);
                        }
                    }
                };
            }
        }, 0);
        return calls;
    }

    @Test
    void pointsAreWhereTheyWereDeclaredAndNowhereElse() throws Exception {
        String name = Loops.class.getName();
        List<String> told = new ArrayList<>();
        List<Integer> woven = new ArrayList<>();
        byte[] made = new ClassWeaver(Options.read("methods=" + name + ".run@loop"))
                .weave(name.replace('.', '/'), bytes(Loops.class), told, woven);
        List<String> calls = wovenCalls(made, "run");
        // for: one; do: its condition (both ways go there); while (true): one. Out by return or by what is thrown.
        assertEquals(List.of("begin", "loop", "loop", "end", "loop", "end"), calls);
        assertEquals(List.of(), wovenCalls(made, "fail"));
        byte[] other = new ClassWeaver(Options.read("methods=" + name + ".run@exit,x.Y.fail@exit"))
                .weave(name.replace('.', '/'), bytes(Loops.class), told, woven);
        assertEquals(List.of("begin", "end", "end"), wovenCalls(other, "run"));
        assertEquals(List.of(), told);
    }

    @Test
    void intoAClassInWhichNothingIsDeclaredNothingIsWoven() throws Exception {
        ClassWeaver weaver = new ClassWeaver(Options.read("methods=x.Y.z@exit"));
        String name = Loops.class.getName().replace('.', '/');
        assertFalse(weaver.wants(name));
        assertFalse(weaver.wants("jakarta/servlet/http/HttpServlet"), "the header was not asked for");
        List<Integer> woven = new ArrayList<>();
        weaver.weave(name, bytes(Loops.class), new ArrayList<>(), woven);
        assertTrue(woven.isEmpty());
        assertTrue(new ClassWeaver(Options.read("methods=x.Y.z@exit;header=true")).wants("javax/servlet/http/HttpServlet"));
    }

    @Test
    void anOldClassFileIsLeftAlone() throws Exception {
        byte[] old = bytes(Loops.class);
        old[7] = Opcodes.V1_5;
        ClassWeaver weaver = new ClassWeaver(Options.read("methods=" + Loops.class.getName() + ".run@exit"));
        assertThrows(ClassWeaver.TooOldException.class,
                () -> weaver.weave(Loops.class.getName().replace('.', '/'), old, new ArrayList<>(), new ArrayList<>()));
    }

    /** Weaves every method of every class, and lets the JVM verify it. */
    private static final class WeavingLoader extends URLClassLoader {
        private int methods;

        WeavingLoader(URL[] urls) {
            super(urls, ClassWeaverTest.class.getClassLoader());
        }

        Class<?> woven(String name, byte[] bytes) throws Exception {
            TreeSet<String> names = new TreeSet<>();
            new ClassReader(bytes).accept(new ClassVisitor(Opcodes.ASM9) {
                @Override
                public MethodVisitor visitMethod(int access, String method, String descriptor, String signature, String[] thrown) {
                    if (!method.startsWith("<")) {
                        names.add(method);
                    }
                    return null;
                }
            }, ClassReader.SKIP_CODE);
            String readable = name.replace('/', '.');
            StringBuilder all = new StringBuilder("ratio=1");
            String[] points = {"@loop", "@exit", "@entry"};
            List<String> declared = names.stream().map(method -> readable + '.' + method).toList();
            methods += declared.size();
            byte[] made = bytes;
            for (int from = 0; from < declared.size(); from += 80) {
                all.setLength(0);
                List<String> some = declared.subList(from, Math.min(from + 80, declared.size()));
                for (String method : some) {
                    Arrays.stream(points).forEach(point -> all.append(all.isEmpty() ? "" : ",").append(method).append(point));
                }
                made = new ClassWeaver(Options.read("methods=" + all)).weave(name, made, new ArrayList<>(), new ArrayList<>());
            }
            return defineClass(readable, made, 0, made.length);
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            synchronized (getClassLoadingLock(name)) {
                Class<?> loaded = findLoadedClass(name);
                URL found = loaded == null && !name.startsWith("java.") ? findResource(name.replace('.', '/') + ".class") : null;
                if (found == null) {
                    return loaded == null ? super.loadClass(name, resolve) : loaded;
                }
                try (InputStream in = found.openStream()) {
                    return woven(name.replace('.', '/'), in.readAllBytes());
                } catch (Exception wrong) {
                    throw new ClassNotFoundException(name, wrong);
                }
            }
        }
    }

    @Test
    void everyMethodOfARealServerCanBeWovenAndIsVerified() throws Exception {
        File tomcat = new File(org.apache.catalina.startup.Tomcat.class.getProtectionDomain().getCodeSource().getLocation().toURI());
        int classes = 0;
        try (WeavingLoader loader = new WeavingLoader(new URL[] {tomcat.toURI().toURL()}); JarFile jar = new JarFile(tomcat)) {
            for (String name : jar.stream().map(entry -> entry.getName()).filter(name -> name.endsWith(".class")).toList()) {
                if (name.startsWith("META-INF") || name.equals("module-info.class")) {
                    continue;
                }
                String readable = name.substring(0, name.length() - 6).replace('/', '.');
                try {
                    // Links, and so verifies it; nothing of it runs.
                    Class.forName(readable, false, loader).getDeclaredMethods();
                    classes++;
                } catch (NoClassDefFoundError optional) {
                    assertFalse(optional.getMessage().startsWith("org/apache/catalina/core"), readable + ": " + optional);
                }
            }
            assertTrue(classes > 1_000 && loader.methods > 10_000, classes + " classes, " + loader.methods + " methods");
        }
    }

    @Test
    void aWovenClassComputesWhatItDid() throws Exception {
        String name = Loops.class.getName();
        URL[] here = {Loops.class.getProtectionDomain().getCodeSource().getLocation()};
        try (WeavingLoader loader = new WeavingLoader(here)) {
            Class<?> woven = loader.loadClass(name);
            assertEquals(Loops.run(1000), woven.getMethod("run", int.class).invoke(null, 1000));
            RuntimeException thrown = new IllegalStateException("this one");
            Exception caught = assertThrows(java.lang.reflect.InvocationTargetException.class,
                    () -> woven.getMethod("fail", RuntimeException.class).invoke(null, thrown));
            assertEquals(thrown, caught.getCause());
        }
    }
}
