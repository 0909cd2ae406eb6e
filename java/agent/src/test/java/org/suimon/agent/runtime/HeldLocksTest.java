package org.suimon.agent.runtime;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class HeldLocksTest {
    private final HeldLocks held = new HeldLocks();

    @Test
    void whatTheServerHeldBeforeTheRequestIsItsOwn() {
        Object servers = new Object();
        Object ours = new Object();
        held.took(servers);
        assertTrue(held.isAnyHeld());
        held.requestBegins();
        assertFalse(held.isAnyHeld());
        held.took(ours);
        assertTrue(held.isAnyHeld());
        held.gaveBack(servers);
        assertTrue(held.isAnyHeld(), "that of the application is still held");
        held.gaveBack(ours);
        assertFalse(held.isAnyHeld());
        held.took(servers);
        assertTrue(held.isAnyHeld(), "taken again while the application runs");
        held.requestEnds();
        held.gaveBack(servers);
        assertFalse(held.isAnyHeld());
    }

    @Test
    void aLockThatWasTakenBeforeAnybodyWatchedIsNoMatterWhenItIsGivenBack() {
        Object known = new Object();
        held.took(known);
        held.gaveBack(new Object());
        assertTrue(held.isAnyHeld());
        held.gaveBack(known);
        held.gaveBack(known);
        assertFalse(held.isAnyHeld());
    }

    @Test
    void whoTakesMoreThanAreToldApartCountsAsHoldingOneForGood() {
        List<Object> all = new ArrayList<>();
        for (int i = 0; i <= HeldLocks.HELD_MAX; i++) {
            all.add(new Object());
            held.took(all.get(i));
        }
        all.forEach(held::gaveBack);
        assertTrue(held.isAnyHeld());
    }

    @Test
    void theWorkersOfPoolsAreNoLocksOfTheApplication() {
        assertTrue(HeldLocks.isOfPool("java.util.concurrent.ThreadPoolExecutor$Worker"));
        assertTrue(HeldLocks.isOfPool("org.apache.tomcat.util.threads.ThreadPoolExecutor$Worker"));
        assertFalse(HeldLocks.isOfPool("com.shop.Worker"));
        assertFalse(HeldLocks.isOfPool("java.util.concurrent.locks.ReentrantLock$NonfairSync"));
    }

    /** Any order of taking and giving back, and of requests: what it says is what a plain list says. */
    @Test
    void itSaysWhatAPlainListSays() {
        for (long seed = 0; seed < 500; seed++) {
            Random random = new Random(seed);
            HeldLocks held = new HeldLocks();
            List<Object> server = new ArrayList<>();
            List<Object> application = new ArrayList<>();
            boolean isInRequest = false;
            for (int step = 0; step < 200; step++) {
                List<Object> side = isInRequest ? application : server;
                int roll = random.nextInt(10);
                if (roll < 5 && server.size() + application.size() < HeldLocks.HELD_MAX) {
                    side.add(new Object());
                    held.took(side.get(side.size() - 1));
                } else if (roll < 9) {
                    List<Object> from = random.nextBoolean() ? server : application;
                    if (!from.isEmpty()) {
                        held.gaveBack(from.remove(random.nextInt(from.size())));
                    }
                } else if (isInRequest) {
                    held.requestEnds();
                    server.addAll(application);
                    application.clear();
                    isInRequest = false;
                } else {
                    held.requestBegins();
                    isInRequest = true;
                }
                boolean isAny = isInRequest ? !application.isEmpty() : !server.isEmpty();
                assertEquals(isAny, held.isAnyHeld(), "seed " + seed + ", step " + step);
            }
        }
    }
}
