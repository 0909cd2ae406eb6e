package org.suimon.shop;

import jakarta.servlet.DispatcherType;
import jakarta.servlet.Servlet;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.stream.Stream;
import org.apache.catalina.Context;
import org.apache.catalina.LifecycleException;
import org.apache.catalina.LifecycleState;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.core.StandardContext;
import org.apache.catalina.session.StandardManager;
import org.apache.catalina.startup.Tomcat;
import org.apache.coyote.http11.Http11NioProtocol;
import org.apache.tomcat.util.descriptor.web.FilterDef;
import org.apache.tomcat.util.descriptor.web.FilterMap;

/** The running shop: an embedded Tomcat with our pages in it, on loopback only. */
final class Shop implements AutoCloseable {
    private static final long RESTART_PAUSE_MS = 200;
    private static final int WARM_UP_HEAVY_JOBS = 4;
    private static final int WARM_UP_LIGHT_JOBS = 400;

    private final Tomcat tomcat;
    private final Path folder;
    private final Work work;
    private final int catalogueBytes;

    private Shop(Tomcat tomcat, Path folder, Work work, int catalogueBytes) {
        this.tomcat = tomcat;
        this.folder = folder;
        this.work = work;
        this.catalogueBytes = catalogueBytes;
    }

    /** Prepares the work and returns the shop, ready for visitors. Throws if the port cannot be had. */
    static Shop open(Options options) throws IOException, LifecycleException {
        Catalogue catalogue = Catalogue.generate(options.seed(), options.catalogueSize());
        CatalogueSearch search = new CatalogueSearch(catalogue.xml(), options.searchHeld());
        Work work = Work.prepare(options, catalogue, search);
        Path folder = Files.createTempDirectory("tomcat-shop");
        HeavyJob heavy = heavyJob(options, folder);

        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(folder.toString());
        tomcat.setConnector(connector(options));
        StandardContext context = (StandardContext) tomcat.addContext("", folder.toFile().getAbsolutePath());
        // Redeployment is not our life; and the search for its leaks warns about flags nobody set.
        context.setClearReferencesRmiTargets(false);
        context.setClearReferencesThreadLocals(false);
        StandardManager sessions = new StandardManager();
        // Sessions end with the process.
        sessions.setPathname(null);
        context.setManager(sessions);
        if (!options.filter().isEmpty()) {
            FilterDef first = new FilterDef();
            first.setFilterClass(options.filter());
            add(context, "first", first);
        }
        FilterDef guard = new FilterDef();
        guard.setFilter(new OutOfMemoryFilter());
        add(context, "out-of-memory", guard);
        context.getPipeline().addValve(new AcceptedEndpoint.Valve());
        add(context, "", new Pages.Start());
        add(context, "/healthz", new Pages.Health());
        add(context, "/login", new Pages.Login(catalogue, work.lightWork()));
        add(context, "/browse", new Pages.Browse(catalogue, work.lightWork()));
        add(context, "/search", new Pages.Search(search, work.searchRepeats()));
        add(context, "/buy", new Pages.Buy(catalogue, work.lightWork()));
        add(context, "/ask", new Pages.Ask(catalogue, work.lightWork()));
        add(context, "/slow", new Pages.Slow(catalogue, work.lightWork()));
        add(context, "/jobs/light", new Jobs.Light(options.fibonacci()));
        add(context, "/jobs/heavy", new Jobs.Heavy(heavy));
        add(context, "/logout", new Pages.Logout(catalogue, work.lightWork()));

        Shop shop = new Shop(tomcat, folder, work, catalogue.xml().length);
        try {
            tomcat.start();
            if (tomcat.getConnector().getState() != LifecycleState.STARTED) {
                throw new IOException("the port may be in use");
            }
            if (context.getState() != LifecycleState.STARTED) {
                throw new IOException("the application did not start; its log says why");
            }
        } catch (IOException | LifecycleException failure) {
            shop.close();
            throw failure;
        }
        return shop;
    }

    int port() {
        return tomcat.getConnector().getLocalPort();
    }

    Work work() {
        return work;
    }

    /** Returns the size of the XML a search parses, in bytes. */
    int catalogueBytes() {
        return catalogueBytes;
    }

    /**
     * Keeps the shop open for good. An exhausted heap may hit one of the two threads that take connections in; Tomcat
     * then lives on without hearing anybody. Such a thread's end is said aloud and both are started anew.
     */
    void serve() throws InterruptedException {
        // A class that first fails to initialise for want of memory stays broken; these are needed to report any error.
        new Throwable("warm-up").printStackTrace(new PrintStream(OutputStream.nullOutputStream()));
        Semaphore deaf = new Semaphore(0);
        Thread.setDefaultUncaughtExceptionHandler((thread, error) -> {
            // First what needs no memory: this handler may be short of it as well.
            if (thread.getName().contains("-Poller") || thread.getName().contains("-Acceptor")) {
                deaf.release();
            }
            try {
                System.err.println("thread " + thread.getName() + " ended: " + error);
            } catch (OutOfMemoryError unsaid) {
                // It counts, said or not.
            }
        });
        while (true) {
            deaf.acquire();
            try {
                deaf.drainPermits();
                restartConnector();
            } catch (OutOfMemoryError tooEarly) {
                deaf.release();
                Thread.sleep(RESTART_PAUSE_MS);
            }
        }
    }

    private void restartConnector() {
        try {
            tomcat.getConnector().stop();
            tomcat.getConnector().start();
            System.err.println("taking connections again");
        } catch (LifecycleException failure) {
            System.err.println("cannot take connections any more: " + failure);
            Runtime.getRuntime().halt(1);
        }
    }

    @Override
    public void close() {
        try {
            tomcat.stop();
            tomcat.destroy();
        } catch (LifecycleException failure) {
            System.err.println("closing: " + failure);
        }
        try (Stream<Path> files = Files.walk(folder)) {
            List<Path> deepestFirst = files.sorted(Comparator.reverseOrder()).toList();
            for (Path file : deepestFirst) {
                Files.deleteIfExists(file);
            }
        } catch (IOException failure) {
            System.err.println("closing: " + folder + " not removed: " + failure);
        }
    }

    /** Writes the file that the heavy job parses and has both jobs run until the compiler knows them. */
    private static HeavyJob heavyJob(Options options, Path folder) throws IOException {
        Path file = folder.resolve("heavy.xml");
        Files.write(file, Catalogue.generate(options.seed(), options.heavySize()).xml());
        HeavyJob heavy = new HeavyJob(file);
        try {
            for (int run = 0; run < WARM_UP_HEAVY_JOBS; run++) {
                heavy.run(new Pause(0, Pause.Where.AROUND));
            }
        } catch (InterruptedException closing) {
            Thread.currentThread().interrupt();
        }
        for (int run = 0; run < WARM_UP_LIGHT_JOBS; run++) {
            Jobs.fibonacci(Options.DEFAULT.fibonacci());
        }
        return heavy;
    }

    private static Connector connector(Options options) {
        Connector connector = new Connector(new Http11NioProtocol(new AcceptedEndpoint()));
        connector.setPort(options.port());
        connector.setProperty("address", "127.0.0.1");
        connector.setProperty("maxThreads", Integer.toString(options.threads()));
        connector.setProperty("minSpareThreads", Integer.toString(Math.min(10, options.threads())));
        connector.setProperty("maxConnections", Integer.toString(options.maxConnections()));
        connector.setProperty("acceptCount", Integer.toString(options.acceptCount()));
        return connector;
    }

    private static void add(Context context, String name, FilterDef filter) {
        filter.setFilterName(name);
        filter.setAsyncSupported("true");
        context.addFilterDef(filter);
        FilterMap everywhere = new FilterMap();
        everywhere.setFilterName(name);
        everywhere.addURLPattern("/*");
        for (DispatcherType type : List.of(DispatcherType.REQUEST, DispatcherType.ASYNC, DispatcherType.ERROR)) {
            everywhere.setDispatcher(type.name());
        }
        context.addFilterMap(everywhere);
    }

    private static void add(Context context, String path, Servlet page) {
        String name = page.getClass().getSimpleName();
        Tomcat.addServlet(context, name, page).setAsyncSupported(true);
        context.addServletMappingDecoded(path, name);
    }
}
