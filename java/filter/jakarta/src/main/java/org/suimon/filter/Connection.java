package org.suimon.filter;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.regex.Pattern;

/**
 * The connection of a request that waits, by the names that it has in the kernel's tables: its whole name, and a short one
 * without the address of the other side, of which a container may have been told another one.
 */
final class Connection {
    /** States, as they stand there. */
    static final String ESTABLISHED = "01";
    static final String CLOSE_WAIT = "08";

    /** What an IPv4 address begins with in the table of IPv6. */
    private static final String MAPPED = "0000000000000000FFFF0000";
    private static final int PORT_LENGTH = 4;
    private static final int BYTES_OF_WORD = 4;
    private static final HexFormat HEXADECIMAL = HexFormat.of().withUpperCase();
    /** What is looked up nowhere if it is no address of version 6; behind it may stand a zone. */
    private static final Pattern VERSION_6 = Pattern.compile("[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*(%.*)?");
    /** Of what is no address. */
    private static final String NOWHERE = "-";

    private final String address;
    private final int port;
    private final String remoteAddress;
    private final int remotePort;
    private final long since = System.nanoTime();
    private String shortName;
    private String wholeName;
    /** Whether it was found by its whole name. */
    private boolean isExact;
    private boolean wasOpen;
    private int looks;

    /**
     * Notes where a request has come in. What a container is told by a proxy (AJP, RemoteIpValve) is no name of any
     * connection here, and finds none.
     */
    Connection(String address, int port, String remoteAddress, int remotePort) {
        this.address = address;
        this.port = port;
        this.remoteAddress = remoteAddress;
        this.remotePort = remotePort;
    }

    long age(long now) {
        return now - since;
    }

    /** Returns our address and port, and the port of the other side. */
    String shortName() {
        name();
        return shortName;
    }

    /** Returns the short name, and the address of the other side. */
    String wholeName() {
        name();
        return wholeName;
    }

    private void name() {
        if (shortName == null) {
            shortName = hexadecimal(address) + hexadecimal(port) + hexadecimal(remotePort);
            wholeName = shortName + hexadecimal(remoteAddress);
        }
    }

    /**
     * Takes note of what was found under both names, and returns whether its client has gone: it was not open in so many
     * looks in a row. One that was never found, neither open nor closed, is not judged.
     */
    boolean isGone(Found byWhole, Found byShort, int looksWanted) {
        isExact |= byWhole.isOpen || byWhole.isClosed;
        Found found = isExact ? byWhole : byShort;
        wasOpen |= found.isOpen;
        looks = !found.isOpen && (found.isClosed || wasOpen) ? looks + 1 : 0;
        return looks >= looksWanted;
    }

    /** What a look has found under a name. */
    static final class Found {
        private boolean isOpen;
        private boolean isClosed;

        boolean isOpen() {
            return isOpen;
        }

        void note(String state) {
            isOpen |= state.equals(ESTABLISHED);
            isClosed |= state.equals(CLOSE_WAIT);
        }
    }

    /**
     * Returns the whole name in a line of a table, which has number, our address and port, those of the other side, and
     * state: {@code 0: 0100007F:1F90 0100007F:D2F0 01 ...}.
     */
    static String wholeName(String line) {
        int begin = line.indexOf(':') + 2;
        int colon = line.indexOf(':', begin);
        int remoteBegin = colon + 1 + PORT_LENGTH + 1;
        int remoteColon = line.indexOf(':', remoteBegin);
        return address(line, begin, colon) + port(line, colon) + port(line, remoteColon)
                + address(line, remoteBegin, remoteColon);
    }

    /** Returns the short name in a whole one, whose two addresses have the same length. */
    static String shortName(String wholeName) {
        return wholeName.substring(0, wholeName.length() / 2 + PORT_LENGTH);
    }

    private static String address(String line, int begin, int end) {
        return line.substring(line.startsWith(MAPPED, begin) ? begin + MAPPED.length() : begin, end);
    }

    private static String port(String line, int colon) {
        return line.substring(colon + 1, colon + 1 + PORT_LENGTH);
    }

    /** Returns the state in a line, if it is one of ours, else null. */
    static String state(String line) {
        int remote = line.indexOf(':', line.indexOf(':', line.indexOf(':') + 1) + 1);
        int at = remote + 1 + PORT_LENGTH + 1;
        if (line.startsWith(ESTABLISHED, at)) {
            return ESTABLISHED;
        }
        return line.startsWith(CLOSE_WAIT, at) ? CLOSE_WAIT : null;
    }

    private static String hexadecimal(int port) {
        return HEXADECIMAL.toHexDigits((short) port);
    }

    /** Returns an address as the kernel writes it: words of four bytes, each with its last byte first. */
    private static String hexadecimal(String address) {
        // Anything else might be a name, and be looked up.
        boolean isLiteral = address != null && (isVersion4(address) || VERSION_6.matcher(address).matches());
        if (!isLiteral) {
            return NOWHERE;
        }
        byte[] bytes;
        try {
            bytes = InetAddress.getByName(address.split("%", 2)[0]).getAddress();
        } catch (UnknownHostException none) {
            return NOWHERE;
        }
        StringBuilder text = new StringBuilder(2 * bytes.length);
        for (int word = 0; word < bytes.length; word += BYTES_OF_WORD) {
            for (int at = word + BYTES_OF_WORD - 1; at >= word; at--) {
                text.append(HEXADECIMAL.toHexDigits(bytes[at]));
            }
        }
        return text.toString();
    }

    private static boolean isVersion4(String address) {
        return address.matches("\\d{1,3}(\\.\\d{1,3}){3}")
                && Arrays.stream(address.split("\\.")).allMatch(part -> Integer.parseInt(part) < 256);
    }
}
