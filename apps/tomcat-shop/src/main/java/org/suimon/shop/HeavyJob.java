package org.suimon.shop;

import java.nio.file.Path;
import org.w3c.dom.Document;
import org.w3c.dom.NamedNodeMap;
import org.w3c.dom.Node;
import org.xml.sax.InputSource;

/**
 * The papers' heavy job: parses an XML file into a DOM and walks all of its nodes
 * {@link Pause#PIECES} times. A walk reads each node's name and value, letter by letter, into a
 * checksum, so that it cannot be left out. The document is held until the last walk is done.
 */
final class HeavyJob {
    private final Path xml;

    HeavyJob(Path xml) {
        this.xml = xml;
    }

    /**
     * What the job found.
     *
     * @param nodes       nodes of the document, attributes among them
     * @param checksum    of all walks
     * @param pausedNanos how long it stood still in between
     */
    record Result(int nodes, long checksum, long pausedNanos) {
    }

    /** What walks have met so far. */
    private static final class Walk {
        private int nodes;
        private long checksum;

        void through(Node node) {
            nodes++;
            add(node.getNodeName());
            add(node.getNodeValue());
            NamedNodeMap attributes = node.getAttributes();
            for (int i = 0; attributes != null && i < attributes.getLength(); i++) {
                through(attributes.item(i));
            }
            // An attribute's text is a child of it, and was added as its value.
            if (node.getNodeType() == Node.ATTRIBUTE_NODE) {
                return;
            }
            for (Node child = node.getFirstChild(); child != null; child = child.getNextSibling()) {
                through(child);
            }
        }

        private void add(String text) {
            for (int i = 0; text != null && i < text.length(); i++) {
                checksum = checksum * 31 + text.charAt(i);
            }
        }
    }

    /** Does the job, with the pauses that belong inside it. */
    Result run(Pause pause) throws InterruptedException {
        Document document = Dom.parse(new InputSource(xml.toUri().toString()));
        long checksum = 0;
        long paused = 0;
        int nodes = 0;
        for (int piece = 0; piece < Pause.PIECES; piece++) {
            Walk walk = new Walk();
            walk.through(document);
            nodes = walk.nodes;
            checksum = checksum * 31 + walk.checksum;
            paused += pause.between();
        }
        return new Result(nodes, checksum, paused);
    }
}
