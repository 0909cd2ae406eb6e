package org.suimon.shop;

import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpSession;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicLong;

/** The shop's pages, one servlet each. A page first decides whether it may be had, and only then works. */
final class Pages {
    private static final String VISITOR = "visitor";

    private Pages() {
    }

    /** What all pages need. */
    private abstract static class Page extends HttpServlet {
        private static final long serialVersionUID = 1L;

        final void answer(HttpServletResponse response, int status, String title, String body) throws IOException {
            byte[] page = Html.page(title, body).getBytes(StandardCharsets.UTF_8);
            response.setStatus(status);
            response.setContentType("text/html;charset=UTF-8");
            response.setHeader("Cache-Control", "no-store");
            response.setContentLength(page.length);
            response.getOutputStream().write(page);
        }

        /** Returns the visitor; a stranger gets the refusal and the caller null. */
        final Visitor visitor(HttpServletRequest request, HttpServletResponse response) throws IOException {
            HttpSession session = request.getSession(false);
            Visitor visitor = session == null ? null : (Visitor) session.getAttribute(VISITOR);
            if (visitor == null) {
                answer(response, 403, "Please log in", "<p>This page is for visitors who have logged in.</p>\n");
            }
            return visitor;
        }

        /** Returns the parameter; one that is missing or empty is answered with 400 and gives null. */
        final String required(HttpServletRequest request, HttpServletResponse response, String name) throws IOException {
            String value = request.getParameter(name);
            if (value == null || value.isBlank()) {
                answer(response, 400, "Bad request", "<p>The field " + name + " is missing.</p>\n");
                return null;
            }
            return value;
        }
    }

    /** {@code GET /}. */
    static final class Start extends Page {
        private static final long serialVersionUID = 1L;

        @Override
        protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
            answer(response, 200, "The shop", "<form method=\"post\" action=\"/login\"><input name=\"user\">"
                    + "<input name=\"password\" type=\"password\"><button>Log in</button></form>\n");
        }
    }

    /**
     * An answer that mostly waits for others, with {@code ?ms=12000&pages=8&parts=24}: it waits for {@code ms} in all and does the work of so
     * many light pages, in equal parts, each of which is sent as soon as it is there.
     */
    private abstract static class Answer extends Page {
        private static final long serialVersionUID = 1L;
        private static final int MS_MAX = 60_000;
        private static final int PAGES_MAX = 100;
        private static final int PARTS_MAX = 100;
        private final transient Catalogue catalogue;
        private final int lightWork;
        private final String method;

        Answer(Catalogue catalogue, int lightWork, String method) {
            this.catalogue = catalogue;
            this.lightWork = lightWork;
            this.method = method;
        }

        @Override
        protected void service(HttpServletRequest request, HttpServletResponse response) throws IOException {
            if (!method.equals(request.getMethod())) {
                answer(response, 405, "Not allowed", "<p>Only " + method + " is.</p>\n");
                return;
            }
            int ms = number(request, "ms", MS_MAX);
            int pages = number(request, "pages", PAGES_MAX);
            int parts = number(request, "parts", PARTS_MAX);
            if (ms < 0 || pages < 0 || parts < 1) {
                answer(response, 400, "Bad request", "<p>ms goes to " + MS_MAX + ", pages to " + PAGES_MAX + " and parts from 1 to "
                        + PARTS_MAX + ".</p>\n");
                return;
            }
            response.setContentType("text/plain;charset=UTF-8");
            response.setHeader("Cache-Control", "no-store");
            for (int part = 0; part < parts; part++) {
                try {
                    Thread.sleep(ms / parts);
                } catch (InterruptedException closing) {
                    Thread.currentThread().interrupt();
                    return;
                }
                String work = PageWork.table(catalogue.page(1), Math.max(1, pages * lightWork / parts));
                String word = "part " + part + " " + Integer.toHexString(work.hashCode()) + "\n";
                response.getOutputStream().write(word.getBytes(StandardCharsets.UTF_8));
                response.flushBuffer();
            }
        }

        /** Returns the parameter; -1 where it is none, or more than {@code most}. */
        private static int number(HttpServletRequest request, String name, int most) {
            String value = request.getParameter(name);
            if (value == null || !value.matches("[0-9]{1,6}")) {
                return -1;
            }
            int number = Integer.parseInt(value);
            return number <= most ? number : -1;
        }
    }

    /** {@code POST /ask}: see {@link Answer}. */
    static final class Ask extends Answer {
        private static final long serialVersionUID = 1L;

        Ask(Catalogue catalogue, int lightWork) {
            super(catalogue, lightWork, "POST");
        }
    }

    /** {@code GET /slow}: see {@link Answer}. */
    static final class Slow extends Answer {
        private static final long serialVersionUID = 1L;

        Slow(Catalogue catalogue, int lightWork) {
            super(catalogue, lightWork, "GET");
        }
    }

    /** {@code GET /healthz}: costs next to nothing. */
    static final class Health extends Page {
        private static final long serialVersionUID = 1L;

        @Override
        protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
            response.setContentType("text/plain;charset=UTF-8");
            response.getOutputStream().write("ok\n".getBytes(StandardCharsets.UTF_8));
        }
    }

    /** {@code POST /login}: begins a session. */
    static final class Login extends Page {
        private static final long serialVersionUID = 1L;
        private final transient Catalogue catalogue;
        private final int lightWork;

        Login(Catalogue catalogue, int lightWork) {
            this.catalogue = catalogue;
            this.lightWork = lightWork;
        }

        @Override
        protected void doPost(HttpServletRequest request, HttpServletResponse response) throws IOException {
            String user = required(request, response, "user");
            if (user == null || required(request, response, "password") == null) {
                return;
            }
            String table = PageWork.table(catalogue.page(1), lightWork);
            HttpSession old = request.getSession(false);
            if (old != null) {
                // A session somebody else may know the number of must not become this visitor's.
                old.invalidate();
            }
            request.getSession(true).setAttribute(VISITOR, new Visitor(user));
            answer(response, 200, "Welcome, " + user, table);
        }
    }

    /** {@code GET /browse?page=1..3}. */
    static final class Browse extends Page {
        private static final long serialVersionUID = 1L;
        private final transient Catalogue catalogue;
        private final int lightWork;

        Browse(Catalogue catalogue, int lightWork) {
            this.catalogue = catalogue;
            this.lightWork = lightWork;
        }

        @Override
        protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
            if (visitor(request, response) == null) {
                return;
            }
            String page = required(request, response, "page");
            if (page == null) {
                return;
            }
            if (!page.matches("[1-" + Catalogue.PAGES + "]")) {
                answer(response, 404, "No such page", "<p>Catalogue pages go from 1 to " + Catalogue.PAGES + ".</p>\n");
                return;
            }
            answer(response, 200, "Catalogue page " + page, PageWork.table(catalogue.page(Integer.parseInt(page)), lightWork));
        }
    }

    /** {@code GET /search?q=WORD}: the heavy page; the best match goes into the cart. */
    static final class Search extends Page {
        private static final long serialVersionUID = 1L;
        private final transient CatalogueSearch search;
        private final int repeats;

        Search(CatalogueSearch search, int repeats) {
            this.search = search;
            this.repeats = repeats;
        }

        @Override
        protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
            Visitor visitor = visitor(request, response);
            if (visitor == null) {
                return;
            }
            String word = required(request, response, "q");
            if (word == null) {
                return;
            }
            List<CatalogueSearch.Match> matches = search.search(word, repeats);
            String chosen = matches.get(0).id();
            String token = visitor.choose();
            StringBuilder body = new StringBuilder("<ol>\n");
            for (CatalogueSearch.Match match : matches) {
                body.append("<li>").append(Html.escape(match.name())).append(", ").append(match.price())
                        .append(" EUR, ").append(match.matches()).append(" times</li>\n");
            }
            body.append("</ol>\n<p>Item ").append(chosen).append(" is in your cart.</p>\n<form method=\"post\" action=\"/buy\">")
                    .append("<input type=\"hidden\" name=\"item\" value=\"1\">")
                    .append("<input type=\"hidden\" name=\"token\" value=\"").append(token).append("\">")
                    .append("<button>Buy</button></form>\n");
            answer(response, 200, "Results for " + word, body.toString());
        }
    }

    /** {@code POST /buy}: needs a login, an item in the cart and the token of the search that put it there. */
    static final class Buy extends Page {
        private static final long serialVersionUID = 1L;
        private final transient Catalogue catalogue;
        private final int lightWork;
        private final AtomicLong orders = new AtomicLong();

        Buy(Catalogue catalogue, int lightWork) {
            this.catalogue = catalogue;
            this.lightWork = lightWork;
        }

        @Override
        protected void doPost(HttpServletRequest request, HttpServletResponse response) throws IOException {
            Visitor visitor = visitor(request, response);
            if (visitor == null) {
                return;
            }
            String item = request.getParameter("item");
            String token = request.getParameter("token");
            if (refused(response, visitor.refusal(item, token))) {
                return;
            }
            String table = PageWork.table(catalogue.page(1), lightWork);
            // Asked again: the same order may have come twice at once.
            if (refused(response, visitor.buy(item, token))) {
                return;
            }
            answer(response, 200, "Thank you, order " + orders.incrementAndGet(), table);
        }

        private boolean refused(HttpServletResponse response, Optional<Visitor.Refusal> refusal) throws IOException {
            if (refusal.isEmpty()) {
                return false;
            }
            answer(response, refusal.get().status(), refusal.get().reason(), "");
            return true;
        }
    }

    /** {@code POST /logout}: ends the session. */
    static final class Logout extends Page {
        private static final long serialVersionUID = 1L;
        private final transient Catalogue catalogue;
        private final int lightWork;

        Logout(Catalogue catalogue, int lightWork) {
            this.catalogue = catalogue;
            this.lightWork = lightWork;
        }

        @Override
        protected void doPost(HttpServletRequest request, HttpServletResponse response) throws IOException {
            Visitor visitor = visitor(request, response);
            if (visitor == null) {
                return;
            }
            String table = PageWork.table(catalogue.page(1), lightWork);
            request.getSession().invalidate();
            answer(response, 200, "Goodbye, " + visitor.name(), table);
        }
    }
}
