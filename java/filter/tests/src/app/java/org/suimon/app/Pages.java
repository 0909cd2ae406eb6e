package org.suimon.app;

import jakarta.servlet.AsyncContext;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.WriteListener;
import jakarta.servlet.annotation.WebServlet;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpServletResponseWrapper;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.Locale;
import java.util.Timer;
import java.util.TimerTask;
import java.util.concurrent.atomic.AtomicInteger;

/** Pages that end in every way a page can end. */
@WebServlet(urlPatterns = "/pages/*", asyncSupported = true, loadOnStartup = 1)
public class Pages extends HttpServlet {
    private static final long serialVersionUID = 1;

    private final AtomicInteger atOnce = new AtomicInteger();
    private final AtomicInteger mostAtOnce = new AtomicInteger();
    private transient Timer timer;

    @Override
    public void init() {
        timer = new Timer(true);
    }

    @Override
    public void destroy() {
        timer.cancel();
    }

    @Override
    protected void service(HttpServletRequest request, HttpServletResponse response)
            throws ServletException, IOException {
        switch (request.getPathInfo()) {
            case "/ok" -> say(response, "ok");
            case "/seen" -> say(response, request.getDispatcherType() + " waiting=" + request.getHeader("suimon-waiting")
                    + " held=" + request.getHeader("Suimon-Held") + " pause=" + request.getHeader("Suimon-Pause") + " witness=" + request.getAttribute("witness"));
            case "/header" -> say(response, request.getDispatcherType() + " " + request.getHeader(request.getParameter("name")));
            case "/echo/.well-known/suimon/position" ->
                say(response, new String(request.getInputStream().readAllBytes(), StandardCharsets.UTF_8));
            case "/names" -> say(response, String.join(" ", Collections.list(request.getHeaderNames()).stream()
                    .filter(name -> name.toLowerCase(Locale.ROOT).startsWith("suimon") && request.getHeader(name) != null).toList()));
            case "/dates" -> say(response, "held=" + request.getDateHeader("Suimon-Held"));
            case "/paused" -> {
                // As if one second of it had been a pause.
                sleep(1500);
                switch (request.getParameter("said")) {
                    case "set" -> response.setIntHeader("Suimon-Paused", 1);
                    case "add" -> response.addIntHeader("Suimon-Paused", 1);
                    case "reset" -> {
                        response.setHeader("Suimon-Paused", "1");
                        response.reset();
                    }
                    default -> throw new IllegalArgumentException();
                }
                response.setDateHeader("Suimon-Date", 0);
                response.addDateHeader("Suimon-Date", 0);
                say(response, "paused");
            }
            case "/wrap/dispatch" -> {
                if (request.getParameter("session") != null) {
                    response.setHeader("Suimon-Session", request.getParameter("session"));
                }
                String page = "/pages/header?name=" + request.getParameter("name");
                later(request.startAsync(request, response), 1, context -> context.dispatch(page));
            }
            case "/slow", "/work" -> {
                sleep(number(request, "ms"));
                say(response, "slow");
            }
            case "/alone" -> {
                int now = atOnce.incrementAndGet();
                mostAtOnce.accumulateAndGet(now, Math::max);
                sleep(number(request, "ms"));
                atOnce.decrementAndGet();
                say(response, "at most " + mostAtOnce);
            }
            case "/exception" -> throw new ServletException("as wanted");
            case "/unchecked" -> throw new IllegalArgumentException("as wanted");
            case "/parameter" -> say(response, "a=" + request.getParameter("a"));
            case "/error-page" -> say(response, request.getParameter("of") + " for " + response.getStatus() + " "
                    + request.getAttribute("jakarta.servlet.error.exception_type"));
            case "/late-exception" -> {
                response.getWriter().write("x".repeat(20_000));
                throw new IllegalStateException("as wanted");
            }
            case "/broken" -> {
                say(response, "half a page");
                response.flushBuffer();
                throw new IllegalStateException("as wanted");
            }
            case "/body" -> {
                response.flushBuffer();
                request.getInputStream().readAllBytes();
            }
            case "/error" -> response.sendError(number(request, "status"), "as wanted");
            case "/status" -> response.setStatus(number(request, "status"));
            case "/redirect" -> response.sendRedirect(request.getContextPath() + "/pages/ok");
            case "/redirect-by" -> {
                // Servlet 6.1 has more ways than the API that this is compiled with, perhaps.
                boolean isStatus = request.getParameter("how").equals("status");
                try {
                    HttpServletResponse.class.getMethod("sendRedirect", String.class, isStatus ? int.class : boolean.class)
                            .invoke(response, request.getContextPath() + "/pages/ok", isStatus ? (Object) 303 : (Object) true);
                } catch (ReflectiveOperationException older) {
                    response.sendRedirect(request.getContextPath() + "/pages/ok");
                }
            }
            case "/forward" -> {
                String to = request.getParameter("to");
                request.getRequestDispatcher(to == null ? "/pages/ok" : to).forward(request, response);
            }
            case "/forward-captured" -> {
                // Only what is inside has gone out when the forward returns, where the container lets it.
                request.getRequestDispatcher("/pages/ok").forward(request, new HttpServletResponseWrapper(response) {
                    @Override
                    public PrintWriter getWriter() {
                        return new PrintWriter(new StringWriter());
                    }
                });
                response.setStatus(201);
            }
            case "/forward-by-name" ->
                getServletContext().getNamedDispatcher(SyncPages.class.getName()).forward(request, response);
            case "/length" -> length(request.getParameter("how"), response);
            case "/cookie-late" -> {
                response.getOutputStream().write(new byte[response.getBufferSize()]);
                response.setHeader("Set-Cookie", "own=1");
            }
            case "/private-anew" -> {
                response.setHeader("Cache-Control", "no-store");
                response.getOutputStream().write(new byte[response.getBufferSize()]);
                response.reset();
                response.setHeader("Cache-Control", "public, max-age=60");
                say(response, "anew");
            }
            case "/framed" -> {
                response.setHeader("X-Frame-Options", "SAMEORIGIN");
                say(response, "framed");
            }
            case "/lost" -> {
                response.setHeader("Cache-Control", "public, max-age=60");
                response.setHeader("CDN-Cache-Control", "max-age=60");
                say(response, "lost");
            }
            case "/begun-anew" -> {
                // A buffer that is just full has not gone out.
                response.getOutputStream().write(new byte[response.getBufferSize()]);
                response.reset();
                response.setHeader("Cache-Control", "public, max-age=60");
                response.setHeader("CDN-Cache-Control", "max-age=60");
                say(response, "anew");
            }
            case "/include" -> {
                say(response, "before ");
                request.getRequestDispatcher("/sync/page").include(request, response);
            }
            case "/include-error" -> {
                say(response, "before");
                request.getRequestDispatcher("/sync/error?status=404").include(request, response);
                say(response, " and after");
            }
            case "/big" -> {
                byte[] piece = new byte[1000];
                for (int left = number(request, "kb"); left > 0; left--) {
                    response.getOutputStream().write(piece);
                }
            }
            case "/big-text" -> {
                String piece = "x".repeat(1000);
                for (int left = number(request, "kb"); left > 0; left--) {
                    response.getWriter().write(piece);
                }
                response.getWriter().flush();
            }
            case "/signal" -> {
                response.setHeader("Suimon-Session", request.getParameter("session"));
                response.setHeader("CDN-Cache-Control", "max-age=60");
                response.setHeader("Cache-Control", "public, max-age=60");
                say(response, "signal");
            }
            case "/odd-head" -> {
                response.setHeader("Suimon-Session", "checkout");
                response.addHeader("Set-Cookie", "odd=\u0001");
                for (int left = number(request, "cookies"); left > 0; left--) {
                    response.addHeader("Set-Cookie", "c" + left + "=x");
                }
                say(response, "odd");
            }
            case "/login" -> {
                request.getSession(true);
                say(response, "in");
            }
            case "/late-login" -> {
                // 8,000 bytes of text in a buffer of 8,192: the head has not gone out.
                response.setContentType("text/plain;charset=UTF-8");
                response.getWriter().write("\u00E9".repeat(4000));
                request.getSession(true);
            }
            case "/user" -> say(response, request.getSession(false) == null ? "nobody" : "somebody");
            case "/logout" -> {
                if (request.getSession(false) != null) {
                    request.getSession(false).invalidate();
                }
                response.sendRedirect(request.getContextPath() + "/pages/ok");
            }
            case "/stream" -> stream(request, response);
            case "/async" -> later(request.startAsync(), number(request, "ms"), context -> {
                say((HttpServletResponse) context.getResponse(), "later");
                context.complete();
            });
            case "/async-silent" -> later(request.startAsync(), number(request, "ms"), AsyncContext::complete);
            case "/async-big" -> later(request.startAsync(request, response), number(request, "ms"), context -> {
                context.getResponse().getWriter().write("x".repeat(20_000));
                context.complete();
            });
            case "/async-login" -> {
                request.getSession(true);
                later(request.startAsync(), 1, AsyncContext::complete);
            }
            case "/async-dispatch" -> {
                if (request.getAttribute("dispatched") == null) {
                    request.setAttribute("dispatched", true);
                    later(request.startAsync(), number(request, "ms"), AsyncContext::dispatch);
                } else {
                    say(response, "dispatched " + request.getDispatcherType());
                }
            }
            case "/async-again" -> {
                int round = request.getAttribute("round") instanceof Integer before ? before + 1 : 1;
                request.setAttribute("round", round);
                if (round < 3) {
                    later(request.startAsync(), 1, AsyncContext::dispatch);
                } else {
                    say(response, "round " + round);
                }
            }
            case "/forward-async" -> {
                if (request.getAttribute("result") == null) {
                    request.getRequestDispatcher("/pages/async-result").forward(request, response);
                } else {
                    say(response, (String) request.getAttribute("result"));
                }
            }
            case "/async-result" -> {
                // Its forward has begun this, so it is where a dispatch goes to.
                if (request.getAttribute("result") == null) {
                    request.setAttribute("result", "found");
                    later(request.startAsync(), 1, AsyncContext::dispatch);
                } else {
                    say(response, "not where it arrived");
                }
            }
            case "/async-rounds" -> {
                int round = request.getAttribute("round") instanceof Integer before ? before + 1 : 1;
                request.setAttribute("round", round);
                if (round < number(request, "rounds")) {
                    later(request.startAsync(), 0, AsyncContext::dispatch);
                } else {
                    getServletContext().setAttribute("waits", request.startAsync());
                }
            }
            case "/async-go-on" -> {
                say(response, "gone on");
                ((AsyncContext) getServletContext().getAttribute("waits")).complete();
            }
            case "/async-waits" -> say(response, String.valueOf(getServletContext().getAttribute("waits") != null));
            case "/async-twice" -> {
                if (request.getAttribute("dispatched") == null) {
                    request.setAttribute("dispatched", true);
                    AsyncContext context = request.startAsync();
                    context.dispatch();
                    refused(context::dispatch);
                    refused(context::complete);
                } else {
                    say(response, "once");
                }
            }
            case "/async-other" -> request.startAsync().dispatch("/pages/ok");
            case "/async-exception" -> {
                request.startAsync();
                throw new ServletException("as wanted");
            }
            case "/async-broken" -> {
                request.startAsync();
                response.getOutputStream().setWriteListener(new Breaking(response.getOutputStream()));
            }
            case "/async-timeout" -> request.startAsync().setTimeout(number(request, "ms"));
            case "/async-thread" -> {
                AsyncContext context = request.startAsync();
                context.start(() -> {
                    try {
                        say((HttpServletResponse) context.getResponse(), "thread");
                    } catch (IOException gone) {
                        // The client has left.
                    }
                    context.complete();
                });
            }
            default -> response.sendError(404);
        }
    }

    /** Writes half a page, and breaks. */
    private record Breaking(ServletOutputStream out) implements WriteListener {
        @Override
        public void onWritePossible() throws IOException {
            out.print("half a page");
            out.flush();
            throw new IllegalStateException("as wanted");
        }

        @Override
        public void onError(Throwable failure) {}
    }

    /** What is done later. */
    private interface Later {
        void carryOut(AsyncContext context) throws IOException;
    }

    private void later(AsyncContext context, int ms, Later later) {
        timer.schedule(new TimerTask() {
            @Override
            public void run() {
                try {
                    later.carryOut(context);
                } catch (IOException | RuntimeException gone) {
                    // The client has left, or the container has ended the request: Tomcat's own writer throws whatever
                    // it comes upon then. Thrown on, it would end the timer, and every later request with it.
                }
            }
        }, ms);
    }

    /** Sends an event, and goes on until its client asks for the end. */
    private void stream(HttpServletRequest request, HttpServletResponse response) throws IOException {
        response.setContentType("text/event-stream");
        response.getWriter().write("data: one\n\n");
        response.flushBuffer();
        sleep(number(request, "ms"));
        response.getWriter().write("data: two\n\n");
    }

    /** Writes a page that is complete for its container as soon as it has its length. */
    private static void length(String how, HttpServletResponse response) throws IOException {
        String name = "Content-Length";
        switch (how) {
            case "set" -> response.setHeader(name, "4");
            case "add" -> response.addHeader(name, "4");
            case "set-int" -> response.setIntHeader(name, 4);
            case "add-int" -> response.addIntHeader(name, 4);
            default -> { }
        }
        say(response, "long");
        switch (how) {
            case "after" -> response.setContentLength(4);
            case "after-long" -> response.setContentLengthLong(4);
            case "after-set" -> response.setHeader(name, "4");
            default -> { }
        }
    }

    /** Does what the container has to refuse. */
    private static void refused(Runnable call) {
        try {
            call.run();
        } catch (IllegalStateException as) {
            return;
        }
        throw new AssertionError("it was let through");
    }

    private static void say(HttpServletResponse response, String text) throws IOException {
        response.getWriter().write(text);
    }

    private static int number(HttpServletRequest request, String name) {
        return Integer.parseInt(request.getParameter(name));
    }

    private static void sleep(int ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }
}
