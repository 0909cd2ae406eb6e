package org.suimon.agent.start;

import com.sun.tools.attach.AgentInitializationException;
import com.sun.tools.attach.AgentLoadException;
import com.sun.tools.attach.AttachNotSupportedException;
import com.sun.tools.attach.VirtualMachine;
import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.function.UnaryOperator;

/** {@code java -jar suimon-agent.jar}: attaches to a running JVM, asks it, detaches. */
public final class Command {
    private static final String USAGE = """
            usage: java -jar suimon-agent.jar attach PID OPTIONS    weave pauses into a running JVM
                   java -jar suimon-agent.jar status PID            what was called, and how long it paused
                   java -jar suimon-agent.jar detach PID            take all woven code out again
                   java -jar suimon-agent.jar check OPTIONS         look at options, and touch nothing
            OPTIONS is the path of a file, or 'key=value;key=value'
            """;

    private Command() {
    }

    /** Exit codes: 0 done; 1 it could not be; 2 wrong usage or options. */
    public static void main(String[] arguments) {
        System.exit(run(List.of(arguments)));
    }

    private static int run(List<String> words) {
        String command = words.isEmpty() ? "" : words.get(0);
        return switch (command + ' ' + words.size()) {
            case "check 2" -> check(words.get(1)) ? 0 : 2;
            case "attach 3" -> check(words.get(2)) ? load(words.get(1), absolute(words.get(2))) : 2;
            case "status 2" -> load(words.get(1), Agent.STATUS);
            case "detach 2" -> load(words.get(1), Agent.DETACH);
            default -> {
                System.err.print(USAGE);
                yield 2;
            }
        };
    }

    private static boolean check(String options) {
        try {
            AgentLoader loader = new AgentLoader(jar().toFile(), Command.class.getClassLoader());
            @SuppressWarnings("unchecked")
            UnaryOperator<String> check = (UnaryOperator<String>)
                    loader.loadClass("org.suimon.agent.weaver.Check").getConstructor().newInstance();
            String said = check.apply(options);
            boolean isRight = said.startsWith("ok: ");
            (isRight ? System.out : System.err).println(said);
            return isRight;
        } catch (ReflectiveOperationException | IOException | URISyntaxException broken) {
            System.err.println("this jar is broken: " + broken);
            return false;
        }
    }

    private static Path jar() throws URISyntaxException {
        return Path.of(Command.class.getProtectionDomain().getCodeSource().getLocation().toURI());
    }

    /** The other JVM has another working directory. */
    private static String absolute(String said) {
        Path path = Path.of(said);
        return Files.exists(path) ? path.toAbsolutePath().toString() : said;
    }

    private static int load(String pid, String words) {
        try {
            VirtualMachine other = VirtualMachine.attach(pid);
            try {
                other.loadAgent(jar().toString(), words);
                String said = other.getSystemProperties().getProperty(Agent.SAID, "nothing was said");
                System.out.println(said);
                return said.matches("(?s)(refused|fault|not attached).*") ? 1 : 0;
            } finally {
                other.detach();
            }
        } catch (AttachNotSupportedException | AgentLoadException | AgentInitializationException | IOException
                | URISyntaxException | NoClassDefFoundError no) {
            System.err.println(pid + ": cannot be attached to: " + no + (no instanceof NoClassDefFoundError
                    ? "; a JDK is needed, as it has the module jdk.attach" : ""));
            return 1;
        }
    }
}
