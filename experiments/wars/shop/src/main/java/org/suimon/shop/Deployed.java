package org.suimon.shop;

import jakarta.servlet.DispatcherType;
import jakarta.servlet.FilterRegistration;
import jakarta.servlet.Servlet;
import jakarta.servlet.ServletContext;
import jakarta.servlet.ServletContextEvent;
import jakarta.servlet.ServletContextListener;
import jakarta.servlet.ServletRegistration;
import jakarta.servlet.annotation.WebListener;
import java.util.EnumSet;

/** The shop's pages in a Tomcat that others have set up, with the same work for all of them. */
@WebListener
public final class Deployed implements ServletContextListener {
    /** What took 7.5 ms and 100 ms of a processor where it was counted, on Java 17: a quarter of the paper's pages. */
    private static final String[] WORK = {"--light-work", "2607", "--search-repeats", "26"};

    @Override
    public void contextInitialized(ServletContextEvent event) {
        Options options;
        try {
            options = Options.parse(WORK);
        } catch (Options.UsageException impossible) {
            throw new IllegalStateException(impossible);
        }
        Catalogue catalogue = Catalogue.generate(options.seed(), options.catalogueSize());
        CatalogueSearch search = new CatalogueSearch(catalogue.xml(), options.searchHeld());
        Work work = Work.prepare(options, catalogue, search);

        ServletContext context = event.getServletContext();
        FilterRegistration.Dynamic guard = context.addFilter("out-of-memory", new OutOfMemoryFilter());
        guard.setAsyncSupported(true);
        guard.addMappingForUrlPatterns(EnumSet.of(DispatcherType.REQUEST, DispatcherType.ERROR), true, "/*");
        add(context, "", new Pages.Start());
        add(context, "/login", new Pages.Login(catalogue, work.lightWork()));
        add(context, "/browse", new Pages.Browse(catalogue, work.lightWork()));
        add(context, "/search", new Pages.Search(search, work.searchRepeats()));
        add(context, "/buy", new Pages.Buy(catalogue, work.lightWork()));
        add(context, "/logout", new Pages.Logout(catalogue, work.lightWork()));
    }

    private static void add(ServletContext context, String path, Servlet page) {
        ServletRegistration.Dynamic servlet = context.addServlet(page.getClass().getSimpleName(), page);
        servlet.setAsyncSupported(true);
        servlet.addMapping(path);
    }
}
