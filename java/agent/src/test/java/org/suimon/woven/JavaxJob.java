package org.suimon.woven;

import java.io.IOException;
import javax.servlet.http.HttpServlet;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;

/** See {@link JakartaJob}. */
public final class JavaxJob extends HttpServlet {
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
