// The dashboard in a real browser, before a real gateway: node dashboard.mjs SUIMON FOLDER
//
// The application is a tiny one whose answers wait until this script lets them go, so that what the dashboard has to show is known. Nothing is waited for but
// conditions. Pictures of what is shown are left in FOLDER.
import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { opened, started, until } from "./gateway.mjs";

const [, , suimon, folder] = process.argv;

// The application: answers what it holds when told to, and gives every visitor a session cookie.
let holding = false;
let visitors = 0;
const held = [];
const app = createServer((request, response) => {
  const headers = { "Content-Type": "text/html" };
  if (!/sessionid=/.test(request.headers.cookie ?? "")) headers["Set-Cookie"] = `sessionid=visitor-${++visitors}-0123456789; Path=/`;
  const answer = () => response.writeHead(200, headers).end("<!doctype html><title>The shop</title>");
  if (holding && request.url !== "/health") held.push(answer);
  else answer();
});
const letGo = () => held.splice(0).forEach((answer) => answer());
app.listen(0, "127.0.0.1");
await once(app, "listening");

const settings = join(folder, "suimon.toml");
writeFileSync(settings, `
[listen]
http = "127.0.0.1:0"
[admin]
listen = "127.0.0.1:0"
[upstream]
nodes = ["http://127.0.0.1:${app.address().port}"]
[upstream.health]
path = "/health"
interval = "200ms"
[[session]]
kind = "tickets"
hold = "200ms"
[gate]
session_law = "static"
static_sessions = 1
[lease]
keys = "${join(folder, "lease.keys")}"
[learned]
state = "none"
[waiting_room]
name = "Riverside Tickets"
state = "${join(folder, "line.json")}"
`);
const { gateway, origin, admin } = await started(suimon, settings, folder);
const state = async () => (await fetch(`${admin}/api/state`)).json();
// Without a cookie a visitor is known by address and browser, so each has a browser of its own.
let browsers = 0;
const visit = (path, cookie) => fetch(origin + path, { headers: { Accept: "application/json", "User-Agent": `visitor ${cookie ? 0 : ++browsers}`, ...(cookie && { Cookie: cookie }) } });

/// Takes a place in line, and keeps it as a waiting page does: by asking again and again.
async function waits() {
  const answer = await visit("/begin");
  assert.equal(answer.status, 503);
  const headers = { Accept: "application/json", "User-Agent": `visitor ${browsers}`, Cookie: answer.headers.getSetCookie().map((it) => it.split(";")[0]).join("; ") };
  setInterval(() => fetch(`${origin}/begin`, { headers }).then((it) => it.arrayBuffer(), () => {}), 2500);
}

const { browser, page, complaints, picture } = await opened(folder, "dashboard");
const text = (selector) => page.$eval(selector, (element) => element.textContent);
const shows = (selector, part) => page.waitForFunction((at, wanted) => document.querySelector(at)?.textContent.includes(wanted), {}, selector, part);

// Calm: one verdict, the same in the page, its title and the API.
assert.match(await (await fetch(admin)).text(), /\/api\/events/, "who is no browser gets the paths");
await page.goto(admin);
await shows("#live", "live");
assert.equal(await text("#sentence"), (await state()).verdict.sentence);
assert.ok(await page.$eval("#sites", (nav) => nav.hidden), "there is nothing to choose where there is one site");
assert.equal(await text("#site"), "Suimon");
const first = await visit("/begin");
const cookie = first.headers.get("set-cookie").split(";")[0];
await shows("#situation", "full");
assert.match(await page.title(), /^full/);
await page.waitForFunction(() => document.querySelectorAll("#routes tbody tr").length > 0);
await picture("calm");

// A line: who waits is counted, and told how long.
for (let at = 0; at < 3; at++) await waits();
await shows("#situation", "line");
await shows("#in-line", "3");
assert.match(await page.title(), /^line 3/);
await page.waitForFunction(() => [...document.querySelectorAll("#why li")].length > 0);
await picture("line");

// A route: its limit, what holds it, and why it moved.
holding = true;
const busy = Array.from({ length: 60 }, () => visit("/begin", cookie));
await until("a request is held", () => held.length > 0);
await page.waitForFunction(() => [...document.querySelectorAll("#routes tbody tr")].some((row) => row.cells[2].textContent !== "0" && row.querySelector("[data-full=yes]")));
holding = false;
letGo();
await Promise.all(busy.map((answer) => answer.then((it) => it.arrayBuffer())));
await page.evaluate(() => [...document.querySelectorAll("#routes tbody button")].find((it) => it.textContent === "GET /begin").click());
await page.waitForFunction(() => document.querySelector("#route").open);
await shows("#route-facts", "completed /s");
await picture("route");
await page.keyboard.press("Escape");
await page.waitForFunction(() => !document.querySelector("#route").open);

// The charts speak to a keyboard, and show a day.
await page.$eval("#people .plot", (plot) => plot.focus());
await page.keyboard.press("End");
await page.keyboard.press("ArrowLeft");
await page.waitForFunction(() => /in line \d/.test(document.querySelector("#people .reading").textContent));
await page.click("#people summary");
await page.waitForFunction(() => document.querySelectorAll("#people table tbody tr").length > 0);
await page.evaluate(() => document.querySelector("input[value='86400']").click());
await page.waitForFunction(() => document.querySelector("input[value='86400']").checked);
await page.evaluate(() => document.querySelector("input[value='900']").click());

// Actions: each asks first, and can be left without effect.
const button = (box, label) => page.evaluate((within, wanted) => [...document.querySelectorAll(`${within} button`)].find((it) => it.textContent.startsWith(wanted)).click(), box, label);
const asked = () => page.waitForFunction(() => document.querySelector("#confirm").open);
const answer = async (value, fields = {}) => {
  for (const [name, text] of Object.entries(fields)) await page.$eval(`#confirm [name=${name}]`, (input, wanted) => { input.value = wanted; }, text);
  await page.evaluate((yes) => document.querySelector(`#confirm button[value=${yes}]`).click(), value);
  await page.waitForFunction(() => !document.querySelector("#confirm").open);
};
await page.waitForFunction(() => !document.querySelector("#lines .buttons").hidden);
await button("#lines", "Pause");
await asked();
assert.match(await text("#confirm-text"), /people wait/);
await picture("confirm");
await answer("no");
assert.equal((await state()).kinds[0].line.state, "moving");
await button("#lines", "Pause");
await asked();
await answer("yes");
await shows("#situation", "paused");
await button("#lines", "Say");
await asked();
await answer("yes", { message: "Back at <b>three</b>." });
await shows("#lines", "Back at <b>three</b>.");
await button("#lines", "Resume");
await asked();
await answer("yes");
await shows("#situation", "line");
await page.evaluate(() => [...document.querySelectorAll("#routes tbody button")].find((it) => it.textContent === "GET /begin").click());
await page.waitForFunction(() => [...document.querySelectorAll("#route-actions button")].some((it) => it.textContent.startsWith("Pin")));
await button("#route-actions", "Pin");
await asked();
await answer("yes", { limit: "7", who: "anna", why: "a test" });
await until("the limit is pinned", async () => (await state()).routes.find((it) => it.name === "GET /begin").limit === 7);
await shows("#overrides", "GET /begin: limit 7");
await shows("#overrides", "by anna (a test)");
await button("#route-actions", "Release");
await asked();
await answer("yes");
await page.waitForFunction(() => document.querySelector("#overrides-box").hidden);
await page.waitForFunction(() => [...document.querySelectorAll("#route-actions button")].some((it) => it.textContent.startsWith("Observe")));
await button("#route-actions", "Observe");
await asked();
await answer("yes");
await shows("#routes", "observe");
await page.keyboard.press("Escape");
await button("#nodes", "Drain");
await asked();
await answer("yes");
// The last node cannot be drained, and the gateway says so.
await shows("#said", "Not done: ");

// The application is dead: critical, and those in line are still counted.
app.close();
app.closeAllConnections();
await shows("#situation", "application down");
assert.match(await text("#nodes"), /down|ejected/);
await page.waitForFunction(() => document.querySelector("#verdict").dataset.level === "critical");
await picture("down");

// The gateway is gone: what is shown is marked as old.
const gone = once(gateway, "exit");
gateway.kill("SIGKILL");
await gone;
await page.waitForFunction(() => document.documentElement.classList.contains("stale"));
await shows("#live", "last heard");
const ours = complaints.filter((it) => !/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|Failed to load resource/.test(it));
assert.deepEqual(ours, []);
await browser.close();
console.log("the dashboard holds");
process.exit(0);
