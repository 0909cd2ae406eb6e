package org.suimon.agent.weaver;

import java.util.function.UnaryOperator;

/** Looks at options: says what they come to, or what is wrong with them. */
public final class Check implements UnaryOperator<String> {
    @Override
    public String apply(String said) {
        try {
            return "ok: " + Options.read(said).summary();
        } catch (Options.FaultsException wrong) {
            return wrong.getMessage();
        }
    }
}
