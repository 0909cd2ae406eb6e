package org.suimon.filter;

import java.io.IOException;

/** How this Java calls the native library: by JNI. From Java 22 on, another class of this name is taken. */
final class Binding {
    private Binding() {}

    /** Returns the library that has been unpacked to {@code path}. */
    static NativeLibrary open(String path) throws IOException {
        NativeFiles.withCopyOf("libsuimon-jni.so", copy -> System.load(copy.toString()));
        return new JniLibrary(path);
    }
}
