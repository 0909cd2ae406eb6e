<%@ page contentType="text/plain; charset=UTF-8" session="true" import="java.util.concurrent.Semaphore" %><%!
    // Four at once, 20 ms each; all others wait.
    static final Semaphore PLACES = new Semaphore(4);
%><%
    String path = request.getServletPath();
    if (path.equals("/whoami")) {
        out.print(request.getRemoteAddr() + " " + request.getScheme() + " " + request.getServerName());
        return;
    }
    long bytes = 0;
    byte[] piece = new byte[8192];
    for (int read; (read = request.getInputStream().read(piece)) >= 0; ) bytes += read;
    PLACES.acquire();
    try { Thread.sleep(20); } finally { PLACES.release(); }
    session.setAttribute("seen", path);
    out.print("Welcome " + bytes);
%>
