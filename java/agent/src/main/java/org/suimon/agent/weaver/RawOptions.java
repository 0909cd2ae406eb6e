package org.suimon.agent.weaver;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Reads options as they are written, without knowing what they mean: the part of TOML that they
 * need (keys with strings, numbers, booleans and lists of strings, no tables), or {@code
 * key=value;key=value}.
 */
final class RawOptions {
    /** Where the text makes no sense. */
    static final class SyntaxException extends Exception {
        private static final long serialVersionUID = 1L;

        SyntaxException(String message) {
            super(message);
        }
    }

    private static final String BARE = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-+.";

    private final String text;
    private int at;

    private RawOptions(String text) {
        this.text = text;
    }

    /** A value: a word, or a list of words. In TOML a word has quotes or not, else that is open. */
    record Value(String word, List<String> list, Boolean isQuoted) {
        /** Returns the words of a list, or of {@code a,b}. */
        List<String> words() {
            if (list != null) {
                return list;
            }
            return isQuoted == null ? List.of(word.split(",", -1)) : null;
        }

        /** Returns it as it would be written. */
        String shown() {
            String all = list == null ? word : list.toString();
            String quoted = isQuoted != null && isQuoted ? '"' + all + '"' : all;
            return quoted.length() <= 200 ? quoted : quoted.substring(0, 200) + "...";
        }
    }

    /** Returns what {@code key=value;key=value} says. */
    static Map<String, Value> ofArguments(String text) throws SyntaxException {
        Map<String, Value> all = new LinkedHashMap<>();
        for (String part : text.split(";")) {
            if (part.isBlank()) {
                continue;
            }
            int equals = part.indexOf('=');
            if (equals < 0) {
                throw new SyntaxException("'" + part.trim() + "': must be key=value, or the path of a file that exists");
            }
            put(all, part.substring(0, equals).trim(), new Value(part.substring(equals + 1).trim(), null, null), "");
        }
        return all;
    }

    /** Returns what a file says. */
    static Map<String, Value> ofToml(String text) throws SyntaxException {
        return new RawOptions(text).toml();
    }

    private static void put(Map<String, Value> all, String key, Value value, String where) throws SyntaxException {
        if (all.put(key, value) != null) {
            throw new SyntaxException(where + key + ": is there twice");
        }
    }

    private Map<String, Value> toml() throws SyntaxException {
        Map<String, Value> all = new LinkedHashMap<>();
        for (skip(true); at < text.length(); skip(true)) {
            String where = "line " + line() + ": ";
            if (peek() == '[') {
                throw wrong("tables are not known here");
            }
            String key = bare();
            if (key.isEmpty()) {
                throw wrong("a key must stand here");
            }
            skip(false);
            if (peek() != '=') {
                throw wrong("'" + key + "' must be followed by =");
            }
            at++;
            skip(false);
            put(all, key, value(), where);
            skip(false);
            if (at < text.length() && peek() != '\n') {
                throw wrong("nothing may follow the value");
            }
        }
        return all;
    }

    private Value value() throws SyntaxException {
        if (peek() == '"' || peek() == '\'') {
            return new Value(quoted(), null, true);
        }
        if (peek() != '[') {
            String word = bare();
            if (word.isEmpty()) {
                throw wrong("a value must stand here");
            }
            return new Value(word, null, false);
        }
        at++;
        List<String> words = new ArrayList<>();
        for (skip(true); peek() != ']'; skip(true)) {
            if (peek() != '"' && peek() != '\'') {
                throw wrong("a list holds \"words\", and ends with ]");
            }
            words.add(quoted());
            skip(true);
            if (peek() == ',') {
                at++;
            } else if (peek() != ']') {
                throw wrong("words of a list have commas between them, and ] at their end");
            }
        }
        at++;
        return new Value(null, words, null);
    }

    private String quoted() throws SyntaxException {
        char quote = peek();
        StringBuilder word = new StringBuilder();
        for (at++; peek() != quote; at++) {
            if (at >= text.length() || peek() == '\n') {
                throw wrong("the quote is not closed");
            }
            if (quote == '"' && peek() == '\\') {
                at++;
                if (peek() != '"' && peek() != '\\') {
                    throw wrong("after \\ only \\ and \" are known");
                }
            }
            word.append(peek());
        }
        at++;
        return word.toString();
    }

    private String bare() {
        int from = at;
        while (at < text.length() && BARE.indexOf(peek()) >= 0) {
            at++;
        }
        return text.substring(from, at);
    }

    private void skip(boolean overLines) {
        for (; at < text.length(); at++) {
            if (peek() == '#') {
                at = text.indexOf('\n', at) < 0 ? text.length() : text.indexOf('\n', at);
                if (at == text.length()) {
                    return;
                }
            }
            if (!Character.isWhitespace(peek()) || peek() == '\n' && !overLines) {
                return;
            }
        }
    }

    /** Returns the letter that is next; NUL at the end, which no text holds. */
    private char peek() {
        return at < text.length() ? text.charAt(at) : 0;
    }

    private long line() {
        return 1 + text.substring(0, Math.min(at, text.length())).chars().filter(letter -> letter == '\n').count();
    }

    private SyntaxException wrong(String what) {
        return new SyntaxException("line " + line() + ": " + what);
    }
}
