// The dashboard of two sites in a real browser, before a real gateway: node sites.mjs SUIMON FOLDER
//
// Each site has a tiny application of its own. Nothing is waited for but conditions. Pictures of what is shown are left in FOLDER.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { promisify } from "node:util";
import { opened, started, until } from "./gateway.mjs";

const [, , suimon, folder] = process.argv;

async function application(title) {
  const app = createServer((request, response) => response.writeHead(200, { "Content-Type": "text/html" }).end(`<!doctype html><title>${title}</title>`));
  app.listen(0, "127.0.0.1");
  await once(app, "listening");
  return app;
}
const [shop, tickets] = [await application("The shop"), await application("Tickets")];

const settings = join(folder, "suimon.toml");
writeFileSync(settings, `
[listen]
http = "127.0.0.1:0"
[admin]
listen = "127.0.0.1:0"
[upstream]
nodes = ["http://127.0.0.1:${shop.address().port}"]
[upstream.health]
path = "/health"
interval = "200ms"
[lease]
keys = "${join(folder, "lease.keys")}"
[learned]
state = "none"

[[site]]
name = "tickets"
paths = ["/tickets"]
[site.upstream]
nodes = ["http://127.0.0.1:${tickets.address().port}"]
[site.upstream.health]
path = "/health"
interval = "200ms"
`);
const { gateway, origin, admin } = await started(suimon, settings, folder);
const { browser, page, complaints, picture } = await opened(folder, "sites");
const text = (selector) => page.$eval(selector, (element) => element.textContent);
const shows = (selector, part) => page.waitForFunction((at, wanted) => document.querySelector(at)?.textContent.includes(wanted), {}, selector, part);
const api = async (path) => (await fetch(admin + path)).json();
const visit = async (path) => assert.equal((await fetch(origin + path, { headers: { Accept: "text/html" } })).status, 200);

// The main site, and a chooser of all: each with a word beside its sign.
// By its first request a route is found, and the second is its own.
for (const path of ["/items", "/tickets/seats", "/items", "/tickets/seats"]) await visit(path);
await page.goto(admin);
await shows("#live", "live");
await page.waitForFunction(() => document.querySelectorAll("#sites a").length === 2 && !document.querySelector("#sites").hidden);
assert.equal(await text("#sites [aria-current=page] b"), "main");
assert.equal(await text("#site"), "Suimon · main");
assert.match(await page.title(), / · main · 127/);
await shows("#sites", "open");
await shows("#sites-sum", "2 sites: 2 ok");
await shows("#sites-sum", "main serves what no other site takes");
assert.equal(await page.$$eval("#elsewhere p", (all) => all.length), 0);
await shows("#routes", "GET /items");
assert.ok(!(await text("#routes")).includes("seats"), "that is another site's");
await picture("main");

// Another site is chosen with the keyboard, and stands in the address.
await page.$eval("#sites a[href='?site=tickets']", (link) => link.focus());
await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
await shows("#live", "live");
assert.match(page.url(), /\?site=tickets$/);
await shows("#routes", "GET /tickets/seats");
assert.ok(!(await text("#routes")).includes("GET /items"));
await page.waitForFunction(() => document.querySelector("#sites [aria-current=page] b")?.textContent === "tickets");
assert.match(await page.title(), / · tickets · 127/);
await shows("#what-if", "--from-site tickets");
await shows("#sites-sum", "tickets serves ");
await until("the verdict is its own", async () => (await text("#sentence")) === (await api("/api/state?site=tickets")).verdict.sentence);
await picture("other");

// A command says which site it is for, and concerns no other.
await page.waitForFunction(() => !document.querySelector("#gate-actions").hidden);
await page.click("#open-gate");
await page.waitForFunction(() => document.querySelector("#confirm").open);
assert.match(await text("#confirm-text"), /^Site tickets: /);
await page.click("#confirm-yes");
await shows("#overrides", "open");
assert.equal((await api("/api/override?site=tickets")).overrides.length, 1);
assert.equal((await api("/api/override")).overrides.length, 0);

// The command line says the same.
const said = async (...command) => (await promisify(execFile)(suimon, [...command, "--admin", admin])).stdout;
const overview = await said("status");
assert.match(overview, /^Sites\n  main +OPEN: .*\n  tickets +OPEN: .*\n  below: main; .*--site tickets.*\n\nsuimon .*, site main, /);
assert.ok(overview.includes("GET /items") && !overview.includes("GET /tickets/seats"), overview);
assert.match(await said("status", "--site", "tickets"), /^suimon .*, site tickets, [^]*GET \/tickets\/seats/);
assert.match(await said("waiting-room", "pause", "--site", "tickets"), /^Site tickets\n[^]*paused/);
assert.match(await said("waiting-room", "status"), /^Site main\n[^]*moving/);
await shows("#situation", "paused");
await said("waiting-room", "resume", "--site", "tickets");

// Whoever looks at one site is told that another one is in trouble; title and icon stay those of the site that is looked at.
await page.goto(`${admin}/?site=main`);
await shows("#live", "live");
tickets.close();
tickets.closeAllConnections();
await shows("#elsewhere", "application down");
await page.waitForFunction(() => document.querySelector("#elsewhere p[data-level=critical] a").textContent === "tickets");
await page.waitForFunction(() => document.querySelector("#sites a[href='?site=tickets']").dataset.level === "critical");
await shows("#sites-sum", "1 critical, 1 ok");
assert.equal(await page.$eval("#verdict", (box) => box.dataset.level), "ok");
assert.match(await page.title(), /^open · main/);
await until("it is not ready, and the gateway is", async () => (await api("/api/sites")).sites.map((it) => it.ready).join() === "true,false");
assert.match(await (await fetch(`${admin}/readyz`)).text(), /^ready\ntickets is not ready: /);
await picture("elsewhere");
await Promise.all([page.waitForNavigation(), page.click("#elsewhere a")]);
await shows("#situation", "application down");
assert.equal(await page.$$eval("#elsewhere p", (all) => all.length), 0, "the other one is well");

// A site that is not there: which there are is said, and can be chosen.
await page.goto(`${admin}/?site=nowhere`);
await shows("#situation", "no such site");
await shows("#sentence", "main, tickets");
await page.waitForFunction(() => document.querySelectorAll("#sites a").length === 2);
await picture("nowhere");

const ours = complaints.filter((it) => !/Failed to load resource|ERR_ABORTED|status of 404/.test(it));
assert.deepEqual(ours, []);
gateway.kill();
await browser.close();
console.log("the sites are told apart");
process.exit(0);
