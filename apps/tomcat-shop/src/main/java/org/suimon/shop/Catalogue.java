package org.suimon.shop;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.SplittableRandom;

/**
 * The shop's goods: an XML document of about the size asked for, and the few items the light pages show.
 * The same seed and size give the same bytes everywhere.
 */
final class Catalogue {
    /** Items listed on one catalogue page. */
    static final int ITEMS_A_PAGE = 20;

    /** Catalogue pages that can be browsed. */
    static final int PAGES = 3;

    private static final String[] WORDS = (
            "amber anchor apple arrow autumn bamboo basket bell birch blanket blossom boat bottle bowl brass bridge bronze "
            + "brush candle canvas cedar ceramic charm cherry clay cloud coat copper coral cotton crane crystal cup curtain "
            + "dawn desk drum ember fan feather fern flute forest frame frost garden glass gold harbour hat hinge ivory "
            + "jade jar kettle kite ladder lake lamp lantern leaf leather lemon linen lotus maple marble mask mat mirror "
            + "moon moss mountain needle oak olive orchid paper pearl pebble pine plate plum pocket porcelain quilt rain "
            + "ribbon rice river robe rope rose saddle salt sand satin screen shell silk silver snow spoon spring stone "
            + "summer table tea thread tile tray umbrella vase velvet walnut water wave willow winter wood wool").split(" ");

    /** One thing for sale, as the light pages show it. */
    record Item(String id, String name, String price) {
    }

    private final byte[] xml;
    private final List<Item> shown;

    private Catalogue(byte[] xml, List<Item> shown) {
        this.xml = xml;
        this.shown = List.copyOf(shown);
    }

    /** Returns a catalogue of {@code size} bytes of XML, give or take one item. */
    static Catalogue generate(long seed, int size) {
        SplittableRandom random = new SplittableRandom(seed);
        StringBuilder text = new StringBuilder(size + 1_024);
        List<Item> shown = new ArrayList<>();
        text.append("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<catalogue>\n");
        for (int number = 1; text.length() < size - 13 || shown.size() < PAGES * ITEMS_A_PAGE; number++) {
            Item item = new Item(
                    Integer.toString(number),
                    words(random, 3),
                    String.format(Locale.ROOT, "%d.%02d", random.nextInt(1, 500), random.nextInt(100)));
            if (shown.size() < PAGES * ITEMS_A_PAGE) {
                shown.add(item);
            }
            text.append("<item id=\"").append(item.id()).append("\" stock=\"").append(random.nextInt(1, 100)).append("\">")
                    .append("<name>").append(item.name()).append("</name>")
                    .append("<price currency=\"EUR\">").append(item.price()).append("</price>")
                    .append("<maker>").append(words(random, 2)).append("</maker>")
                    .append("<description>").append(words(random, 24)).append("</description>");
            for (int tag = 0; tag < 4; tag++) {
                text.append("<tag>").append(words(random, 1)).append("</tag>");
            }
            text.append("</item>\n");
        }
        text.append("</catalogue>\n");
        return new Catalogue(text.toString().getBytes(StandardCharsets.UTF_8), shown);
    }

    /** Returns the document. The caller must not change it. */
    byte[] xml() {
        return xml;
    }

    /** Returns the items on catalogue page {@code page}, 1 to {@link #PAGES}. */
    List<Item> page(int page) {
        return shown.subList((page - 1) * ITEMS_A_PAGE, page * ITEMS_A_PAGE);
    }

    private static String words(SplittableRandom random, int count) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < count; i++) {
            text.append(i == 0 ? "" : " ").append(WORDS[random.nextInt(WORDS.length)]);
        }
        return text.toString();
    }
}
