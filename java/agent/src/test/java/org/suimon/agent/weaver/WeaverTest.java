package org.suimon.agent.weaver;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.io.InputStream;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.suimon.woven.Loops;

class WeaverTest {
    private static final String NAME = Loops.class.getName();
    private static final String INTERNAL = NAME.replace('.', '/');

    private final Weaver weaver = new Weaver(new ClassWeaver(options("methods=" + NAME + ".run@loop," + NAME + ".none@exit")));

    private static Options options(String said) {
        try {
            return Options.read(said);
        } catch (Options.FaultsException wrong) {
            throw new AssertionError(wrong);
        }
    }

    private static byte[] bytes() throws Exception {
        try (InputStream in = Loops.class.getResourceAsStream("Loops.class")) {
            return in.readAllBytes();
        }
    }

    @Test
    void aClassWhoseLoaderHidesTheAgentIsNotWoven() throws Exception {
        ClassLoader hides = new ClassLoader(null) {
        };
        assertNull(weaver.transform(hides, INTERNAL, null, null, bytes()));
        assertEquals(List.of(NAME + " is not woven: its class loader hides the agent"), weaver.remarks());
        assertEquals(List.of(), weaver.woven());
    }

    @Test
    void whatIsWovenAndWhatIsNotFoundIsTold() throws Exception {
        ClassLoader loader = Loops.class.getClassLoader();
        assertNotNull(weaver.transform(loader, INTERNAL, null, null, bytes()));
        assertEquals(List.of(NAME), weaver.woven());
        assertEquals(List.of(NAME + ".none: no such method with code"), weaver.remarks());
        assertNull(weaver.transform(loader, "com/shop/Other", null, null, new byte[0]), "nobody asked for it");
        assertNull(weaver.transform(loader, null, null, null, new byte[0]), "it has no name");
        weaver.over();
        assertNull(weaver.transform(loader, INTERNAL, null, null, bytes()));
    }

    @Test
    void bytesThatAreNoClassAreLeftToTheJvm() {
        for (byte[] broken : new byte[][] {{}, new byte[100], "no class at all".getBytes(java.nio.charset.StandardCharsets.US_ASCII)}) {
            assertNull(weaver.transform(Loops.class.getClassLoader(), INTERNAL, null, null, broken));
        }
        assertEquals(true, weaver.remarks().get(0).startsWith(NAME + " is not woven: "));
    }
}
