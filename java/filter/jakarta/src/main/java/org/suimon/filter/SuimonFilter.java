package org.suimon.filter;

import jakarta.servlet.AsyncContext;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.FilterConfig;
import jakarta.servlet.ServletContext;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.UnavailableException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;

/**
 * Suimon inside a web application: lets in as many requests as the application can serve, holds or refuses the
 * others, and keeps those who wait in line. Settings are those of {@code suimon.toml}, as a file or as
 * parameters of the filter; see docs/java-filter.md.
 *
 * <p>A request is at the gate once, when it arrives. Forwards, includes, error pages and dispatches of an
 * asynchronous application belong to it. Where the container itself forwards or answers a request before any filter,
 * what arrives is the page that it takes for that: a log-in, or an error page.
 *
 * <p>A class of the application may extend it, to be annotated.
 */
public class SuimonFilter implements Filter {
    private static final String PERMIT = "org.suimon.filter.permit";
    private static final int RETRY_GONE_S = 2;
    /**
     * A parked request has no time-out. Not 0: Tomcat reads that as "until the application stops", and once a second while
     * it stops it fires a time-out for each such request, even one that was dispatched before. A late one makes it lose the
     * next asynchronous request of that connection.
     */
    private static final long NEVER_MS = Long.MAX_VALUE;
    /** What servers write into their logs where the client has left before there was a status. */
    private static final int CLIENT_CLOSED_REQUEST = 499;
    /** What Tomcat throws where a body is read or an answer written, and the client is not there any more. */
    private static final String CLIENT_GONE = "org.apache.catalina.connector.ClientAbortException";
    /** What Tomcat 11 throws where a request's parameters cannot be read. */
    private static final String BAD_PARAMETER = "org.apache.tomcat.util.http.InvalidParameterException";

    /** Tomcat 10.1 has Servlet 6.0, and 11 has 6.1. */
    private static final int SERVLET_OF_TOMCAT_10 = 6;

    private final AtomicBoolean hasWarned = new AtomicBoolean();
    private ServletContext context;
    /** The attribute of a request that is its permit. An application may forward to another one, which has its own gate. */
    private String attribute;
    private Server server;
    private Management management;
    private String sessionCookie;
    /** Whether a request that waits can be begun anew; see {@link ResumedRequest}. */
    private boolean isTomcat;
    /** Whether the container takes no more of an answer once a forward has returned, whatever stands around it. */
    private boolean forwardsEndAnswers;
    /** Whether the container tells the end of a request, which is after its error page; see {@link RequestEnd}. */
    private boolean tellsEnds;
    /** Whether error pages come through this filter, as one has. */
    private volatile boolean seesErrorPages;
    private Deployment deployment;

    /** Is called by the container. */
    public SuimonFilter() {}

    @Override
    public void init(FilterConfig config) throws ServletException {
        context = config.getServletContext();
        attribute = PERMIT + ":" + context.getContextPath();
        // What the server calls itself is often changed, so that strangers do not know it.
        isTomcat = context.getClass().getName().startsWith("org.apache.catalina.");
        // Earlier ones close its writer, which the guard sees.
        int major = context.getMajorVersion();
        forwardsEndAnswers = isTomcat
                && (major > SERVLET_OF_TOMCAT_10 || major == SERVLET_OF_TOMCAT_10 && context.getMinorVersion() > 0);
        tellsEnds = hearsEnds();
        String named = context.getSessionCookieConfig().getName();
        sessionCookie = named == null ? "JSESSIONID" : named;
        deployment = Deployment.of(context);
        BooleanSupplier isEnding = deployment::isEnding;
        try {
            server = Server.open(NativeFiles.open(), Settings.of(config).toml(),
                    RequestHead.path(context.getContextPath()), isEnding, this::log);
        } catch (IllegalArgumentException | IOException | UnsatisfiedLinkError fault) {
            throw new ServletException("suimon: " + fault.getMessage(), fault);
        }
        try {
            management = Management.register(context, server);
        } catch (RuntimeException | Error failure) {
            // Nobody destroys a filter that has not begun.
            server.close();
            throw failure;
        }
        String admin = server.admin();
        if (!admin.isEmpty()) {
            context.log("suimon: http://" + admin + "/ shows what it does");
        }
    }

    /** Asks to be told the ends of requests. Tomcat takes a listener for that until the application has started. */
    private boolean hearsEnds() {
        try {
            context.addListener(new RequestEnd(attribute));
            return true;
        } catch (IllegalStateException | IllegalArgumentException | UnsupportedOperationException no) {
            return false;
        }
    }

    private void log(String message, Throwable why) {
        if (why == null) {
            context.log(message);
        } else {
            context.log(message, why);
        }
    }

    @Override
    public void destroy() {
        if (management != null) {
            management.unregister();
        }
        if (server != null) {
            server.close();
        }
    }

    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        if (!(request instanceof HttpServletRequest asked) || !(response instanceof HttpServletResponse answer)) {
            chain.doFilter(request, response);
        } else if (!(request.getAttribute(attribute) instanceof Permit permit)) {
            arrive(asked, answer, chain);
        } else if (isPart(request.getDispatcherType()) && GuardedRequest.within(request, permit) != null) {
            called(permit, asked, answer, chain);
        } else {
            again(permit, asked, answer, chain);
        }
    }

    /** A request that is at the gate for the first time. */
    private void arrive(HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        RequestHead head = new RequestHead(request, sessionCookie);
        Server.Entry entry = server.enter(head, request.getRemoteAddr(), request.isSecure());
        request.setAttribute(attribute, entry.permit());
        if (entry.result() == NativeLibrary.INVALID) {
            // No error page: it would be the application's.
            response.setStatus(HttpServletResponse.SC_BAD_REQUEST);
        } else if (entry.decision() == null) {
            hold(entry.permit(), request, response, chain);
        } else {
            decided(entry.permit(), entry.decision(), request, response, chain);
        }
    }

    private static boolean isPart(DispatcherType type) {
        return type == DispatcherType.FORWARD || type == DispatcherType.INCLUDE;
    }

    /** A part of a request that is at work: what it forwards to, or includes. */
    private void called(Permit permit, HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        chain.doFilter(request, response);
        GuardedResponse guarded = GuardedResponse.within(response, permit);
        if (forwardsEndAnswers && request.getDispatcherType() == DispatcherType.FORWARD
                && guarded != null && !request.isAsyncStarted()) {
            guarded.conclude(response.getStatus());
        }
    }

    /** A request that was here before: it has waited, or was dispatched by the application or to an error page. */
    private void again(Permit permit, HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        Decision decision = permit.takeResumed();
        if (decision != null && decision.isAdmitted()
                && (permit.isForgotten() || permit.isOver() || !ResumedRequest.isWhereItArrived(request))) {
            // Its container has let it wait for too long, or would answer it with another page.
            permit.end();
            sayGone(response);
            return;
        }
        if (decision != null) {
            resumed(permit, decision, request, response, chain);
            return;
        }
        // One that still waits was ended by its container: this is its error page, and the gate hears nothing of it.
        boolean isErrorPage = request.getDispatcherType() == DispatcherType.ERROR;
        if (isErrorPage && !seesErrorPages) {
            seesErrorPages = true;
        }
        if (isErrorPage && permit.awaitsErrorPage()) {
            permit.errorPageBegins();
        }
        GuardedResponse guarded = call(permit, request, response, chain);
        if (!request.isAsyncStarted()) {
            guarded.conclude(guarded.getStatus());
            if (isErrorPage && permit.awaitsErrorPage()) {
                permit.end();
            }
        }
    }

    /**
     * A request that has waited. What it throws unchecked Tomcat would wrap, as after any dispatch, and not know again: it
     * looks for the error page, and for a status of its own, by what a servlet exception is about.
     */
    private void resumed(
            Permit permit, Decision decision, HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        try {
            decided(permit, decision, request, response, chain);
        } catch (RuntimeException failure) {
            throw new ServletException(failure);
        }
    }

    /** Lets a request wait without a thread, where that can be done. */
    private void hold(Permit permit, HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        permit.waitsBy(new Connection(
                request.getLocalAddr(), request.getLocalPort(), request.getRemoteAddr(), request.getRemotePort()));
        // Of what the container answers itself a second beginning would be another answer of its own.
        boolean canBeginAnew = request.getDispatcherType() == DispatcherType.REQUEST;
        if (isTomcat && canBeginAnew && request.isAsyncSupported() && !request.isAsyncStarted()) {
            park(permit, request, response);
            return;
        }
        if (canBeginAnew && hasWarned.compareAndSet(false, true)) {
            String why = isTomcat
                    ? "the filter, or a filter or Valve before it, is not declared async-supported, or has begun to be asynchronous"
                    : "this is not Tomcat";
            context.log("suimon: requests that wait keep their threads, as " + why);
        }
        try {
            decided(permit, permit.await(), request, response, chain);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            permit.leave();
            permit.end();
            sayGone(response);
        }
    }

    private static void park(Permit permit, HttpServletRequest request, HttpServletResponse response) {
        try {
            AsyncContext waits = request.startAsync(new ResumedRequest(request, permit), response);
            waits.setTimeout(NEVER_MS);
            waits.addListener(AsyncEnd.ofParked(permit));
            permit.park(waits);
        } catch (RuntimeException | Error failure) {
            // Nobody else would end it.
            permit.leave();
            permit.end();
            throw failure;
        }
    }

    private void decided(
            Permit permit, Decision decision, HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        if (decision.isAdmitted()) {
            work(permit, request, response, chain);
            return;
        }
        permit.end();
        if (decision.bytes() == null) {
            sayNothing(decision, response);
        } else {
            new WholeAnswer(decision.bytes()).write(response);
        }
    }

    /** Lets the application work on a request, and ends its permit unless the application goes on elsewhere. */
    private void work(Permit permit, HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        GuardedResponse guarded = call(permit, request, response, chain);
        if (permit.isAsynchronous() && request.isAsyncStarted()) {
            permit.goOn();
        } else {
            try {
                guarded.conclude(guarded.getStatus());
            } finally {
                if (guarded.hasSentError() && hearsOfErrorPage(permit, request)
                        && deployment.hasErrorPage(guarded.getStatus(), permit.parked() == null)) {
                    permit.endAfterErrorPage(false);
                } else {
                    permit.end();
                }
            }
        }
    }

    /**
     * Returns whether an error page can follow, and its end is heard. It is work of the same request: whoever asks for many
     * pages that are not there would have as many error pages made at once as there are threads.
     */
    private boolean hearsOfErrorPage(Permit permit, HttpServletRequest request) {
        // One that is asynchronous may have been taken back by its container, and must not be asked any more. Of what was
        // forwarded here from another application Tomcat tells that one the end.
        return !permit.isAsynchronous() && !permit.hasLeft() && !server.isEnding()
                && (permit.parked() == null ? tellsEnds : seesErrorPages)
                && request.getDispatcherType() == DispatcherType.REQUEST && !request.isAsyncStarted();
    }

    /**
     * Calls the application, and returns the guard of its answer. If it throws, the permit ends: containers do not
     * always tell the end of what fails here.
     *
     * <p>Of each permit one guard stands around the request and one around the response. What the application has laid
     * around them, and dispatches, is its own and stays there.
     */
    private GuardedResponse call(
            Permit permit, HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        GuardedRequest around = GuardedRequest.within(request, permit);
        GuardedResponse guarded = GuardedResponse.within(response, permit);
        HttpServletRequest asked = request;
        HttpServletResponse answer = response;
        if (around == null) {
            around = new GuardedRequest(request, permit);
            asked = around;
        }
        if (guarded == null) {
            guarded = new GuardedResponse(response, around, permit, sessionCookie);
            answer = guarded;
        }
        around.answeredBy(guarded);
        try {
            chain.doFilter(asked, answer);
        } catch (Throwable failure) {
            if (failure.getClass().getName().equals(CLIENT_GONE)) {
                permit.leave();
            }
            fail(permit, guarded, failure, request, response);
            throw failure;
        }
        return guarded;
    }

    private void fail(
            Permit permit, GuardedResponse guarded, Throwable failure, HttpServletRequest request,
            HttpServletResponse response) {
        int status = statusOf(failure);
        boolean hasFailed = status >= HttpServletResponse.SC_INTERNAL_SERVER_ERROR;
        try {
            if (!permit.hasLeft()) {
                guarded.conclude(status);
            }
        } finally {
            if (!permit.awaitsErrorPage() && hearsOfErrorPage(permit, request) && !response.isCommitted()
                    && deployment.hasErrorPage(failure, status, permit.parked() == null)) {
                permit.endAfterErrorPage(hasFailed);
            } else if (hasFailed) {
                permit.fail();
            } else {
                permit.end();
            }
        }
    }

    /** Returns the status with which Tomcat answers what was thrown. */
    private static int statusOf(Throwable failure) {
        if (failure instanceof UnavailableException unavailable) {
            return unavailable.isPermanent()
                    ? HttpServletResponse.SC_NOT_FOUND : HttpServletResponse.SC_SERVICE_UNAVAILABLE;
        }
        Throwable cause = failure.getCause();
        boolean isOfRequest = BAD_PARAMETER.equals(failure.getClass().getName())
                || cause != null && BAD_PARAMETER.equals(cause.getClass().getName());
        return isOfRequest ? HttpServletResponse.SC_BAD_REQUEST : HttpServletResponse.SC_INTERNAL_SERVER_ERROR;
    }

    /** Answers where the gate has no answer. */
    static void sayNothing(Decision why, HttpServletResponse response) {
        if (why.isOfLeft()) {
            // For the access log alone.
            response.setStatus(CLIENT_CLOSED_REQUEST);
        } else {
            sayGone(response);
        }
    }

    /** Answers while the application is undeployed. No error page: it would be the application's. */
    static void sayGone(HttpServletResponse response) {
        response.setStatus(HttpServletResponse.SC_SERVICE_UNAVAILABLE);
        response.setIntHeader("Retry-After", RETRY_GONE_S);
    }
}
