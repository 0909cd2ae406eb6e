package org.suimon.woven;

import java.io.IOException;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;

/** A job as a servlet: works, and answers with how long it paused. */
public final class JakartaJob extends HttpServlet {
    private static final long serialVersionUID = 1L;

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
        String how = String.valueOf(request.getParameter("how"));
        if (how.equals("early")) {
            response.flushBuffer();
        }
        response.getWriter().println(Server.job(how));
    }
}
