package org.suimon.agent.runtime;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.suimon.agent.Pauses;

class WovenTest {
    @Test
    void aHeaderIsARatioOrNothing() {
        assertEquals(2.5, Woven.parse(" 2.5 "));
        assertEquals(0, Woven.parse("0"));
        assertEquals(Pauses.RATIO_MAX, Woven.parse("1000000"));
        for (String none : new String[] {"", "-1", "NaN", "Infinity", "1e9", "0x1p3", "1,5", "1.2.3", ".", "2f", "12345678901234567", "٢"}) {
            assertTrue(Double.isNaN(Woven.parse(none)), none);
        }
    }

    @Test
    void withoutAnAgentEachCallDoesNothing() {
        assertFalse(Pauses.isPresent());
        assertFalse(Pauses.tell(2));
        assertFalse(Pauses.tellAll(2));
        Pauses.forget();
        Pauses.forgetAll();
        Woven.begin(0);
        Woven.loop(0);
        Woven.end(0);
        Woven.serviceBegins("2", null, null);
        Woven.serviceEnds();
    }

    @Test
    void aPatternIsAMethodOrTheBeginningOfOne() {
        assertTrue(LockCheck.isMatch("com.shop.Tx.commit", "com.shop.Tx", "commit"));
        assertFalse(LockCheck.isMatch("com.shop.Tx.commit", "com.shop.Tx", "commits"));
        assertFalse(LockCheck.isMatch("com.shop.Tx.commit", "com.shop.T", "commit"));
        assertFalse(LockCheck.isMatch("com.shop.Tx.commit", "com.shop.Txx", "commit"));
        assertTrue(LockCheck.isMatch("com.shop.Tx.*", "com.shop.Tx", "commit"));
        assertFalse(LockCheck.isMatch("com.shop.Tx.*", "com.shop.Tx2", "commit"));
        assertTrue(LockCheck.isMatch("com.shop.Tx*", "com.shop.Tx2", "commit"));
        assertTrue(LockCheck.isMatch("com.shop.*", "com.shop.data.Tx", "commit"));
        assertTrue(LockCheck.isMatch("com.shop.Tx.com*", "com.shop.Tx", "commit"));
        assertFalse(LockCheck.isMatch("com.shop.Tx.com*", "com.shop.Tx", "begin"));
    }
}
