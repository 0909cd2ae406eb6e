package org.suimon.app;

import jakarta.servlet.annotation.WebServlet;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;

/** A page that is not declared fit for asynchronous requests, as most are not. */
@WebServlet({"/sync/*", "/Kelvin/*"})
public class SyncPages extends HttpServlet {
    private static final long serialVersionUID = 1;

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
        if (request.getParameter("ms") != null) {
            try {
                Thread.sleep(Integer.parseInt(request.getParameter("ms")));
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
            }
        }
        if (request.getParameter("status") != null) {
            response.sendError(Integer.parseInt(request.getParameter("status")));
            return;
        }
        response.setContentType("text/plain;charset=UTF-8");
        response.getWriter().write(request.getDispatcherType() + " " + request.getPathInfo() + " "
                + request.getParameter("q") + " held=" + request.getHeader("suimon-held") + " witness=" + request.getAttribute("witness"));
        if (request.getParameter("uri") != null) {
            response.getWriter().write(" uri=" + request.getRequestURI() + " url=" + request.getRequestURL()
                    + " context=" + request.getContextPath());
        }
    }
}
