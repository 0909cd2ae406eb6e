package org.suimon.shop;

import java.io.ByteArrayInputStream;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Locale;
import org.w3c.dom.Document;
import org.w3c.dom.Element;
import org.w3c.dom.Node;
import org.xml.sax.InputSource;

/**
 * The heavy page's work, as if the shop asked several suppliers, each with a catalogue of its own: every pass parses
 * the XML into a new DOM and walks all of it for the word asked for.
 *
 * <p>The matches of the last {@code held} passes are kept for comparison until the search is over. They are DOM
 * nodes, and a node keeps its whole document alive; so a search holds up to {@code held} documents, several MB each.
 * That is what makes many searches at once expensive: each collection has more to mark and move and frees less, until
 * the collector does most of the work.
 */
final class CatalogueSearch {
    /** Matches kept from one pass. */
    private static final int MATCHES_A_PASS = 10;

    private final byte[] xml;
    private final int held;

    CatalogueSearch(byte[] xml, int held) {
        this.xml = xml;
        this.held = held;
    }

    /**
     * One item found.
     *
     * @param matches how often the word occurs in it
     */
    record Match(String id, String name, String price, int matches) {
    }

    private record Candidate(Element item, int matches) {
    }

    /** Returns the best matches for the word after {@code passes} passes, best first; never none: any item will do at last. */
    List<Match> search(String word, int passes) {
        String needle = word.toLowerCase(Locale.ROOT);
        Deque<List<Candidate>> kept = new ArrayDeque<>();
        for (int pass = 0; pass < passes; pass++) {
            if (kept.size() == held) {
                kept.removeFirst();
            }
            kept.addLast(candidates(Dom.parse(new InputSource(new ByteArrayInputStream(xml))), needle));
        }
        return kept.stream()
                .flatMap(List::stream)
                .sorted((a, b) -> Integer.compare(b.matches(), a.matches()))
                .map(CatalogueSearch::match)
                .distinct()
                .limit(MATCHES_A_PASS)
                .toList();
    }

    private static List<Candidate> candidates(Document document, String needle) {
        List<Candidate> best = new ArrayList<>();
        for (Node node = document.getDocumentElement().getFirstChild(); node != null; node = node.getNextSibling()) {
            if (node instanceof Element item) {
                keepIfBetter(best, new Candidate(item, occurrences(item, needle)));
            }
        }
        return best;
    }

    private static void keepIfBetter(List<Candidate> best, Candidate candidate) {
        if (best.size() == MATCHES_A_PASS && best.get(MATCHES_A_PASS - 1).matches() >= candidate.matches()) {
            return;
        }
        int place = best.size();
        while (place > 0 && best.get(place - 1).matches() < candidate.matches()) {
            place--;
        }
        best.add(place, candidate);
        if (best.size() > MATCHES_A_PASS) {
            best.remove(MATCHES_A_PASS);
        }
    }

    private static int occurrences(Node node, String needle) {
        int count = 0;
        if (node.getNodeType() == Node.TEXT_NODE) {
            String text = node.getNodeValue().toLowerCase(Locale.ROOT);
            for (int at = text.indexOf(needle); at >= 0; at = text.indexOf(needle, at + needle.length())) {
                count++;
            }
        }
        for (Node child = node.getFirstChild(); child != null; child = child.getNextSibling()) {
            count += occurrences(child, needle);
        }
        return count;
    }

    private static Match match(Candidate candidate) {
        Element item = candidate.item();
        return new Match(item.getAttribute("id"), text(item, "name"), text(item, "price"), candidate.matches());
    }

    private static String text(Element item, String name) {
        return item.getElementsByTagName(name).item(0).getTextContent();
    }
}
