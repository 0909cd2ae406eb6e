package org.suimon.shop;

import jakarta.servlet.ServletException;
import java.io.IOException;
import java.nio.channels.SocketChannel;
import org.apache.catalina.connector.Request;
import org.apache.catalina.connector.Response;
import org.apache.catalina.valves.ValveBase;
import org.apache.tomcat.util.net.NioChannel;
import org.apache.tomcat.util.net.NioEndpoint;
import org.apache.tomcat.util.net.SocketBufferHandler;
import org.apache.tomcat.util.net.SocketEvent;
import org.apache.tomcat.util.net.SocketProcessorBase;
import org.apache.tomcat.util.net.SocketWrapperBase;

/**
 * Tomcat's own endpoint, which also notes when it accepts a request. For the first request of a
 * connection this is when {@code accept} returned the connection. For a later one of a kept
 * connection it is when the poller saw that its bytes are there and handed it to the thread pool;
 * or, if they were there before the thread had finished the request before, when that thread read
 * them.
 */
final class AcceptedEndpoint extends NioEndpoint {
    /** The attribute that says when a request was accepted: by {@link System#nanoTime}. */
    static final String ACCEPTED = "org.suimon.shop.accepted";

    /** What the thread at work knows of the request that it was handed; taken by that request. */
    private static final ThreadLocal<Long> HANDED = new ThreadLocal<>();

    /** Puts the time into each request. */
    static final class Valve extends ValveBase {
        Valve() {
            super(true);
        }

        @Override
        public void invoke(Request request, Response response) throws IOException, ServletException {
            Long handed = HANDED.get();
            HANDED.remove();
            request.setAttribute(ACCEPTED, handed == null ? request.getCoyoteRequest().getStartTimeNanos() : handed);
            getNext().invoke(request, response);
        }
    }

    @Override
    protected NioChannel createChannel(SocketBufferHandler buffers) {
        return new Channel(buffers);
    }

    @Override
    protected SocketProcessorBase<NioChannel> createSocketProcessor(SocketWrapperBase<NioChannel> socket, SocketEvent event) {
        return new Handed(socket, event);
    }

    /** A connection; Tomcat gives the object to another one when it is closed. */
    private static final class Channel extends NioChannel {
        /** When it was accepted; null once its first request has taken it. */
        private Long accepted;

        Channel(SocketBufferHandler buffers) {
            super(buffers);
        }

        /** Called by the thread that accepts, as soon as it has. */
        @Override
        public void reset(SocketChannel socket, NioSocketWrapper wrapper) throws IOException {
            accepted = System.nanoTime();
            super.reset(socket, wrapper);
        }

        Long take() {
            Long taken = accepted;
            accepted = null;
            return taken;
        }
    }

    /** A connection with something to read, on its way to a thread; used again for others, too. */
    private final class Handed extends SocketProcessor {
        private long at = System.nanoTime();

        Handed(SocketWrapperBase<NioChannel> socket, SocketEvent event) {
            super(socket, event);
        }

        @Override
        public void reset(SocketWrapperBase<NioChannel> socket, SocketEvent event) {
            at = System.nanoTime();
            super.reset(socket, event);
        }

        @Override
        protected void doRun() {
            Long accepted = socketWrapper.getSocket() instanceof Channel channel ? channel.take() : null;
            HANDED.set(accepted == null ? at : accepted);
            try {
                super.doRun();
            } finally {
                HANDED.remove();
            }
        }
    }
}
