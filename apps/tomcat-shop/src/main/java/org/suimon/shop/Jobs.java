package org.suimon.shop;

import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The two jobs of the papers on degradation schemes, A and B, as one servlet each. They need no
 * login. Their answers say in {@code Server-Timing} how long each segment of the request took; what
 * a segment is, the README says.
 */
final class Jobs {
    private Jobs() {
    }

    /** Returns the Fibonacci number, the slow way that makes it work. */
    static long fibonacci(int n) {
        return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
    }

    /** What both jobs share: the pause, the segments, the answer. */
    private abstract static class Job extends HttpServlet {
        private static final long serialVersionUID = 1L;
        private final boolean hasPieces;

        Job(boolean hasPieces) {
            this.hasPieces = hasPieces;
        }

        /** What a job answers, and how long it stood still inside, in nanoseconds. */
        record Done(String words, long pausedNanos) {
        }

        abstract Done work(Pause pause) throws InterruptedException;

        @Override
        protected final void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
            long started = System.nanoTime();
            Pause pause;
            try {
                pause = Pause.parse(request.getParameter("pause"), request.getParameter("where"), hasPieces);
            } catch (Pause.BadQueryException wrong) {
                answer(response, 400, wrong.getMessage() + "\n");
                return;
            }
            try {
                long paused = pause.before();
                Done done = work(pause);
                paused += done.pausedNanos() + pause.after();
                long job = System.nanoTime() - started - paused;
                response.setHeader("Server-Timing", Segments.of(request, started).told(job, paused));
                answer(response, 200, done.words());
            } catch (InterruptedException closing) {
                Thread.currentThread().interrupt();
                answer(response, 503, "closing\n");
            }
        }

        static void answer(HttpServletResponse response, int status, String words) throws IOException {
            byte[] text = words.getBytes(StandardCharsets.UTF_8);
            response.setStatus(status);
            response.setContentType("text/plain;charset=UTF-8");
            response.setHeader("Cache-Control", "no-store");
            response.setContentLength(text.length);
            response.getOutputStream().write(text);
        }
    }

    /** {@code GET /jobs/light}: job A, a Fibonacci number. */
    static final class Light extends Job {
        private static final long serialVersionUID = 1L;
        private final int number;

        Light(int number) {
            super(false);
            this.number = number;
        }

        @Override
        Done work(Pause pause) {
            return new Done("fibonacci(" + number + ") = " + fibonacci(number) + "\n", 0);
        }
    }

    /**
     * {@code GET /jobs/heavy}: job B, see {@link HeavyJob}. {@code POST /jobs/heavy?times=5}: from now
     * on it is done five times over, as if its data had grown.
     */
    static final class Heavy extends Job {
        /** The most times that a job is done over. */
        static final int TIMES_MAX = 100;

        private static final long serialVersionUID = 1L;
        private final transient HeavyJob job;
        private final AtomicInteger times = new AtomicInteger(1);

        Heavy(HeavyJob job) {
            super(true);
            this.job = job;
        }

        @Override
        Done work(Pause pause) throws InterruptedException {
            HeavyJob.Result result = job.run(pause);
            long paused = result.pausedNanos();
            Pause none = new Pause(0, pause.where());
            for (int time = 1; time < times.get(); time++) {
                paused += job.run(none).pausedNanos();
            }
            String words = Pause.PIECES + " walks of " + result.nodes() + " nodes: " + Long.toHexString(result.checksum()) + "\n";
            return new Done(words, paused);
        }

        @Override
        protected void doPost(HttpServletRequest request, HttpServletResponse response) throws IOException {
            String asked = request.getParameter("times");
            if (asked == null || !asked.matches("[1-9][0-9]{0,2}") || Integer.parseInt(asked) > TIMES_MAX) {
                answer(response, 400, "times=" + asked + ": must be a number from 1 to " + TIMES_MAX + "\n");
                return;
            }
            times.set(Integer.parseInt(asked));
            answer(response, 200, "each job is done " + asked + " times from now on\n");
        }
    }
}
