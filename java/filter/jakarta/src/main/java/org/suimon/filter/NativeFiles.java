package org.suimon.filter;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.function.Consumer;

/**
 * The native files of this jar. They are unpacked to a folder that only this user can enter, opened, and
 * deleted at once, so none is left behind however the JVM ends.
 *
 * <p>The library is opened once in a process and never closed, as threads of the server have run in it. Every
 * class loader finds it by its path, which a system property keeps: deployed again, an application adds
 * nothing to the process.
 */
final class NativeFiles {
    private static final String LIBRARY = "libsuimon.so";
    private static final String PATH_PROPERTY = "org.suimon.library.";

    private NativeFiles() {}

    /** Returns the native library. */
    static NativeLibrary open() throws IOException {
        String digest;
        try (InputStream in = resource(LIBRARY + ".sha256")) {
            digest = new String(in.readAllBytes(), StandardCharsets.US_ASCII).strip();
        }
        NativeLibrary[] opened = new NativeLibrary[1];
        try {
            // One loader at a time opens the library for the process; the others wait here.
            Object path = System.getProperties().computeIfAbsent(PATH_PROPERTY + digest, key -> {
                String[] unpacked = new String[1];
                try {
                    withCopyOf(LIBRARY, copy -> {
                        unpacked[0] = copy.toString();
                        opened[0] = bind(unpacked[0]);
                    });
                } catch (IOException failure) {
                    throw new UncheckedIOException(failure);
                }
                return unpacked[0];
            });
            return opened[0] != null ? opened[0] : bind(path.toString());
        } catch (UncheckedIOException failure) {
            throw failure.getCause();
        }
    }

    private static NativeLibrary bind(String path) {
        try {
            return Binding.open(path);
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    /** Unpacks a native file, calls {@code use} with its path, and deletes it. */
    static void withCopyOf(String name, Consumer<Path> use) throws IOException {
        Path folder = Files.createTempDirectory("suimon-");
        Path copy = folder.resolve(name);
        try {
            try (InputStream in = resource(name)) {
                Files.copy(in, copy);
            }
            use.accept(copy);
        } finally {
            Files.deleteIfExists(copy);
            Files.deleteIfExists(folder);
        }
    }

    private static InputStream resource(String name) throws IOException {
        String platform = platform();
        InputStream in = NativeFiles.class.getResourceAsStream("/META-INF/native/" + platform + "/" + name);
        if (in == null) {
            throw new FileNotFoundException("this suimon-filter.jar has no " + name + " for " + platform
                    + "; docs/java-filter.md says how it is built for another machine");
        }
        return in;
    }

    /** Returns system and processor, as the folder of the native files is called. */
    static String platform() {
        String system = System.getProperty("os.name", "").toLowerCase(Locale.ROOT);
        String processor = System.getProperty("os.arch", "").toLowerCase(Locale.ROOT);
        return system + "-" + (processor.equals("amd64") ? "x86-64" : processor);
    }
}
