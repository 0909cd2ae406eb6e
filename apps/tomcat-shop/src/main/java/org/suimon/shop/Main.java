package org.suimon.shop;

import java.io.IOException;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.apache.catalina.LifecycleException;

/** The command line. Exit codes: 0 help, 1 could not run, 2 wrong usage. */
final class Main {
    /** Held, because a logger nobody holds forgets its level. */
    private static final Logger TOMCAT_LOG = Logger.getLogger("org.apache");

    private Main() {
    }

    public static void main(String[] arguments) throws InterruptedException {
        if (arguments.length == 1 && (arguments[0].equals("--help") || arguments[0].equals("-h"))) {
            System.out.print(Options.USAGE);
            return;
        }
        Options options;
        try {
            options = Options.parse(arguments);
        } catch (Options.UsageException wrong) {
            System.err.println("tomcat-shop: " + wrong.getMessage());
            System.err.print(Options.USAGE);
            System.exit(2);
            return;
        }
        TOMCAT_LOG.setLevel(Level.WARNING);
        Shop shop;
        try {
            shop = Shop.open(options);
        } catch (IOException | LifecycleException failure) {
            System.err.println("tomcat-shop: cannot listen on 127.0.0.1:" + options.port() + ": " + failure.getMessage()
                    + "; choose another port with --port, or --port 0 for any");
            System.exit(1);
            return;
        }
        Runtime.getRuntime().addShutdownHook(new Thread(shop::close, "closing"));
        System.out.printf("work: --light-work %d --search-repeats %d --search-held %d (catalogue %d bytes, heap %d MB)%n",
                shop.work().lightWork(), shop.work().searchRepeats(), options.searchHeld(), shop.catalogueBytes(),
                Runtime.getRuntime().maxMemory() >> 20);
        System.out.println("listening on http://127.0.0.1:" + shop.port());
        System.out.flush();
        shop.serve();
    }
}
