package org.suimon.agent.start;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.util.jar.JarFile;
import java.util.zip.ZipEntry;

/**
 * Loads what weaves, so that it can be unloaded when the agent is detached.
 */
final class AgentLoader extends ClassLoader {
    static {
        registerAsParallelCapable();
    }

    private static final String OWN = "org.suimon.agent.weaver.";
    /** Where they lie in the jar: no other loader finds them there. */
    private static final String FOLDER = "weaver/";

    private final JarFile jar;

    AgentLoader(File file, ClassLoader parent) throws IOException {
        super("suimon-agent", parent);
        jar = new JarFile(file);
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
        if (!name.startsWith(OWN)) {
            return super.loadClass(name, resolve);
        }
        synchronized (getClassLoadingLock(name)) {
            Class<?> loaded = findLoadedClass(name);
            return loaded == null ? findClass(name) : loaded;
        }
    }

    @Override
    protected Class<?> findClass(String name) throws ClassNotFoundException {
        ZipEntry entry = jar.getEntry(FOLDER + name.replace('.', '/') + ".class");
        if (entry == null) {
            throw new ClassNotFoundException(name);
        }
        try (InputStream bytes = jar.getInputStream(entry)) {
            byte[] all = bytes.readAllBytes();
            return defineClass(name, all, 0, all.length);
        } catch (IOException unreadable) {
            throw new ClassNotFoundException(name, unreadable);
        }
    }

    /** Gives the file back. What is loaded stays until nobody uses it. */
    void close() throws IOException {
        jar.close();
    }
}
