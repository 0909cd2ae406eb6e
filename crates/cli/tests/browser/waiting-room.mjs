// The waiting room in a real browser, before a real gateway: node waiting-room.mjs SUIMON FOLDER
//
// SUIMON is the command, FOLDER takes the gateway's files and the pictures. The application is a tiny one; the gateway lets one session in at a time, so that
// this script decides when the next one begins. Nothing is waited for but conditions.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import puppeteer from "puppeteer-core";

const [, , suimon, folder] = process.argv;
const LONG = 30_000;
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

// The application: says what it was asked for, and gives every visitor a session cookie.
let visitors = 0;
const app = createServer(async (request, response) => {
  let body = "";
  for await (const piece of request) body += piece;
  const headers = { "Content-Type": "text/html; charset=utf-8" };
  // A visitor who gets here is taken for a person.
  const { pathname, searchParams } = new URL(request.url, "http://shop.example");
  if (pathname === "/human") return response.writeHead(303, { "Suimon-Pass": "once", Location: searchParams.get("back") }).end();
  if (!/sessionid=/.test(request.headers.cookie ?? "")) headers["Set-Cookie"] = `sessionid=visitor-${++visitors}-0123456789; Path=/`;
  response.writeHead(200, headers);
  response.end(`<!doctype html><title>The shop</title><p id=asked>${request.method} ${request.url}</p><pre id=sent>${body}</pre><p id=cookies>${request.headers.cookie ?? ""}</p>`);
});
app.listen(0, "127.0.0.1");
await once(app, "listening");

// The gateway.
const settings = join(folder, "suimon.toml");
let gateway, origin, admin;
async function start(listen = "127.0.0.1:0", more = "") {
  writeFileSync(settings, `
[listen]
http = "${listen}"
[admin]
listen = "127.0.0.1:0"
[upstream]
nodes = ["http://127.0.0.1:${app.address().port}"]
[[session]]
kind = "tickets"
ends = ["GET /end"]
hold = "500ms"
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
${more}
`);
  gateway = spawn(suimon, ["serve", "--config", settings], { stdio: ["ignore", "pipe", "inherit"] });
  const said = [];
  for await (const line of createInterface({ input: gateway.stdout })) {
    said.push(line);
    const found = name => said.map(line => line.match(new RegExp(`${name}.*?(http://127\\.0\\.0\\.1:\\d+)`))?.[1]).find(Boolean);
    [origin, admin] = [found("clients"), found("operator")];
    if (origin && admin) return;
  }
  throw new Error(`the gateway did not start: ${said.join("\n")}`);
}

// A visitor without a browser.
class Visitor {
  cookies = new Map();
  async ask(path, headers = {}) {
    const cookie = [...this.cookies].map(pair => pair.join("=")).join("; ");
    const reply = await fetch(origin + path, { headers: { Accept: "application/json", Cookie: cookie, ...headers }, redirect: "manual" });
    for (const line of reply.headers.getSetCookie()) {
      const [, name, value] = line.match(/^([^=]+)=([^;]*)/);
      if (value) this.cookies.set(name, value); else this.cookies.delete(name);
    }
    return { status: reply.status, text: await reply.text(), headers: reply.headers };
  }
  async isLetIn() { return (await this.ask("/")).status === 200; }
  async end() { assert.equal((await this.ask("/end")).status, 200); }
}

async function until(what, condition) {
  const end = Date.now() + LONG;
  // While a page is left for another there is nothing to ask it.
  const holds = () => condition().catch(error => { if (!/context was destroyed|detached|Cannot find context/.test(error.message)) throw error; });
  while (!(await holds())) {
    if (Date.now() > end) throw new Error(`never came to be: ${what}`);
    await new Promise(done => setTimeout(done, 50));
  }
}

const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const text = (page, id) => page.$eval("#" + id, part => part.textContent);
const ahead = async page => Number((await text(page, "sub")).replace(/\D/g, ""));
// Asks at once what the page would ask in a while; not oftener than the gateway answers.
const poll = async page => {
  await new Promise(done => setTimeout(done, 2100));
  await page.evaluate(() => poll());
};
let shown = 0;
async function picture(page, name) {
  for (const [width, height] of [[1280, 800], [390, 844], [320, 640]]) {
    for (const scheme of ["light", "dark"]) {
      await page.setViewport({ width, height });
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }, { name: "prefers-reduced-motion", value: "reduce" }]);
      const needs = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(needs <= width, `${name} needs ${needs} of ${width} px`);
      await page.screenshot({ path: join(folder, `${name}.${width}.${scheme}.png`), fullPage: true });
      shown++;
    }
  }
}
async function isAccessible(page, name) {
  // axe is no part of the page, whose policy would not let it run.
  await page.setBypassCSP(true);
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => axe.run());
  assert.deepEqual(violations.map(each => [name, each.id, each.nodes.map(node => node.html)]), []);
}
const step = name => console.log(`ok: ${name}`);

try {
  await start();
  const inside = new Visitor();
  assert.ok(await inside.isLetIn(), "the first one finds the gate open");
  // More than are called ahead of their turn.
  const before = Array.from({ length: 8 }, () => new Visitor());
  for (const visitor of before) {
    const { status, text, headers } = await visitor.ask("/api");
    assert.equal(status, 503);
    assert.equal(headers.get("cache-control"), "no-store");
    assert.ok(headers.get("retry-after") && JSON.parse(text).poll_after_s, text);
    // Heard of a second time, so that they count.
    await new Promise(done => setTimeout(done, 2100));
    await visitor.ask("/api", { "Suimon-Poll": "1" });
  }
  step("those who come while the gate is closed get a place each");
  // Those of them who are still in line are at the gate, as their browsers would be; else the line goes on without them after a while.
  let begun = 0;
  const knock = () => Promise.all(before.slice(begun).map(visitor => visitor.ask("/")));

  // A browser arrives.
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  const errors = [];
  page.on("pageerror", error => errors.push(error.message));
  const asked = "/concerts/42?seats=2&lang=en#row";
  const response = await page.goto(origin + asked);
  assert.equal(response.status(), 503);
  assert.match(response.headers()["content-security-policy"], /default-src 'none'/);
  assert.match(await page.title(), /Riverside Tickets/);
  assert.equal(await ahead(page), 8);
  await isAccessible(page, "waiting");
  await picture(page, "waiting");
  const bar = await (await page.$("#bar")).evaluate(bar => bar.ariaLabel);
  assert.equal(bar, await text(page, "heading"), "the bar has a name");
  step("it arrives, and waits behind eight");

  // A second tab is the same place.
  const second = await context.newPage();
  await second.goto(origin + "/other");
  await until("the tabs know of each other", async () => /another tab/.test(await text(second, "notes")));
  assert.equal(await ahead(second), 8);
  await second.close({ runBeforeUnload: false });
  await until("a closed tab is not spoken of any more", async () => !/another tab/.test(await text(page, "notes")));
  step("a second tab has the same place, and says so until it is closed");

  // The network goes away and comes back.
  await page.setOfflineMode(true);
  await until("the page says at once that it is cut off", async () => /interrupted/.test(await text(page, "notes")));
  await page.setOfflineMode(false);
  await until("it asks again and says nothing of it", async () => !/interrupted/.test(await text(page, "notes")));
  step("that the connection is lost is shown, and that it is back");

  // A code that is none.
  await page.$eval("[name=code]", field => field.value = "ZZZ-999");
  await Promise.all([page.waitForNavigation(), page.$eval("[name=code]", field => field.form.requestSubmit())]);
  assert.match(await text(page, "wrong"), /not valid/);
  assert.equal(await page.$eval("[name=code]", field => field.getAttribute("aria-describedby")), "wrong");
  await isAccessible(page, "waiting-code-wrong");
  await page.reload();
  assert.equal(await page.$("#wrong"), null);
  step("a code that is none is said to be none, once");

  // The place moves.
  await inside.end();
  await until("the first of the line is let in", () => before[0].isLetIn());
  begun = 1;
  await Promise.all([knock(), poll(page)]);
  await until("one less is ahead", async () => {
    await knock();
    return await ahead(page) === 7;
  });
  assert.ok(await page.$eval("#bar", bar => bar.value) >= 12, "an eighth of those ahead is an eighth of the wait");
  step("the place is seen to move");

  // The gateway is killed in the middle of it.
  gateway.kill("SIGKILL");
  await once(gateway, "exit");
  await start(new URL(origin).host);
  const late = new Visitor();
  assert.equal((await late.ask("/api")).status, 503);
  await until("the session that was let in goes on", async () => (await before[0].ask("/")).status === 200);
  await before[0].end();
  assert.ok(!(await late.isLetIn()), "a visitor who came after the restart is behind");
  await until("the second of the line is let in", () => before[1].isLetIn());
  begun = 2;
  await Promise.all([knock(), poll(page)]);
  await until("the browser is where it was", async () => {
    await knock();
    return await ahead(page) === 6;
  });
  step("killed and started again: those inside are inside, and the order is kept");

  // The tab is closed and opened again.
  await knock();
  await page.goto("about:blank");
  const again = await context.newPage();
  again.on("pageerror", error => errors.push(error.message));
  await page.close();
  await again.goto(origin + asked);
  assert.equal(await ahead(again), 6);
  step("a closed tab has lost nothing");

  // Without a script.
  await knock();
  await again.setJavaScriptEnabled(false);
  await again.goto("about:blank");
  const plain = await again.goto(origin + asked);
  assert.match(await plain.text(), /<noscript><meta http-equiv=refresh content=(60|10)><\/noscript>/);
  assert.equal(await ahead(again), 6);
  assert.equal(await again.$eval("#go", link => link.getAttribute("href")), "/concerts/42?seats=2&lang=en");
  await picture(again, "waiting-noscript");
  await again.setJavaScriptEnabled(true);
  await again.goto("about:blank");
  await again.goto(origin + asked);
  step("without a script everything is said, too");

  // What is told is not taken for news at once, nor taken back at once. Time is made to pass.
  assert.deepEqual(await again.evaluate(() => {
    const real = Date.now, seen = [];
    let late = 0;
    Date.now = () => real() + late * 1e3;
    for (const [after, high] of [[3, 100], [6, 160], [40, 100], [60, 120], [70, 130], [80, 110], [100, 99], [140, 90]]) {
      late = after;
      take({ ...now, state, eta_low_s: 50, eta_high_s: high });
      seen.push(!!slow);
    }
    Date.now = real;
    slow = 0;
    return seen;
  }), [false, false, false, false, true, true, true, false]);
  step("that it is slower is said after half a minute, from a quarter on, for a minute at least");

  // Next in line, for as long as those inside need: the page stays as it is.
  // Away from the gate, so that it is not there when one of those before it is not.
  await again.goto("about:blank");
  await before[1].end();
  for (const visitor of before.slice(2, -1)) {
    await until("the next one is let in", () => visitor.isLetIn());
    await visitor.end();
  }
  const last = before.at(-1);
  await until("the last one is let in", () => last.isLetIn());
  await again.goto(origin + asked);
  await again.evaluate(() => {
    window.stayed = true;
    document.querySelector("details").open = true;
    still.checked = true;
  });
  const asksToBegin = [];
  again.on("requestfinished", request => request.headers()["suimon-poll"] === "enter" && asksToBegin.push(request.url()));
  await until("it is next", async () => /next in line/.test(await text(again, "heading")));
  await until("it has asked to begin again and again", async () => asksToBegin.length >= 3);
  assert.ok(await again.evaluate(() => stayed && document.querySelector("details").open && still.checked), "nothing was loaded anew");
  assert.equal(await ahead(again), 0);
  assert.match(await again.title(), /Riverside Tickets/);
  await isAccessible(again, "next");
  await picture(again, "next");
  step("a visitor who is next stays on the page and is told so until there is room");

  // Its turn.
  await last.end();
  await until("it is the browser's turn", async () => (await again.title()) === "The shop" || /your turn/.test(await again.title()));
  await until("the page lets in by itself", async () => (await again.title()) === "The shop");
  assert.equal(again.url(), origin + asked);
  assert.equal(await text(again, "asked"), "GET /concerts/42?seats=2&lang=en");
  assert.doesNotMatch(await text(again, "cookies"), /suimon/, "the application sees no cookie of ours");
  assert.deepEqual(errors, []);
  step("it is let in, at the address it asked for, query and fragment kept");

  // What is posted is kept, in Japanese.
  const other = await browser.createBrowserContext();
  const form = await other.newPage();
  await form.setExtraHTTPHeaders({ "Accept-Language": "ja,en;q=0.5" });
  await form.goto(origin + "/form");
  assert.match(await form.$eval("html", html => html.lang), /^ja$/);
  assert.match(await text(form, "heading"), /順番|ご案内/);
  await picture(form, "waiting-ja");
  await form.evaluate(() => {
    const form = document.createElement("form");
    form.method = "post";
    form.action = "/order?kind=a";
    const field = document.createElement("textarea");
    field.name = "note";
    field.value = "<b>窓側</b>\n\"二枚\"";
    form.append(field);
    document.body.append(form);
  });
  await Promise.all([form.waitForNavigation(), form.evaluate(() => document.forms[document.forms.length - 1].submit())]);
  assert.equal(await form.$eval("#post [name=note]", field => field.value.replaceAll("\r\n", "\n")), "<b>窓側</b>\n\"二枚\"");
  await isAccessible(form, "waiting-post");
  await picture(form, "waiting-post-ja");
  const pageCookies = await again.cookies();
  await again.goto(origin + "/end");
  assert.ok(pageCookies.some(cookie => /suimon/.test(cookie.name)), "a session that had to wait has a lease");
  await until("those who came between are let in", () => late.isLetIn());
  await late.end();
  await poll(form);
  await until("it is the form's turn", async () => /順番/.test(await text(form, "heading")) && (await form.$eval("html", html => html.className)) === "your_turn");
  await picture(form, "your_turn-ja");
  await Promise.all([form.waitForNavigation(), form.click("#post button")]);
  assert.equal(await text(form, "asked"), "POST /order?kind=a");
  assert.equal(decodeURIComponent((await text(form, "sent")).replaceAll("+", " ")).replaceAll("\r\n", "\n"), "note=<b>窓側</b>\n\"二枚\"");
  await form.goto(origin + "/end");
  step("what was posted is kept, shown in Japanese, and sent by its button alone");

  // What operators say.
  const command = (...words) => new Promise((done, fail) => {
    const child = spawn(suimon, ["waiting-room", ...words, "--admin", admin], { stdio: ["ignore", "pipe", "inherit"] });
    child.on("exit", code => code === 0 ? done() : fail(new Error(`${words}: ${code}`)));
  });
  await command("pause");
  await command("say", "Back at about 15:10.");
  const waiting = await (await browser.createBrowserContext()).newPage();
  await waiting.goto(origin + "/");
  assert.match(await text(waiting, "heading"), /paused/);
  assert.match(await text(waiting, "message"), /15:10/);
  await isAccessible(waiting, "paused");
  await picture(waiting, "paused");
  await command("close");
  await poll(waiting);
  await until("everybody is told that it is over", async () => /closed/.test(await text(waiting, "heading")));
  await picture(waiting, "closed");
  await command("open", "--by-lot", "--at", new Date(Date.now() + 3_600_000).toISOString().slice(0, 19) + "Z");
  await waiting.goto(origin + "/");
  await until("the opening is announced", async () => /Opening/.test(await text(waiting, "heading")));
  assert.match(await waiting.$eval("code", part => part.textContent), /^[0-9a-f]{64}$/);
  assert.match(await text(waiting, "big"), /\d:\d\d/);
  await isAccessible(waiting, "opening");
  await picture(waiting, "opening");
  await command("open", "--by-lot", "--at", new Date(Date.now() + 300_000).toISOString().slice(0, 19) + "Z");
  await waiting.goto(origin + "/");
  await until("it is counted down", async () => /^[45]:\d\d$/.test(await text(waiting, "big")));
  const counted = await text(waiting, "big");
  await until("each second", async () => await text(waiting, "big") !== counted);
  await picture(waiting, "opening-soon");
  await command("resume");
  await poll(waiting);
  await until("the line moves again", async () => (await waiting.title()) === "The shop");
  step("paused, closed, opening and moving again are said as they are");

  // Those who would draw a number are asked for a pass.
  gateway.kill("SIGKILL");
  await once(gateway, "exit");
  await start(new URL(origin).host, 'pass_page = "/human"\npass_for = "everybody"');
  const holder = await (await browser.createBrowserContext()).newPage();
  await until("somebody waits", async () => {
    // All that comes by one connection is one client, so it is a browser that is inside.
    await holder.goto(origin + "/");
    return (await new Visitor().ask("/api")).status === 503;
  });
  const person = await (await browser.createBrowserContext()).newPage();
  await until("passes are asked for", async () => {
    await person.deleteCookie(...await person.cookies());
    await person.goto(origin + asked);
    return /One more step/.test(await text(person, "heading"));
  });
  await isAccessible(person, "pass");
  await picture(person, "pass");
  await Promise.all([person.waitForNavigation(), person.click("#go")]);
  assert.match(await text(person, "heading"), /in line|nearly there/);
  assert.equal(new URL(person.url()).pathname + new URL(person.url()).search, "/concerts/42?seats=2&lang=en");
  step("who draws a number may be asked for a pass, and comes back with it");

  console.log(`${shown} pictures in ${folder}`);
} finally {
  await browser.close();
  gateway?.kill("SIGKILL");
  app.close();
}
