// The dashboard: shows what the gateway says, each second, and computes nothing but pixels.
//
// Data: /api/history once for each range, then /api/events; of the site in ?site=NAME, or else the main one. A value that is not known is shown as –.
// Texts from the gateway only ever become text nodes.
"use strict";

const STALE_AFTER_MS = 3000;
const DAY_RELOAD_MS = 60_000;
const ROUTES_SHOWN = 20;
const DECISIONS_SHOWN = 200;
const SAMPLES_MAX = 1500;
/// The shortest time that a chart shows, seconds, and how far above all others a soft series may rise.
const SPAN_MIN_S = 120;
const SOFT_MAX = 2;
/// Other sites in trouble that are named at once, hosts that a site is said to serve, and the shortest time between two readings of what changes all the time.
const ELSEWHERE_SHOWN = 6;
const SERVES_SHOWN = 3;
const SPEAK_EVERY_MS = 15_000;
/// The site that the page is asked about.
const SITE = new URLSearchParams(location.search).get("site");

const $ = (id) => document.getElementById(id);

// ---- what is known ---------------------------------------------------------------------------

let live = null; // the newest state
let sites = []; // all sites in a line each; none where there is only one
let heardAt = 0; // when it came, by this machine's clock
let history = { step_seconds: 1, routes: [], samples: [] };
let decisions = []; // oldest first
let range = 900;

// ---- words -----------------------------------------------------------------------------------

const number = (value, digits = 0) =>
  value == null ? "–" : value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
const rate = (value) => (value == null ? "–" : number(value, value < 0.995 && value > 0 ? 2 : value < 10 ? 1 : 0));
const clock = (at) => new Date(at * 1000).toLocaleTimeString([], { hour12: false });

function time(seconds) {
  if (seconds == null) return "–";
  if (seconds < 0.0995) return `${number(seconds * 1000, seconds < 0.00995 ? 1 : 0)} ms`;
  if (seconds < 9.95) return `${number(seconds, seconds < 0.995 ? 2 : 1)} s`;
  if (seconds < 90) return `${number(seconds)} s`;
  if (seconds < 5400) return `${number(seconds / 60)} min`;
  if (seconds < 129_600) return `${number(seconds / 3600)} h`;
  return `${number(seconds / 86_400)} d`;
}

function waitRange(low, high) {
  if (low == null || high == null) return "unknown";
  if (high < 0.5) return "none";
  if (high < 90) return `${Math.floor(low)}–${Math.ceil(high)} s`;
  const [from, to] = [Math.floor(low / 60), Math.ceil(high / 60)];
  return from === to ? `${to} min` : `${from}–${to} min`;
}

function decided(decision) {
  const value = (it) => {
    if (it == null) return "none";
    if (decision.quantity === "interval") return it === 0 ? "open" : `one per ${time(it)}`;
    if (decision.quantity === "moving") return it === 0 ? "stopped" : "moving";
    if (decision.quantity === "cap") return it === 0 ? "none" : number(it, 2);
    return number(it);
  };
  return `${value(decision.old)} → ${value(decision.new)}`;
}

// ---- elements --------------------------------------------------------------------------------

function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  set(element, attributes);
  element.append(...children);
  return element;
}

function s(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  set(element, attributes);
  element.append(...children);
  return element;
}

function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
}

/// Writes a text only where it differs: what is selected, focused or read aloud stays.
function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/// Keeps one child of `box` for each item, in their order: made once, updated after that.
function each(box, items, key, make, update) {
  const known = box.known ?? (box.known = new Map());
  const wanted = new Set(items.map(key));
  for (const [name, element] of known) {
    if (!wanted.has(name)) {
      element.remove();
      known.delete(name);
    }
  }
  let before = box.firstElementChild;
  for (const item of items) {
    let element = known.get(key(item));
    if (!element) {
      element = make(item);
      known.set(key(item), element);
    }
    if (element === before) before = before.nextElementSibling;
    else box.insertBefore(element, before);
    update(element, item);
  }
}

/// Makes a row of a table; its cells are written by `cells`.
const row = (columns) => () =>
  h("tr", {}, h("th", { scope: "row" }), ...Array.from({ length: columns - 1 }, () => h("td")));

function cells(element, texts) {
  texts.forEach((text, at) => text != null && say(element.children[at], text));
}

// ---- the whole -------------------------------------------------------------------------------

function draw() {
  const state = live;
  if (!state) return;
  const { totals, verdict } = state;
  const sum = (of) => state.kinds.reduce((all, kind) => all + (of(kind) ?? 0), 0);
  const minute = (name) => sum((kind) => kind.last_minute[name]);

  drawVerdict(state, verdict);
  drawSites(state.site);
  say($("about"), `${location.host} · ${state.version} · up ${time(state.uptime_seconds)}`);

  say($("coming"), rate(minute("newcomers")));
  $("coming").append(unit("/s"));
  say($("coming-note"), totals.refused > 0 ? `${number(totals.refused)} refused since the start` : "newcomers, last minute");

  const worst = state.kinds.reduce((a, b) => ((b.in_line ?? b.held) > (a.in_line ?? a.held) ? b : a), state.kinds[0]);
  say($("in-line"), number(totals.in_line));
  const waited = worst?.wait.waited_p50_seconds;
  say($("in-line-note"), worst ? `a newcomer waits: ${waitRange(worst.wait.low_seconds, worst.wait.high_seconds)}${waited == null ? "" : ` · waited ${time(waited)} at p50`}` : "");

  say($("admitted"), rate(minute("admitted")));
  $("admitted").append(unit("/s"));
  const paced = worst?.interval_seconds;
  say($("admitted-note"), gateWords(worst) + (paced > 0 && worst.gate !== "open" ? `, one per ${time(paced)}` : ""));

  say($("inside"), number(totals.sessions_active));
  say($("inside-note"), `active sessions · ${number(totals.in_flight)} requests in flight, ${number(totals.queued)} queued`);

  const finished = minute("finished") + minute("silent") + minute("abandoned");
  say($("finished"), number(finished * 60));
  $("finished").append(unit("/min"));
  say($("finished-note"), "sessions that ended well or fell silent");
  const lost = minute("failed") * 60;
  say($("lost"), number(lost));
  $("lost").append(unit("/min"));
  $("lost-box").dataset.lost = lost >= 0.5 ? "some" : "none";
  say($("lost-note"), lost >= 0.5 ? "last request failed" : "nobody in the last minute");

  drawKinds(state);
  drawRoutes(state);
  drawNodes(state);
  drawServices(state);
  drawLines(state);
  drawOverrides(state);
  drawWhy();
  flow.draw();
  people.draw();
  if ($("route").open) drawRoute();
}

const unit = (text) => h("small", {}, ` ${text}`);

function gateWords(kind) {
  if (!kind) return "";
  const words = { open: "everyone at once", paced: "paced", full: "full", shut: "nobody", closed: "nobody" };
  const mode = kind.law === "open" ? "everyone at once (open)" : words[kind.gate] ?? kind.gate;
  return mode;
}

function drawVerdict(state, verdict) {
  const box = $("verdict");
  if (box.dataset.level !== verdict.level) box.dataset.level = verdict.level;
  say($("situation"), verdict.situation.replaceAll("_", " "));
  if (speaks(box, verdict)) {
    say($("sentence"), verdict.sentence);
    say($("since"), `since ${clock(verdict.since)}`);
  }
  const waiting = state.totals.in_line > 0 ? ` ${number(state.totals.in_line)}` : "";
  say(document.querySelector("title"), `${verdict.situation.replaceAll("_", " ")}${waiting} · ${state.site ? `${state.site} · ` : ""}${location.host}`);
  const colour = { ok: "177f5c", busy: "1a6fb5", warning: "c98a00", critical: "b8431a" }[verdict.level] ?? "6b7580";
  const shape = { ok: "<circle cx='8' cy='8' r='7'/>", busy: "<path d='M2 2h5v12H2zM9 2h5v12H9z'/>", warning: "<path d='M8 1l7 14H1z'/>" }[verdict.level] ?? "<path d='M3 1l5 5 5-5 2 2-5 5 5 5-2 2-5-5-5 5-2-2 5-5-5-5z'/>";
  const icon = `data:image/svg+xml,${encodeURIComponent(`<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16' fill='#${colour}'>${shape}</svg>`)}`;
  if ($("icon").href !== icon) $("icon").href = icon;
}

/// Returns whether it is time to write what a screen reader reads: when the situation changes, and not each second.
function speaks(box, { situation }) {
  if (box.situation === situation && Date.now() - box.spoken < SPEAK_EVERY_MS) return false;
  box.situation = situation;
  box.spoken = Date.now();
  return true;
}

// ---- sites -----------------------------------------------------------------------------------

/// Returns the path with the site that the page is about.
const ofSite = (path) => (SITE == null ? path : `${path}${path.includes("?") ? "&" : "?"}site=${encodeURIComponent(SITE)}`);
const linkTo = (name) => `?site=${encodeURIComponent(name)}`;
const served = (serves, most) => (serves.length === 0 ? "serves what no other site takes" : `serves ${serves.slice(0, most).join(", ")}${serves.length > most ? ", …" : ""}`);
const words = (situation) => situation.replaceAll("_", " ");

/// Shows all sites, where there are several, with the one named `shown` as the present one.
function drawSites(shown) {
  $("sites").hidden = sites.length === 0;
  say($("site"), shown ? `Suimon · ${shown}` : "Suimon");
  if (shown && SITE != null) say($("what-if"), `suimon sim --from ${location.origin} --from-site ${shown}`);
  const make = ({ name }) => h("li", {}, h("a", { href: linkTo(name) }, h("b", {}, name), h("span")));
  each($("sites").firstElementChild, sites, (it) => it.name, make, (element, { name, verdict, waiting, serves }) => {
    const link = element.firstChild;
    link.dataset.level = verdict.level;
    link.title = served(serves, Infinity);
    if (name === shown) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
    say(link.lastChild, `${words(verdict.situation)}${waiting > 0 ? `, ${number(waiting)} wait` : ""}`);
  });
  const present = sites.find((it) => it.name === shown);
  const sum = (of) => number(sites.reduce((all, it) => all + of(it), 0));
  const levels = ["critical", "warning", "busy", "ok"].map((level) => [level, sites.filter((it) => it.verdict.level === level).length]);
  const counts = levels.filter(([, count]) => count > 0).map(([level, count]) => `${count} ${level}`).join(", ");
  say($("sites-sum"), `${sites.length} sites: ${counts} · ${sum((it) => it.waiting)} wait · ${sum((it) => it.in_flight)} requests in flight${present ? ` · ${shown} ${served(present.serves, SERVES_SHOWN)}` : ""}`);

  // Whoever looks at one site is told where another one needs somebody.
  const troubled = ["critical", "warning"].flatMap((level) => sites.filter((it) => it.name !== shown && it.verdict.level === level));
  const makeOther = ({ name }) => h("p", {}, h("a", { href: linkTo(name) }, name), h("strong"), h("span"));
  each($("elsewhere"), troubled.slice(0, ELSEWHERE_SHOWN), (it) => it.name, makeOther, (element, { verdict }) => {
    element.dataset.level = verdict.level;
    if (!speaks(element, verdict)) return;
    say(element.children[1], words(verdict.situation));
    say(element.children[2], verdict.sentence);
  });
}

/// Says that there is no site of the name in the address, and which there are.
async function noSuchSite(why) {
  say($("situation"), "no such site");
  say($("sentence"), why);
  const answer = await fetch("/api/sites");
  if (answer.ok) ({ sites } = await answer.json());
  drawSites(null);
}

function drawKinds(state) {
  $("kinds-box").hidden = state.kinds.length < 2;
  each($("kinds").tBodies[0], state.kinds, (kind) => kind.name, row(8), (element, kind) => {
    const { newcomers, finished, silent, abandoned, failed } = kind.last_minute;
    cells(element, [
      kind.name, gateWords(kind), rate(newcomers), number(kind.in_line ?? kind.held), waitRange(kind.wait.low_seconds, kind.wait.high_seconds),
      number(kind.active), rate(finished + silent + abandoned), number(failed * 60),
    ]);
  });
}

// ---- routes ----------------------------------------------------------------------------------

function drawRoutes(state) {
  const busy = (route) => route.in_flight + 10 * route.queued + route.rate;
  const shown = state.routes.length <= ROUTES_SHOWN
    ? state.routes
    : [...state.routes].sort((a, b) => busy(b) - busy(a)).slice(0, ROUTES_SHOWN);
  each($("routes").tBodies[0], shown, (route) => route.name, makeRoute, updateRoute);
  const hidden = state.routes.length - shown.length;
  say($("routes-more"), hidden > 0 ? `The ${ROUTES_SHOWN} busiest; ${hidden} more in /api/state.` : "");
}

function makeRoute(route) {
  const name = h("button", { class: "link", type: "button", onclick: () => openRoute(route.name) }, route.name);
  const gauge = h("span", { class: "gauge", "aria-hidden": "true" }, h("i"));
  const spark = s("svg", { class: "spark", viewBox: "0 0 100 24", preserveAspectRatio: "none", "aria-hidden": "true" }, s("path"));
  return h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, gauge, h("span"), " ", h("span", { class: "tag", hidden: "" })),
    h("td"), h("td"), h("td"), h("td"), h("td", {}, spark));
}

function updateRoute(element, route) {
  element.dataset.calm = route.in_flight === 0 && route.queued === 0 ? "yes" : "no";
  const use = element.children[1];
  const share = route.limit ? Math.min(1, route.in_flight / route.limit) : 0;
  use.children[0].dataset.full = share >= 1 ? "yes" : "no";
  use.querySelector("i").style.width = `${100 * share}%`;
  say(use.children[1], `${number(route.in_flight)} of ${route.limit == null ? "no limit" : number(route.limit)}`);
  use.children[2].hidden = !route.mode || route.mode === "enforce";
  say(use.children[2], route.mode ?? "");
  const pair = ({ p50, p99 }) => (p50 == null ? "–" : `${time(p50)} · ${time(p99)}`);
  cells(element, [null, null, number(route.queued), rate(route.rate), pair(route.waited), pair(route.upstream)]);
  const at = history.routes.indexOf(route.name);
  const values = at < 0 ? [] : history.samples.slice(-120).map((it) => it.routes[at]?.limit ?? null);
  const most = Math.max(1, ...values.filter((it) => it != null));
  element.querySelector("path").setAttribute("d", steps(values.map((value, x) => [(100 * x) / Math.max(1, values.length - 1), value == null ? null : 23 - (22 * value) / most])));
}

let chosen = null;

function openRoute(name) {
  chosen = name;
  say($("route-name"), name);
  drawRoute();
  $("route").showModal();
}

function drawRoute() {
  const route = live.routes.find((it) => it.name === chosen);
  if (!route) return;
  limitChart.draw();
  const parts = [
    `${number(route.in_flight)} of ${route.limit == null ? "no limit" : number(route.limit)} in flight`, `${number(route.queued)} queued`,
    `${rate(route.rate)} completed /s`, `${time(route.service_seconds)} in the application`,
    `${number(route.failed)} failed, ${number(route.abandoned)} abandoned, ${number(route.refused)} refused since the start`,
  ];
  if (route.orphaned > 0) parts.push(`${number(route.orphaned)} orphaned`);
  say($("route-facts"), parts.join(" · "));
  const own = decisions.filter((it) => it.subject === "route" && it.name === chosen);
  each($("route-why"), own.slice(-8).reverse(), (it) => it.id, makeDecision, () => {});
  const box = $("route-actions");
  const pinned = (live.overrides ?? []).find((it) => it.subject === "route" && it.name === chosen);
  const wanted = `${live.takes_commands}|${route.mode}|${pinned?.id}`;
  if (box.wanted === wanted) return;
  box.wanted = wanted;
  box.replaceChildren();
  if (!live.takes_commands || !route.mode) return;
  if (pinned) box.append(action(`Release (${pinned.set} ${pinned.value})`, () => release(pinned)));
  box.append(action("Pin the limit…", () => pin(route)));
  if (route.mode === "enforce") box.append(action("Observe only…", () => mode(route, "observe")));
  if (route.mode === "observe") box.append(action("Enforce…", () => mode(route, "enforce")));
}

// ---- why -------------------------------------------------------------------------------------

function drawWhy() {
  const [list, box] = [$("why"), $("why-box")];
  if (list.newest === decisions.at(-1)?.id) return;
  list.newest = decisions.at(-1)?.id;
  const shown = decisions.slice(-DECISIONS_SHOWN).reverse();
  // What somebody reads further down stays where it is.
  const from = box.scrollTop > 8 ? box.scrollHeight - box.scrollTop : null;
  each(list, shown, (it) => it.id, makeDecision, () => {});
  if (from != null) box.scrollTop = box.scrollHeight - from;
}

function makeDecision(decision) {
  const why = decision.for_route ? `${decision.explanation} (${decision.for_route})` : decision.explanation;
  const signals = Object.entries(decision.signals).filter(([name]) => name !== "route");
  const item = h("li", {}, h("time", { datetime: new Date(decision.at * 1000).toISOString() }, clock(decision.at)),
    h("b", {}, decision.name || decision.subject), ` ${decided(decision)}`, h("p", {}, why));
  if (signals.length > 0) {
    const numbers = signals.map(([name, value]) => `${name} ${value == null ? "?" : number(value, Math.abs(value) < 10 ? 3 : 1)}`);
    item.append(h("details", {}, h("summary", {}, "numbers"), numbers.join(" · ")));
  }
  return item;
}

// ---- application, waiting room ---------------------------------------------------------------

function drawNodes(state) {
  const make = () => {
    const element = row(6)();
    element.children[5].append(h("button", { type: "button", class: "link", hidden: "" }));
    return element;
  };
  each($("nodes").tBodies[0], state.nodes, (node) => node.address, make, (element, node) => {
    element.children[1].className = node.status;
    element.children[1].title = node.explanation;
    const sign = { up: "●", down: "✖", ejected: "✖", draining: "◌" }[node.status] ?? "○";
    const left = node.ejected_for_seconds ?? node.slow_start_for_seconds;
    const why = node.status === "up" ? (left == null ? "" : ": slow start") : `: ${node.explanation}`;
    const [name, inFlight] = node.in_process ? ["in this process", state.totals.in_flight] : [node.address, node.in_flight];
    cells(element, [name, `${sign} ${node.status}${why}${left == null ? "" : ` (${time(left)} left)`}`, number(inFlight), number(node.share, 2), time(node.for_seconds)]);
    const button = element.children[5].firstChild;
    const drained = (state.overrides ?? []).find((it) => it.subject === "node" && it.name === node.address);
    button.hidden = !state.takes_commands || !state.overrides || node.in_process === true;
    say(button, drained ? "Use again" : "Drain…");
    button.onclick = () => (drained ? release(drained) : drain(node));
  });
  const { scaling } = state;
  say($("nodes-title"), scaling ? `Application: ${scaling.serving} nodes serve, ${scaling.wanted} wanted` : "Application");
}

function drawServices(state) {
  const services = state.services ?? [];
  $("services-box").hidden = services.length === 0;
  each($("services"), services, (it) => it.name, () => h("li"), (element, it) => say(element,
    `${it.name}: ${number(100 * it.share)} % of the work, ${number(it.slowdown, 2)} × as long as alone (wished ${number(it.slowdown_wished, 2)}); ${it.explanation}`));
  const pools = state.pools ?? [];
  $("pools-box").hidden = pools.length === 0;
  each($("pools"), pools, (it) => it.name, () => h("li"), (element, it) => say(element,
    `${it.name}: ${it.busy} of ${it.ready} workers busy, ${it.wanted} wanted, ${it.queued} requests wait${it.unhealthy ? `; ${it.unhealthy}` : ""}`));
}

function drawLines(state) {
  const lines = state.kinds.filter((kind) => kind.line);
  const box = $("lines");
  if (lines.length === 0) return box.replaceChildren(h("p", { class: "note" }, "There is no line: newcomers are held for seconds, or refused."));
  const make = ({ name }) => h("div", {}, h("p"), h("p", { class: "note" }), h("p", { class: "buttons" },
    action("Pause…", () => command(name, "pause")), action("Resume…", () => command(name, "resume")), action("Say…", () => command(name, "say")),
    action("Open at…", () => command(name, "open")), action("Close…", () => command(name, "close"))));
  each(box, lines, (kind) => kind.name, make, (element, { name, line }) => {
    const until = line.opens_at ? ` at ${clock(line.opens_at)}` : "";
    say(element.children[0], `${lines.length > 1 ? `${name}: ` : ""}${line.state.replaceAll("_", " ")}${until} · ${number(line.present)} present · ${number(line.issued)} numbers given, ${number(line.admitted)} admitted`);
    say(element.children[1], line.message ? `Message: “${line.message}”` : "No message.");
    element.children[2].hidden = !state.takes_commands;
  });
}

function drawOverrides(state) {
  const overrides = state.overrides ?? [];
  $("gate-actions").hidden = !state.takes_commands || overrides.some((it) => it.subject === "gate");
  $("overrides-box").hidden = overrides.length === 0;
  const make = (it) => h("li", {}, h("span"), " ", action("Release", () => release(it)));
  each($("overrides"), overrides, (it) => it.id, make, (element, it) => {
    say(element.firstChild, `${it.name || it.subject}: ${it.set} ${it.value}, until ${clock(it.until)}, by ${it.who}${it.why ? ` (${it.why})` : ""}`);
    element.lastChild.hidden = !state.takes_commands;
  });
}

// ---- commands --------------------------------------------------------------------------------

const action = (text, onclick) => h("button", { type: "button", onclick }, text);

/// Asks first, with fields if there are any; returns their values, or null.
async function confirmed(title, text, yes, fields = []) {
  const dialog = $("confirm");
  say($("confirm-title"), title);
  say($("confirm-text"), live.site ? `Site ${live.site}: ${text}` : text);
  say($("confirm-yes"), yes);
  $("confirm-fields").replaceChildren(...fields.map(({ name, label, ...more }) => h("label", {}, label, h("input", { name, ...more }))));
  dialog.returnValue = "no";
  dialog.showModal();
  await new Promise((done) => dialog.addEventListener("close", done, { once: true }));
  if (dialog.returnValue !== "yes") return null;
  return Object.fromEntries([...dialog.querySelectorAll("input")].map((input) => [input.name, input.value]));
}

async function post(path, body, done) {
  try {
    const answer = await fetch(ofSite(path), { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
    tell(answer.ok ? done : `Not done: ${(await answer.text()).trim()}`);
  } catch (error) {
    tell(`Not done: ${error.message}`);
  }
}

let silence;
function tell(text) {
  say($("said"), text);
  clearTimeout(silence);
  silence = setTimeout(() => say($("said"), ""), 8000);
}

const WHO = { name: "who", label: "Your name, for the log", maxlength: 64 };
const WHY = { name: "why", label: "Why (optional)", maxlength: 200 };
const FOR = { name: "minutes", label: "For how many minutes", type: "number", min: 1, max: 1440, value: 60, required: "" };
const lasting = ({ who, why, minutes }) => ({ for_s: 60 * Number(minutes), ...(who && { who }), ...(why && { why }) });

async function command(kind, order) {
  const { line, in_line } = live.kinds.find((it) => it.name === kind);
  const people = `${number(in_line ?? line.present)} people wait.`;
  const [title, text, field] = {
    pause: ["Pause the line?", `Nobody is admitted until you resume it. ${people} They keep their places and are told.`],
    resume: ["Let the line move?", people],
    say: ["Say to all who wait", `${people} They see the message with their place. Empty: no message.`, { name: "message", label: "Message", value: line.message, maxlength: 500 }],
    open: ["Open the line at a time", `Numbers are given, and nobody is admitted before. ${people}`, { name: "at", label: "Opens at (your local time)", type: "datetime-local", step: 1, required: "" }],
    close: ["Close the line?", `All who wait are told that there is nothing to wait for any more. ${people}`],
  }[order];
  const given = await confirmed(title, text, order === "say" ? "Say" : order[0].toUpperCase() + order.slice(1), field ? [field] : []);
  if (!given) return;
  const more = order === "say" ? { message: given.message } : order === "open" ? { at: new Date(given.at).getTime() / 1000 } : {};
  await post("/api/waiting-room", { kind, order, ...more }, `Done: ${title.replace(/\?$/, "")}.`);
}

async function pin(route) {
  const text = `The law stops moving the limit of ${route.name}, which is ${number(route.limit)} now. What it has learned is kept.`;
  const given = await confirmed("Pin the limit?", text, "Pin", [{ name: "limit", label: "Limit", type: "number", min: 1, max: 100000, value: route.limit ?? 8, required: "" }, FOR, WHO, WHY]);
  if (given) await post("/api/override", { route: route.name, limit: Number(given.limit), ...lasting(given) }, `${route.name} is pinned at ${given.limit}.`);
}

async function mode(route, mode) {
  const text = mode === "observe" ? "Requests of this route are measured and no longer limited." : "Requests of this route wait for a slot.";
  const given = await confirmed(`${mode === "observe" ? "Observe" : "Enforce"} ${route.name}?`, text, mode === "observe" ? "Observe" : "Enforce", [FOR, WHO, WHY]);
  if (given) await post("/api/override", { route: route.name, mode, ...lasting(given) }, `${route.name}: ${mode}.`);
}

async function drain(node) {
  const given = await confirmed(`Drain ${node.address}?`, `It gets no new sessions; its ${number(node.in_flight)} requests finish.`, "Drain", [FOR, WHO, WHY]);
  if (given) await post("/api/override", { node: node.address, drain: true, ...lasting(given) }, `${node.address} drains.`);
}

async function openGate() {
  const text = `Nobody is held at the session gate any more, whatever the application can do: ${number(live.totals.in_line)} people in line come in at once. Routes keep their limits.`;
  const given = await confirmed("Admit everyone?", text, "Admit everyone", [FOR, WHO, WHY]);
  if (given) await post("/api/override", { gate: "open", ...lasting(given) }, "The session gate is open.");
}

async function release(override) {
  const given = await confirmed("Release?", `${override.name || override.subject}: ${override.set} ${override.value} ends now, and the law goes on with what it had learned.`, "Release");
  if (given) await post("/api/override", { release: override.id }, "Released.");
}

// ---- charts ----------------------------------------------------------------------------------

/// Returns a path along points; null breaks it.
function path(points) {
  let text = "";
  let down = false;
  for (const [x, y] of points) {
    if (y == null) down = false;
    else {
      text += `${down ? "L" : "M"}${x.toFixed(2)} ${y.toFixed(2)}`;
      down = true;
    }
  }
  return text;
}

/// The same in steps: a value holds until the next one.
function steps(points) {
  const corners = [];
  points.forEach(([x, y], at) => {
    const before = points[at - 1];
    if (before?.[1] != null && y != null) corners.push([x, before[1]]);
    corners.push([x, y]);
  });
  return path(corners);
}

/// A chart in `figure`. `series`: {name, hue, of(sample), show(value)?, area?, steps?, soft?}; `marks()`: decisions under it. A soft
/// series may leave the picture: a rush of newcomers would press all others to the ground.
class Chart {
  constructor(figure, series, marks) {
    Object.assign(this, { series, marks, width: 600, height: 176, left: 40, bottom: 22 });
    figure.querySelector("figcaption").append(...series.map(({ name, hue }) => h("b", { class: hue }, name)));
    this.svg = s("svg", { class: "plot", role: "img", tabindex: "0", "aria-label": "no numbers yet" });
    this.reading = h("p", { class: "reading", "aria-live": "off" });
    this.table = h("details", {}, h("summary", { class: "note" }, "As a table"), h("div", { class: "scroll" }));
    figure.append(this.svg, this.reading, this.table);
    this.table.addEventListener("toggle", () => this.draw());
    this.svg.addEventListener("pointermove", (event) => this.read(this.sampleAt(event.clientX)));
    this.svg.addEventListener("pointerleave", () => this.read(null));
    this.svg.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -60, PageDown: 60, Home: -1e9, End: 1e9 }[event.key];
      if (by == null) return;
      event.preventDefault();
      const last = history.samples.length - 1;
      this.read(Math.max(0, Math.min(last, (this.cursor ?? last) + by)));
    });
  }

  draw() {
    const box = this.svg.getBoundingClientRect();
    if (box.width > 0) this.width = box.width;
    const { width, height, left, bottom, svg } = this;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const { samples } = history;
    const to = samples.at(-1)?.at ?? Date.now() / 1000;
    const span = Math.min(range, Math.max(SPAN_MIN_S, to - (samples[0]?.at ?? to)));
    this.from = to - span;
    this.span = span;
    const values = this.series.map(({ of }) => samples.map(of));
    const peak = (wanted) => Math.max(0, ...values.filter((_, at) => wanted(this.series[at])).flat().filter((it) => it != null));
    const all = peak(() => true);
    const hard = peak((it) => !it.soft);
    const most = nice(hard > 0 ? Math.min(all, SOFT_MAX * hard) : all);
    const x = (at) => left + ((at - this.from) / span) * (width - left - 4);
    const y = (value) => height - bottom - Math.min(value / most, 1.03) * (height - bottom - 8);
    this.x = x;
    const parts = [];
    for (const share of [0, 0.5, 1]) {
      parts.push(s("line", { class: "grid", x1: left, x2: width - 4, y1: y(share * most), y2: y(share * most) }));
      parts.push(s("text", { x: left - 6, y: y(share * most) + 4, "text-anchor": "end" }, number(share * most, most < 2 ? 1 : 0)));
    }
    const ticks = width < 420 ? 3 : 5;
    for (let at = 0; at < ticks; at++) {
      const when = this.from + (span * (at + 0.5)) / ticks;
      const label = new Date(when * 1000).toLocaleTimeString([], { hour12: false, hour: "2-digit", minute: "2-digit", ...(span < 600 && { second: "2-digit" }) });
      parts.push(s("text", { x: x(when), y: height - 5, "text-anchor": "middle" }, label));
    }
    this.series.forEach(({ hue, area, steps: inSteps }, at) => {
      const points = samples.map((sample, place) => [x(sample.at), values[at][place] == null ? null : y(values[at][place])]);
      if (area) {
        const line = path(points);
        const base = y(0);
        if (line) parts.push(s("path", { class: `area ${hue}`, d: `${line}L${x(to)} ${base}L${points[0][0]} ${base}Z` }));
      } else parts.push(s("path", { class: `line ${hue}`, d: inSteps ? steps(points) : path(points) }));
    });
    for (const decision of this.marks?.() ?? []) {
      if (decision.at < this.from || decision.at > to + 2) continue;
      const text = `${clock(decision.at)} ${decision.name} ${decided(decision)}: ${decision.explanation}`;
      parts.push(s("circle", { class: "mark", r: 3.5, cx: x(Math.min(decision.at, to)), cy: height - bottom, onpointerenter: () => say(this.reading, text) }, s("title", {}, text)));
    }
    this.line = s("line", { class: "cursor", y1: 4, y2: height - bottom });
    svg.replaceChildren(...parts, this.line);
    svg.setAttribute("aria-label", this.summary(values));
    if (this.cursor != null) this.read(this.cursor);
    if (this.table.open) this.drawTable(values);
  }

  summary(values) {
    const last = values.map((it) => it.at(-1));
    return this.series.map(({ name, show }, at) => `${name} ${last[at] == null ? "unknown" : (show ?? rate)(last[at])}`).join(", ");
  }

  sampleAt(clientX) {
    const box = this.svg.getBoundingClientRect();
    const at = this.from + (((clientX - box.left) / box.width) * this.width - this.left) / (this.width - this.left - 4) * this.span;
    const { samples } = history;
    let best = samples.length - 1;
    while (best > 0 && samples[best - 1].at >= at) best--;
    return best;
  }

  /// Shows one moment, on all charts that share the time.
  read(place) {
    for (const chart of [flow, people, limitChart]) chart.point(place);
  }

  point(place) {
    this.cursor = place;
    const sample = place == null ? null : history.samples[place];
    if (!this.line) return;
    this.line.style.visibility = sample ? "visible" : "hidden";
    if (!sample) return say(this.reading, "");
    const x = this.x(sample.at);
    this.line.setAttribute("x1", x);
    this.line.setAttribute("x2", x);
    const words = this.series.map(({ name, of, show }) => `${name} ${of(sample) == null ? "–" : (show ?? rate)(of(sample))}`);
    const near = this.marks?.().filter((it) => it.at <= sample.at).at(-1);
    const why = near ? ` · ${decided(near)}: ${near.explanation}` : "";
    say(this.reading, `${clock(sample.at)} · ${words.join(" · ")}${this.tellsWhy ? why : ""}`);
  }

  drawTable(values) {
    const every = Math.max(1, Math.floor(history.samples.length / 15));
    const rows = history.samples.map((sample, at) => [sample, at]).filter(([, at]) => at % every === 0);
    this.table.lastChild.replaceChildren(h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Time"), ...this.series.map(({ name }) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, ...rows.map(([sample, at]) => h("tr", {}, h("th", { scope: "row" }, clock(sample.at)), ...values.map((it, of) => h("td", {}, it[at] == null ? "–" : (this.series[of].show ?? rate)(it[at]))))))));
  }
}

/// Returns the next round number that is at least `value`.
function nice(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 6, 8, 10].map((it) => it * power).find((it) => it >= value * 0.999);
}

const gates = () => decisions.filter((it) => it.subject === "kind");
const flow = new Chart($("flow"), [
  { name: "coming", hue: "grey", soft: true, of: (it) => it.newcomers },
  { name: "admitted", hue: "blue", of: (it) => it.admitted },
  { name: "finished", hue: "green", of: (it) => it.finished },
  { name: "lost inside", hue: "red", area: true, of: (it) => it.failed },
], gates);
const people = new Chart($("people"), [
  { name: "in line", hue: "amber", show: number, of: (it) => it.in_line },
  { name: "inside", hue: "blue", show: number, of: (it) => it.active },
]);
const ofRoute = (of) => (sample) => {
  const route = sample.routes[history.routes.indexOf(chosen)];
  return route ? of(route) : null;
};
const limitChart = new Chart($("route-limit"), [
  { name: "limit", hue: "blue", show: number, steps: true, of: ofRoute((it) => it.limit) },
  { name: "in flight", hue: "green", show: number, of: ofRoute((it) => it.in_flight) },
  { name: "queued", hue: "amber", show: number, soft: true, of: ofRoute((it) => it.queued) },
], () => decisions.filter((it) => it.subject === "route" && it.name === chosen));
limitChart.tellsWhy = true;

// ---- what comes ------------------------------------------------------------------------------

async function load() {
  const asked = range;
  const answer = await fetch(ofSite(`/api/history?seconds=${asked}`));
  if (answer.status === 404 && SITE != null) return noSuchSite((await answer.text()).trim());
  if (!answer.ok) throw new Error(`/api/history: ${answer.status}`);
  const loaded = await answer.json();
  if (asked !== range) return;
  history = loaded;
  learn(loaded.decisions);
  draw();
}

function learn(more) {
  const newest = decisions.at(-1)?.id ?? 0;
  const oldest = decisions[0]?.id ?? Infinity;
  decisions = [...more.filter((it) => it.id < oldest && newest > 0), ...decisions, ...more.filter((it) => it.id > newest)];
  decisions = decisions.slice(-2000);
}

function heard(event) {
  const { state, sample, sites: all = [] } = JSON.parse(event.data);
  // A gateway that has started anew counts from 1 again.
  if (live && state.started_at > live.started_at + 2) {
    decisions = [];
    load().catch(() => {});
  }
  live = state;
  sites = all;
  heardAt = Date.now();
  learn(state.decisions);
  if (sample && history.step_seconds === 1 && sample.at > (history.samples.at(-1)?.at ?? 0)) {
    history.samples.push(sample);
    history.routes = state.routes.map((route) => route.name).slice(0, sample.routes.length);
    if (history.samples.length > SAMPLES_MAX) history.samples.splice(0, history.samples.length - SAMPLES_MAX);
    const oldest = sample.at - 900;
    while (history.samples[0].at < oldest) history.samples.shift();
  }
  fresh();
  draw();
}

function fresh() {
  const silent = Date.now() - heardAt;
  const state = heardAt === 0 ? "waiting" : silent > STALE_AFTER_MS ? "stale" : "live";
  $("live").dataset.state = state;
  document.documentElement.classList.toggle("stale", state === "stale");
  say($("live"), { waiting: "connecting", live: "live", stale: `last heard ${time(silent / 1000)} ago; trying again` }[state]);
}

function listen() {
  const stream = new EventSource(ofSite("/api/events"));
  stream.addEventListener("state", heard);
  // After a gap: what was missed is in the history.
  stream.addEventListener("open", () => heardAt > 0 && load().catch(() => {}));
  stream.addEventListener("error", () => {
    // The browser tries again by itself, unless it was refused.
    if (stream.readyState === EventSource.CLOSED) {
      stream.close();
      setTimeout(listen, 2000);
    }
  });
}

for (const choice of document.querySelectorAll(".range input")) {
  choice.addEventListener("change", () => {
    range = Number(choice.value);
    load().catch((error) => tell(`The history cannot be had: ${error.message}`));
  });
}
$("open-gate").addEventListener("click", openGate);
addEventListener("resize", draw);
setInterval(fresh, 1000);
setInterval(() => range > 900 && load().catch(() => {}), DAY_RELOAD_MS);
say($("what-if"), `suimon sim --from ${location.origin}`);
load().catch((error) => tell(`The history cannot be had: ${error.message}`)).finally(listen);
