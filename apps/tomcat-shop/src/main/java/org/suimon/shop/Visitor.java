package org.suimon.shop;

import java.util.Optional;
import java.util.UUID;

/** What a session remembers of its visitor: the name, and a cart of one line with the token an order of it must carry. */
final class Visitor {
    private final String name;
    /** Null while the cart is empty. */
    private String token;

    Visitor(String name) {
        this.name = name;
    }

    String name() {
        return name;
    }

    /** Puts an item into the cart, in place of what was there, and returns the token that lets it be bought. */
    synchronized String choose() {
        token = UUID.randomUUID().toString();
        return token;
    }

    /** Returns why line {@code line} of the cart cannot be bought, or nothing if it can. */
    synchronized Optional<Refusal> refusal(String line, String presented) {
        if (token == null) {
            return Optional.of(new Refusal(409, "Your cart is empty"));
        }
        if (!token.equals(presented)) {
            return Optional.of(new Refusal(403, "Wrong token, please search again"));
        }
        if (!"1".equals(line)) {
            return Optional.of(new Refusal(409, "Your cart has one line, item 1"));
        }
        return Optional.empty();
    }

    /** Takes the line out of the cart if it may be bought; otherwise returns why not. */
    synchronized Optional<Refusal> buy(String line, String presented) {
        Optional<Refusal> refusal = refusal(line, presented);
        if (refusal.isEmpty()) {
            token = null;
        }
        return refusal;
    }

    /** Why a visitor does not get what was asked for. */
    record Refusal(int status, String reason) {
    }
}
