package org.suimon.woven;

import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.ProtectionDomain;

/** Another agent, which comes after all others and only looks: at the bytes of a class as it runs now. */
public final class Witness {
    private Witness() {
    }

    /** With attach: {@code folder,class,class}; writes the bytes of each class into the folder. */
    public static void agentmain(String words, Instrumentation jvm) throws Exception {
        String[] all = words.split(",");
        for (int i = 1; i < all.length; i++) {
            Files.write(Path.of(all[0], all[i]), bytes(Class.forName(all[i]), jvm));
        }
    }

    private static byte[] bytes(Class<?> of, Instrumentation jvm) throws Exception {
        byte[][] seen = new byte[1][];
        ClassFileTransformer looker = new ClassFileTransformer() {
            @Override
            public byte[] transform(ClassLoader loader, String name, Class<?> before, ProtectionDomain domain, byte[] bytes) {
                if (before == of) {
                    seen[0] = bytes.clone();
                }
                return null;
            }
        };
        jvm.addTransformer(looker, true);
        try {
            jvm.retransformClasses(of);
        } finally {
            jvm.removeTransformer(looker);
        }
        return seen[0];
    }
}
