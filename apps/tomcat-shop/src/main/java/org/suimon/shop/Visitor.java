package org.suimon.shop;

import java.util.Optional;
import java.util.UUID;

/** What a session remembers of its visitor: the name, one chosen item, and the token its order must carry. */
final class Visitor {
    private final String name;
    private String item;
    private String token;

    Visitor(String name) {
        this.name = name;
    }

    String name() {
        return name;
    }

    /** Puts the item into the cart, in place of what was there, and returns the token that lets it be bought. */
    synchronized String choose(String chosen) {
        item = chosen;
        token = UUID.randomUUID().toString();
        return token;
    }

    /** Returns why the item cannot be bought, or nothing if it can. */
    synchronized Optional<Refusal> refusal(String wanted, String presented) {
        if (item == null) {
            return Optional.of(new Refusal(409, "Your cart is empty"));
        }
        if (!token.equals(presented)) {
            return Optional.of(new Refusal(403, "Wrong token, please search again"));
        }
        if (!item.equals(wanted)) {
            return Optional.of(new Refusal(409, "Your cart holds another item"));
        }
        return Optional.empty();
    }

    /** Takes the item out of the cart if it may be bought; otherwise returns why not. */
    synchronized Optional<Refusal> buy(String wanted, String presented) {
        Optional<Refusal> refusal = refusal(wanted, presented);
        if (refusal.isEmpty()) {
            item = null;
            token = null;
        }
        return refusal;
    }

    /** Why a visitor does not get what was asked for. */
    record Refusal(int status, String reason) {
    }
}
