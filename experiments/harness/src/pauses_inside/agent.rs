//! The Java agent in the application, and what the JVM says of its heap.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::trouble::{Result, Trouble, While, failed};

const JAR: &str = "../../java/agent/target/suimon-agent.jar";
const METHOD: &str = "org.suimon.shop.HeavyJob.run";

/// The agent, attached to a JVM.
pub(super) struct Agent {
    jar: PathBuf,
    pid: u32,
}

/// The pauses that the agent has counted of the heavy job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    at: Instant,
    pause_s: f64,
}

impl Done {
    /// Returns how many jobs paused on average since an earlier one.
    pub(super) fn pausing_since(&self, earlier: &Done) -> f64 {
        (self.pause_s - earlier.pause_s) / self.at.duration_since(earlier.at).as_secs_f64()
    }
}

impl Agent {
    /// Attaches it to process `pid`. No job is kept from pausing as much as it is told to.
    pub(super) fn attach(pid: u32) -> Result<Agent> {
        let jar = Path::new(env!("CARGO_MANIFEST_DIR")).join(JAR);
        if !jar.is_file() {
            return Err(Trouble::Usage(
                "the Java agent is not built: mvn -q -f java/pom.xml package -DskipTests (./experiments/run does it)"
                    .into(),
            ));
        }
        let agent = Agent { jar, pid };
        let options = format!("methods={METHOD}@loop;header=true;pause_total_max=2m");
        let said = agent.tool(
            "java",
            &["-jar", &agent.jar.display().to_string(), "attach", &pid.to_string(), &options],
        )?;
        if said.contains("attached: ") {
            Ok(agent)
        } else {
            failed(format!("the agent is not attached: {said}"))
        }
    }

    /// Returns what has been done so far.
    pub(super) fn done(&self) -> Result<Done> {
        let said =
            self.tool("java", &["-jar", &self.jar.display().to_string(), "status", &self.pid.to_string()])?;
        let pause_s = paused_in(&said)
            .ok_or_else(|| Trouble::Failed(format!("the agent's status is not understood: {said}")))?;
        Ok(Done { at: Instant::now(), pause_s })
    }

    /// Returns the bytes of all objects that are in use, after a collection of the whole heap.
    pub(super) fn live_bytes(&self) -> Result<u64> {
        let said = self.tool("jcmd", &[&self.pid.to_string(), "GC.class_histogram"])?;
        total_in(&said).ok_or_else(|| Trouble::Failed("jcmd's histogram is not understood".into()))
    }

    fn tool(&self, program: &str, words: &[&str]) -> Result<String> {
        let output = Command::new(program).args(words).output().trouble(program)?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            return Ok(said);
        }
        failed(format!("{program} {}: {said}{}", words.join(" "), String::from_utf8_lossy(&output.stderr)))
    }
}

fn paused_in(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(METHOD))?;
    line.split_once(" pause ")?.1.split_whitespace().next()?.parse().ok()
}

/// The last line: `Total`, objects, bytes.
fn total_in(histogram: &str) -> Option<u64> {
    let total = histogram.lines().rev().find(|line| line.starts_with("Total"))?;
    total.split_whitespace().nth(2)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_tools_say_is_read() {
        let status = "ratio none\norg.suimon.shop.HeavyJob.run: calls 7, job 1.250 s, pause 2.500 s in 90, forgiven 0.000 s, postponed 0\n";
        assert_eq!(paused_in(status), Some(2.5));
        assert_eq!(paused_in("ratio none\n"), None);
        let histogram = "77:\n num     #instances\n   1:  9  99  [B\nTotal        123456       7890123\n";
        assert_eq!(total_in(histogram), Some(7_890_123));
        assert_eq!(total_in("no"), None);
    }
}
