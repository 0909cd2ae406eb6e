package org.suimon.woven;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.AbstractQueuedSynchronizer;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/** Callers that hold a lock of each kind while a woven method works. */
final class Locks {
    /** A lock as the documentation of its superclass shows one. */
    private static final class Mutex extends AbstractQueuedSynchronizer {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean tryAcquire(int one) {
            if (compareAndSetState(0, 1)) {
                setExclusiveOwnerThread(Thread.currentThread());
                return true;
            }
            return false;
        }

        @Override
        protected boolean tryRelease(int one) {
            setExclusiveOwnerThread(null);
            setState(0);
            return true;
        }
    }

    /** A class that works while others may wait for it to be there. */
    private static final class Initialized {
        private static final Work.Took TOOK = work();
    }

    /** What people know to be a transaction. */
    static final class Transaction {
        static Work.Took during() {
            return work();
        }
    }

    private final List<String> said = new ArrayList<>();

    private static Work.Took work() {
        return Work.measure(() -> {
            for (int i = 0; i < 3; i++) {
                Work.walk(30_000);
            }
        });
    }

    /** What was paused while the lock was held, and afterwards. */
    private void say(String how, Work.Took locked) {
        // One that held a monitor is asked again after some points only.
        long after = 0;
        for (int i = 0; i < 500 && after < 100; i++) {
            after = Work.measure(() -> Work.walk(1_000)).pausedMs();
        }
        said.add(how + " " + locked.pausedMs() + " " + after);
    }

    List<String> all() throws Exception {
        Work.Took took;
        Object monitor = new Object();
        synchronized (monitor) {
            took = work();
        }
        say("synchronized", took);
        say("synchronized-method", inMonitor());
        synchronized (monitor) {
            took = further(20);
        }
        say("synchronized-far-out", took);
        say("synchronized-itself", Work.measure(() -> {
            for (int i = 0; i < 3; i++) {
                Work.lockedWalk(30_000);
            }
        }));
        for (boolean isFair : new boolean[] {false, true}) {
            ReentrantLock lock = new ReentrantLock(isFair);
            lock.lock();
            took = work();
            lock.unlock();
            say("reentrant-" + isFair, took);
        }
        ReentrantLock twice = new ReentrantLock();
        twice.lock();
        twice.lock();
        twice.unlock();
        took = work();
        twice.unlock();
        say("reentrant-still-held", took);
        ReentrantLock tried = new ReentrantLock();
        if (!tried.tryLock()) {
            throw new AssertionError("it is free");
        }
        took = work();
        tried.unlock();
        say("try-lock", took);
        ReentrantReadWriteLock readWrite = new ReentrantReadWriteLock();
        readWrite.writeLock().lock();
        took = work();
        readWrite.writeLock().unlock();
        say("write-lock", took);
        Mutex mutex = new Mutex();
        mutex.acquire(1);
        took = work();
        mutex.release(1);
        say("mutex", took);
        say("condition", afterAwait());
        say("never-in", Transaction.during());
        say("class-init", Initialized.TOOK);
        ExecutorService pool = Executors.newFixedThreadPool(1);
        Work.Took pooled = pool.submit(Locks::work).get();
        pool.shutdown();
        said.add("pool " + pooled.pausedMs() + " 0");
        return said;
    }

    private static synchronized Work.Took inMonitor() {
        return work();
    }

    private static Work.Took further(int frames) {
        return frames == 0 ? work() : further(frames - 1);
    }

    /** A lock that was given back and taken again while waiting is held. */
    private static Work.Took afterAwait() throws InterruptedException {
        ReentrantLock lock = new ReentrantLock();
        Condition told = lock.newCondition();
        boolean[] isTold = new boolean[1];
        Thread teller = new Thread(() -> {
            lock.lock();
            isTold[0] = true;
            told.signal();
            lock.unlock();
        });
        lock.lock();
        try {
            teller.start();
            while (!isTold[0]) {
                told.await();
            }
            return work();
        } finally {
            lock.unlock();
            teller.join();
        }
    }

    /**
     * Threads that take and give back locks and monitors by chance, and work. Says the longest pause
     * under a lock, and how many pauses of a tenth of a second were taken under none.
     */
    String random(long seed, int seconds) throws InterruptedException {
        ReentrantLock[] locks = {new ReentrantLock(), new ReentrantLock(true), new ReentrantLock()};
        AtomicLong longest = new AtomicLong();
        AtomicInteger free = new AtomicInteger();
        List<Thread> threads = new ArrayList<>();
        long until = System.nanoTime() + seconds * 1_000_000_000L;
        for (int i = 0; i < 4; i++) {
            Random random = new Random(seed + i);
            threads.add(new Thread(() -> {
                while (System.nanoTime() < until) {
                    int wants = random.nextInt(16);
                    takeAndWork(locks, wants, 0, wants == 0 ? null : longest, free);
                }
            }));
            threads.get(i).start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        return longest.get() + " " + free.get();
    }

    /** Takes those that are wanted, in order, the last one as a monitor. */
    private static void takeAndWork(ReentrantLock[] locks, int wants, int from, AtomicLong longest, AtomicInteger free) {
        if (from == locks.length) {
            if ((wants & 8) != 0) {
                synchronized (locks) {
                    once(longest, free);
                }
            } else {
                once(longest, free);
            }
            return;
        }
        boolean isWanted = (wants & 1 << from) != 0;
        if (isWanted) {
            locks[from].lock();
        }
        try {
            takeAndWork(locks, wants, from + 1, longest, free);
        } finally {
            if (isWanted) {
                locks[from].unlock();
            }
        }
    }

    private static void once(AtomicLong longest, AtomicInteger free) {
        long paused = Work.measure(() -> Work.walk(1_000)).pausedMs();
        if (longest != null) {
            longest.accumulateAndGet(paused, Math::max);
        } else if (paused >= 100) {
            free.incrementAndGet();
        }
    }
}
