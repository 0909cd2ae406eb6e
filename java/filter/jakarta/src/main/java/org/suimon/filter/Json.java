package org.suimon.filter;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads JSON that the library has written: maps, lists, strings, numbers as {@code Double}, booleans, null. */
final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    /**
     * Reads one value.
     *
     * @throws IllegalArgumentException if the text is none
     */
    static Object read(String text) {
        Json json = new Json(text);
        try {
            Object value = json.value();
            if (json.skipBlanks() < text.length()) {
                throw json.fault();
            }
            return value;
        } catch (StringIndexOutOfBoundsException cut) {
            throw json.fault();
        }
    }

    private Object value() {
        return switch (text.charAt(skipBlanks())) {
            case '{' -> map();
            case '[' -> list();
            case '"' -> string();
            case 't' -> word("true", true);
            case 'f' -> word("false", false);
            case 'n' -> word("null", null);
            default -> number();
        };
    }

    private Map<String, Object> map() {
        Map<String, Object> map = new LinkedHashMap<>();
        at++;
        while (text.charAt(skipBlanks()) != '}') {
            String key = string();
            skipBlanks();
            take(':');
            map.put(key, value());
            if (text.charAt(skipBlanks()) != '}') {
                take(',');
            }
        }
        at++;
        return map;
    }

    private List<Object> list() {
        List<Object> list = new ArrayList<>();
        at++;
        while (text.charAt(skipBlanks()) != ']') {
            list.add(value());
            if (text.charAt(skipBlanks()) != ']') {
                take(',');
            }
        }
        at++;
        return list;
    }

    private String string() {
        take('"');
        StringBuilder string = new StringBuilder();
        while (text.charAt(at) != '"') {
            char one = text.charAt(at++);
            string.append(one == '\\' ? escaped() : one);
        }
        at++;
        return string.toString();
    }

    private char escaped() {
        char one = text.charAt(at++);
        return switch (one) {
            case 'b' -> '\b';
            case 'f' -> '\f';
            case 'n' -> '\n';
            case 'r' -> '\r';
            case 't' -> '\t';
            case 'u' -> {
                at += 4;
                yield (char) Integer.parseInt(text.substring(at - 4, at), 16);
            }
            default -> one;
        };
    }

    private Object word(String word, Object value) {
        if (!text.startsWith(word, at)) {
            throw fault();
        }
        at += word.length();
        return value;
    }

    private Double number() {
        int start = at;
        while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        try {
            return Double.valueOf(text.substring(start, at));
        } catch (NumberFormatException none) {
            throw fault();
        }
    }

    private int skipBlanks() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        return at;
    }

    private void take(char one) {
        if (text.charAt(at) != one) {
            throw fault();
        }
        at++;
    }

    private IllegalArgumentException fault() {
        return new IllegalArgumentException("no JSON at " + at);
    }
}
