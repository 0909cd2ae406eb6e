package org.suimon.shop;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;

/**
 * A light page's work: renders the table of goods and folds it into a SHA-256 digest, a fixed number of times, the way
 * a page is put together from many rendered and fingerprinted fragments.
 */
final class PageWork {
    private PageWork() {
    }

    /** Returns the table of goods, with the digest of {@code renderings} renderings of it beneath. */
    static String table(List<Catalogue.Item> items, int renderings) {
        MessageDigest digest = sha256();
        String table = "";
        for (int rendering = 0; rendering < renderings; rendering++) {
            table = render(items, rendering);
            digest.update(table.getBytes(StandardCharsets.UTF_8));
        }
        return table + "<p>Fingerprint " + HexFormat.of().formatHex(digest.digest()) + "</p>\n";
    }

    private static String render(List<Catalogue.Item> items, int rendering) {
        StringBuilder html = new StringBuilder("<table>\n");
        for (Catalogue.Item item : items) {
            html.append("<tr id=\"row-").append(rendering).append('-').append(item.id()).append("\"><td>")
                    .append(Html.escape(item.name().toUpperCase(Locale.ROOT))).append("</td><td>")
                    .append(item.price()).append("</td></tr>\n");
        }
        return html.append("</table>\n").toString();
    }

    private static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException("every Java platform must have SHA-256", impossible);
        }
    }
}
