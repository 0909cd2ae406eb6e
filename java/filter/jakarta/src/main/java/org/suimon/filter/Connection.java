package org.suimon.filter;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.Locale;

/** The connection of a request that waits, by the name that it has in the kernel's tables. */
final class Connection {
    /** States, as they stand there. */
    static final String ESTABLISHED = "01";
    static final String CLOSE_WAIT = "08";

    /** What an IPv4 address begins with in the table of IPv6. */
    private static final String MAPPED = "0000000000000000FFFF0000";
    private static final int PORT_LENGTH = 4;
    private static final int BYTES_OF_WORD = 4;

    private final String address;
    private final int port;
    private final int remotePort;
    private final long since = System.nanoTime();
    private String name;
    private boolean wasOpen;
    private int looks;

    /**
     * Notes where a request has come in. What a container is told by a proxy (AJP, RemoteIpValve) is no name of any
     * connection here, and finds none.
     */
    Connection(String address, int port, int remotePort) {
        this.address = address;
        this.port = port;
        this.remotePort = remotePort;
    }

    long age(long now) {
        return now - since;
    }

    /** Returns its name: our address and port, and the port of the other side. */
    String name() {
        if (name == null) {
            name = hexadecimal(address) + hexadecimal(port) + hexadecimal(remotePort);
        }
        return name;
    }

    /**
     * Takes note of what was found of it, and returns whether its client has gone: it was not open in so many looks in a
     * row. One that was never found, neither open nor closed, is not judged.
     */
    boolean isGone(boolean isOpen, boolean isClosed, int looksWanted) {
        wasOpen |= isOpen;
        looks = !isOpen && (isClosed || wasOpen) ? looks + 1 : 0;
        return looks >= looksWanted;
    }

    /**
     * Returns the name in a line of a table, which has number, our address and port, those of the other side, and state:
     * {@code 0: 0100007F:1F90 0100007F:D2F0 01 ...}.
     */
    static String name(String line) {
        int begin = line.indexOf(':') + 2;
        int colon = line.indexOf(':', begin);
        int remote = line.indexOf(':', colon + 1) + 1;
        int from = line.startsWith(MAPPED, begin) ? begin + MAPPED.length() : begin;
        return line.substring(from, colon) + line.substring(colon + 1, colon + 1 + PORT_LENGTH)
                + line.substring(remote, remote + PORT_LENGTH);
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
        return String.format(Locale.ROOT, "%04X", port);
    }

    /** Returns an address as the kernel writes it: words of four bytes, each with its last byte first. */
    private static String hexadecimal(String address) {
        // Anything else might be a name, and be looked up.
        boolean isLiteral = address != null && (address.indexOf(':') >= 0 || address.matches("\\d+\\.\\d+\\.\\d+\\.\\d+"));
        if (!isLiteral) {
            return "-";
        }
        byte[] bytes;
        try {
            bytes = InetAddress.getByName(address.split("%", 2)[0]).getAddress();
        } catch (UnknownHostException none) {
            return "-";
        }
        StringBuilder text = new StringBuilder(2 * bytes.length);
        for (int at = 0; at < bytes.length; at++) {
            int word = at - at % BYTES_OF_WORD;
            text.append(String.format(Locale.ROOT, "%02X", bytes[word + BYTES_OF_WORD - 1 - at % BYTES_OF_WORD]));
        }
        return text.toString();
    }
}
