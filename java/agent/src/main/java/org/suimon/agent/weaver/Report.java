package org.suimon.agent.weaver;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.suimon.agent.runtime.MethodCounts;
import org.suimon.agent.runtime.Session;
import org.suimon.agent.runtime.Verdict;
import org.suimon.agent.runtime.Woven;

/** What the agent tells of itself, by JMX and in words. */
public final class Report implements PausesMXBean {
    private final Session session;
    private final ClassWeaver classes;
    private final Weaver weaver;

    Report(Session session, ClassWeaver classes, Weaver weaver) {
        this.session = session;
        this.classes = classes;
        this.weaver = weaver;
    }

    @Override
    public double getRatio() {
        return session.ratio();
    }

    @Override
    public List<String> getWovenClasses() {
        return weaver.woven();
    }

    @Override
    public List<String> getRemarks() {
        Throwable failure = Woven.failure();
        List<String> all = new ArrayList<>(weaver.remarks());
        if (failure != null) {
            all.add("fault in woven code: " + failure);
        }
        return all;
    }

    @Override
    public List<MethodView> getMethods() {
        return classes.counts().stream().map(this::view).toList();
    }

    private MethodView view(MethodCounts of) {
        long postponed = 0;
        StringBuilder why = new StringBuilder();
        for (Verdict verdict : Verdict.values()) {
            long times = of.postponedFor(verdict);
            if (times > 0) {
                why.append(why.isEmpty() ? "" : " ").append(verdict.word()).append('=').append(times);
                postponed += verdict == Verdict.TOO_SOON ? 0 : times;
            }
        }
        return new MethodView(of, weaver.isFound(of), postponed, why.toString());
    }

    /** Returns all of it in lines. */
    String words() {
        StringBuilder words = new StringBuilder();
        double ratio = session.ratio();
        words.append("ratio ").append(Double.isNaN(ratio) ? "none" : ratio).append('\n');
        for (MethodView method : getMethods()) {
            words.append(String.format(Locale.ROOT,
                    "%s%s: calls %d, job %.3f s, pause %.3f s in %d, forgiven %.3f s, postponed %d%s%n",
                    method.getName(), method.isWoven() ? "" : " (not found yet)", method.getCalls(), method.getJobSeconds(),
                    method.getPauseSeconds(), method.getPauses(), method.getForgivenSeconds(), method.getPostponed(),
                    method.getPostponedWhy().isEmpty() ? "" : " (" + method.getPostponedWhy() + ")"));
            if (method.getAccepts() > 0) {
                words.append(String.format(Locale.ROOT, "  accept %.6f s in %d%n", method.getAcceptSeconds(), method.getAccepts()));
            }
        }
        getRemarks().forEach(remark -> words.append(remark).append('\n'));
        return words.toString().stripTrailing();
    }
}
