package org.suimon.filter;

/** Names of the headers that are between the gate and the application. */
final class Signals {
    private static final String PREFIX = "suimon";

    private Signals() {}

    /**
     * Returns whether a header is one of them: {@code Suimon-}, in any case, and with whatever some programs take for
     * the hyphen. That is the rule of the gateway.
     */
    static boolean isOne(String name) {
        int end = PREFIX.length();
        return name != null
                && name.length() > end
                && name.regionMatches(true, 0, PREFIX, 0, end)
                && !(name.charAt(end) < 0x80 && Character.isLetterOrDigit(name.charAt(end)));
    }
}
