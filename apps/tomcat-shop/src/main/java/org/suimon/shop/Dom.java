package org.suimon.shop;

import java.io.IOException;
import javax.xml.XMLConstants;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.parsers.ParserConfigurationException;
import org.w3c.dom.Document;
import org.xml.sax.InputSource;
import org.xml.sax.SAXException;

/** Parses XML of our own into a tree that is complete at once. */
final class Dom {
    private Dom() {
    }

    static Document parse(InputSource xml) {
        try {
            DocumentBuilderFactory factory = DocumentBuilderFactory.newDefaultNSInstance();
            factory.setFeature(XMLConstants.FEATURE_SECURE_PROCESSING, true);
            factory.setFeature("http://apache.org/xml/features/disallow-doctype-decl", true);
            // Deferred nodes would leave part of the tree unbuilt until somebody looks.
            factory.setFeature("http://apache.org/xml/features/dom/defer-node-expansion", false);
            return factory.newDocumentBuilder().parse(xml);
        } catch (ParserConfigurationException | SAXException | IOException impossible) {
            throw new IllegalStateException("our own XML is there and well-formed", impossible);
        }
    }
}
