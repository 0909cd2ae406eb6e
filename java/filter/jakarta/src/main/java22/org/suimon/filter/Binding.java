package org.suimon.filter;

/** How this Java calls the native library: by the Foreign Function API. */
final class Binding {
    private Binding() {}

    /** Returns the library that has been unpacked to {@code path}. */
    static NativeLibrary open(String path) {
        return new ForeignLibrary(path);
    }
}
