// What the scripts share: a gateway, a browser, and pictures of what it shows.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import puppeteer from "puppeteer-core";

export const LONG = 60_000;
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/// Starts a gateway with these settings; returns the process, and where visitors and operators are answered.
export async function started(suimon, settings, folder) {
  const gateway = spawn(suimon, ["serve", "--config", settings], { stdio: ["ignore", "pipe", "inherit"], env: { ...process.env, STATE_DIRECTORY: folder } });
  process.on("exit", () => gateway.kill());
  const said = [];
  for await (const line of createInterface({ input: gateway.stdout })) {
    said.push(line);
    const found = (name) => said.map((it) => it.match(new RegExp(`${name}.*?(http://127\\.0\\.0\\.1:\\d+)`))?.[1]).find(Boolean);
    const [origin, admin] = [found("clients"), found("operator")];
    if (origin && admin) return { gateway, origin, admin };
  }
  throw new Error(`the gateway did not start: ${said.join("\n")}`);
}

/// Waits until it is so, and returns what was seen then.
export async function until(what, holds) {
  for (const end = Date.now() + LONG; Date.now() < end; await new Promise((done) => setTimeout(done, 50))) {
    const seen = await holds();
    if (seen) return seen;
  }
  throw new Error(`not within ${LONG} ms: ${what}`);
}

/// Opens a browser with a page. `complaints`: its errors and warnings; `picture(name)`: looks at the page in all its forms, and leaves pictures of them in
/// the folder.
export async function opened(folder, prefix) {
  const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-dev-shm-usage"] });
  process.on("exit", () => browser.process()?.kill());
  const page = await browser.newPage();
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && complaints.push(message.text()));
  page.setDefaultTimeout(LONG);
  const picture = async (name) => {
    for (const [form, width, height, scheme] of [["wide", 1360, 900, "light"], ["dark", 1360, 900, "dark"], ["phone", 390, 844, "light"]]) {
      await page.setViewport({ width, height });
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
      const [wants, has] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(wants <= has, `${name}, ${form}: ${wants} pixels wide on ${has}`);
      await page.evaluate(AXE);
      const { violations } = await page.evaluate(() => axe.run());
      assert.deepEqual(violations.map(({ id, nodes }) => [id, nodes.map((node) => node.html)]), [], `${name}, ${form}`);
      await page.screenshot({ path: join(folder, `${prefix}-${name}-${form}.png`), fullPage: true });
    }
    await page.setViewport({ width: 1360, height: 900 });
  };
  return { browser, page, complaints, picture };
}
