package org.suimon.agent.weaver;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.suimon.agent.runtime.Limits;

class OptionsTest {
    private static final long MS = 1_000_000;

    @TempDir
    Path folder;

    private Options file(String text) throws Exception {
        Path file = folder.resolve("agent.toml");
        Files.writeString(file, text);
        return Options.read(file.toString());
    }

    private String faultsOfFile(String text) {
        return assertThrows(Options.FaultsException.class, () -> file(text), text).getMessage().replace(folder + "/", "");
    }

    private static String faults(String text) {
        return assertThrows(Options.FaultsException.class, () -> Options.read(text), text).getMessage();
    }

    @Test
    void aFileAndArgumentsSayTheSame() throws Exception {
        Options file = file("""
                # The heavy job.
                methods = [
                  "com.shop.Job.run@loop",   # after each walk
                  'com.shop.Job.run@exit', "com.shop.Job$Part.walk@entry",
                ]
                ratio = 2.5
                header = true
                never_in = ["com.shop.Tx.*"]
                pause_least = "20ms"
                pause_max = "2s"
                pause_total_max = "1m"
                virtual_threads = false
                requests_begin_at = []
                """);
        Options arguments = Options.read("methods=com.shop.Job.run@loop, com.shop.Job.run@exit,com.shop.Job$Part.walk@entry;ratio=2.5;"
                + "header=true;never_in=com.shop.Tx.*;pause_least=20ms;pause_max=2s;pause_total_max=1m;virtual_threads=false;"
                + "requests_begin_at=");
        assertEquals(file, arguments);
        assertEquals(Map.of("com.shop.Job.run", 2 | 4, "com.shop.Job$Part.walk", 1), file.methods());
        assertEquals(new Limits(20 * MS, 2_000 * MS, 60_000 * MS), file.limits());
        assertEquals(List.of(), file.requestsBeginAt());
        assertEquals("2 methods, ratio 2.5", file.summary());
    }

    @Test
    void nothingSaidIsNothingDeclared() throws Exception {
        for (String nothing : new String[] {"", " ", ";", "methods="}) {
            Options options = Options.read(nothing);
            assertTrue(options.methods().isEmpty() && Double.isNaN(options.ratio()) && !options.header());
            assertEquals(new Limits(10 * MS, 5_000 * MS, 10_000 * MS), options.limits());
        }
        assertTrue(file("").methods().isEmpty());
    }

    @Test
    void allFaultsAreToldTogetherWithWhatIsAllowed() throws Exception {
        assertEquals("""
                methods = Job.run: must be class.method@entry, @loop or @exit
                methods = java.lang.String.length@exit: must be the application's, not the JDK's or the agent's
                ratio = -1: must be a number from 0 to 100
                header = ja: must be true or false
                never_in = *: must be class.method, or a beginning of that and *
                requests_begin_at = a.b.*: must be class.method
                pause_least = 2s: must be a time from 1ms to 1s, such as "20ms"
                pause_max = 99h: must be a time from 1ms to 1m, such as "20ms"
                pause_total_max = : must be a time from 1ms to 10m, such as "20ms"
                colour: no such key; there are methods, ratio, header, timings, never_in, requests_begin_at, virtual_threads, pause_least, \
                pause_max, pause_total_max""",
                faults("methods=Job.run,java.lang.String.length@exit;ratio=-1;header=ja;never_in=*;requests_begin_at=a.b.*;"
                        + "pause_least=2s;pause_max=99h;pause_total_max=;colour=red"));
        assertEquals("pause_least = 50ms: must not exceed pause_max (20ms)", faults("pause_least=50ms;pause_max=20ms"));
        assertEquals(new Limits(10 * MS, 2_000 * MS, 2_000 * MS), Options.read("pause_total_max=2s").limits());
        assertEquals("pause_max = 2000ms: must not exceed pause_total_max (1000ms)", faults("pause_max=2s;pause_total_max=1s"));
    }

    @Test
    void constructorsAndNamesThatAreNoneAreRefused() {
        for (String wrong : new String[] {"a.B.<init>@exit", "a.B.<clinit>@entry", "B.@loop", ".b@loop", "a.b@Loop", "a.b@loop@exit",
                "a.b@", "a b.c@exit", "a.B.*@exit", "a/B.c@exit"}) {
            assertEquals("methods = " + wrong + ": must be class.method@entry, @loop or @exit", faults("methods=" + wrong));
        }
    }

    @Test
    void aFileThatMakesNoSenseIsRefusedWithItsLine() {
        assertEquals("agent.toml, line 1: tables are not known here", faultsOfFile("[agent]\nratio = 1\n"));
        assertEquals("agent.toml, line 2: a value must stand here", faultsOfFile("\nratio =\n"));
        assertEquals("agent.toml, line 1: 'ratio' must be followed by =", faultsOfFile("ratio 2"));
        assertEquals("agent.toml, line 1: the quote is not closed", faultsOfFile("pause_max = \"2s\n"));
        assertEquals("agent.toml, line 1: nothing may follow the value", faultsOfFile("ratio = 2 3"));
        assertEquals("agent.toml, line 2: ratio: is there twice", faultsOfFile("ratio = 2\nratio = 3"));
        assertEquals("agent.toml, line 1: a key must stand here", faultsOfFile("= 2"));
        assertEquals("agent.toml, line 1: a key must stand here", faultsOfFile("\u0000\u0001"));
        assertEquals("agent.toml, line 2: a list holds \"words\", and ends with ]", faultsOfFile("methods = [\"a.b@exit\",\n"));
        assertEquals("agent.toml, line 1: words of a list have commas between them, and ] at their end",
                faultsOfFile("methods = [\"a.b@exit\" \"c.d@exit\"]"));
        assertEquals("agent.toml, line 1: after \\ only \\ and \" are known", faultsOfFile("pause_max = \"\\n\""));
        assertEquals("ratio = \"2\": must be a number from 0 to 100", faultsOfFile("ratio = \"2\""));
        assertEquals("methods = \"a.b@exit\": must be a list of \"words\"", faultsOfFile("methods = \"a.b@exit\""));
        assertEquals("pause_max = 5: must be a time from 1ms to 1m, such as \"20ms\"", faultsOfFile("pause_max = 5"));
        assertEquals("header = \"true\": must be true or false", faultsOfFile("header = \"true\""));
    }

    @Test
    void aPathThatIsNoFileIsSaidToBeNone() {
        assertEquals("'/no/such/agent.toml': must be key=value, or the path of a file that exists", faults("/no/such/agent.toml"));
        assertEquals("'" + folder + "': must be key=value, or the path of a file that exists", faults(folder.toString()));
        assertEquals("'a\u0000b': must be key=value, or the path of a file that exists", faults("a\u0000b"));
    }

    @Test
    void whatIsTooMuchIsRefused() {
        assertTrue(faultsOfFile("#".repeat(Options.FILE_MAX + 1)).endsWith("must have at most 65536 bytes"));
        assertEquals("methods: must have at most 256 entries, has 257", faults("methods=" + "a.b@exit,".repeat(256) + "a.b@exit"));
        assertTrue(faults("ratio=" + "9".repeat(10_000)).length() < 400);
    }

    /** Whatever stands in a file, it is understood or refused in words. */
    @Test
    void noTextMakesItStumble() throws Exception {
        String letters = "\"'[]=,#\n\\ ab.@1;\u0000\t";
        String[] words = {"methods", "ratio", "= ", "[\"a.b@exit\"]", "true", "2", "\n", "pause_max", "\"1s\""};
        for (long seed = 0; seed < 20_000; seed++) {
            Random random = new Random(seed);
            StringBuilder text = new StringBuilder();
            for (int i = random.nextInt(12); i > 0; i--) {
                text.append(random.nextBoolean() ? words[random.nextInt(words.length)]
                        : String.valueOf(letters.charAt(random.nextInt(letters.length()))));
            }
            try {
                RawOptions.ofToml(text.toString());
            } catch (RawOptions.SyntaxException said) {
                assertTrue(said.getMessage().startsWith("line "), "seed " + seed);
            }
            try {
                Options.read(text.toString());
            } catch (Options.FaultsException said) {
                assertTrue(!said.getMessage().isBlank(), "seed " + seed);
            }
        }
    }
}
