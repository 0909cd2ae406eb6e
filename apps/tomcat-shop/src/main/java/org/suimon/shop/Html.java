package org.suimon.shop;

/** The frame every page shares, and how text is made safe inside it. */
final class Html {
    private Html() {
    }

    /** Returns a whole page. The title is text, the body is HTML. */
    static String page(String title, String body) {
        String safe = escape(title);
        return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" + safe + "</title></head>\n<body>\n<h1>"
                + safe + "</h1>\n" + body + "</body></html>\n";
    }

    /** Returns the text with everything HTML would take for markup made harmless. */
    static String escape(String text) {
        return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\"", "&quot;").replace("'", "&#39;");
    }
}
