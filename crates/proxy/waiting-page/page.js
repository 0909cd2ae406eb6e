// The waiting page's script. It asks after the place without reloading, says what has changed, and lets in when the turn comes; without it
// everything can still be read and done. Served inline, after stripping: whole-line comments, indentation, spaces around marks.
//
// The parts of the page are called by their ids, which HTML makes names of the window: icon owner leaf heading big sub bar notes lead message
// post go time boxes ask tell still give code say alarm texts. Those that a page may lack are asked for as `self.post`.

// Boxes that would do nothing without a script wait as text, so that not even a text browser shows them before.
boxes.outerHTML = boxes.textContent;

// Digits are written as the server writes them, in Arabic too.
const root = document.documentElement, locale = root.lang + "-u-nu-latn", words = JSON.parse(texts.textContent), headers = { Accept: "application/json" };
const site = owner.textContent.trim(), calm = icon.href, waited = bar.value, short = { timeStyle: "short" };
const clock = (time, style) => new Date(time).toLocaleTimeString(locale, style);

let state = root.className, heard = 0, misses = 0, asked = Date.now(), said = asked, store = {};
let now, turn, best, least, first, told, tabs, gone, timer, going, sound;
// The words of the state the page was written in are in the page.
words[state] = [heading.textContent, lead.textContent];

// The one rule of rounding, the server's too: minutes up to 15, fives up to 90, then half hours; the lower bound down, the upper one up, so
// that what is said is never narrower than what is known. Returns it for the page and for the title.
function range(low, high) {
  const unit = high > 5400 ? 3600 : 60, step = unit > 60 ? 1800 : high > 900 ? 300 : 60;
  const from = Math.floor(low / step) * step, to = Math.max(Math.ceil(high / step) * step, from + step);
  const [a, b] = [from, to].map(n => (n / unit).toLocaleString(locale)), [text, name] = words[unit];
  return high > 60 ? [text.replace("{a}", a).replace("{b}", b), a + "–" + b + name] : [words.minute, "<1" + name];
}

// Shows what is known; also called when a wish has changed, or the connection. Before the first answer the page stays as it was written.
function show() {
  if (!heard) return;
  const fresh = state !== now.state, high = now.eta_high_s, ahead = now.ahead_present;
  // A page written without a place, or met by a state it has no words for, is written anew; with something posted in it, it stays as it is.
  if (fresh && !(words[now.state] && (self.give || self.post))) return self.post || enter();
  root.className = state = now.state;
  turn = state === "your_turn";
  const asking = turn && (self.post || ask.checked);
  let [heading, lead] = words[state], big = "", sub = "", title = "";
  if (asking) lead = now.expires_at ? words.held.replace("{t}", clock(now.expires_at, short)) : "";
  if (state === "opening") {
    // Counted on the server's clock.
    const opens = new Date(now.opens_at), left = opens - new Date(now.updated_at), far = left > 54e5;
    big = title = clock(opens, short);
    sub = opens.toLocaleString(locale, { dateStyle: "full", timeStyle: "long" }) + " · " +
      new Intl.RelativeTimeFormat(locale).format(Math.round(left / (far ? 36e5 : 6e4)) || 1, far ? "hour" : "minute");
  }
  if (high >= 0) {
    [big, title] = range(now.eta_low_s || 0, high);
    // A longer wait is never shown without a word; a tenth is no news.
    if (high > least * 1.1) now.slower = true;
    if (high < least) least = high;
    // The share of the wait that is over only ever grows.
    first = first || high;
    bar.value = Math.max(bar.value, 100 - (100 - waited) * high / first);
  }
  if (ahead >= 0) {
    if (ahead < best) best = ahead;
    sub = words.ahead.replace("{n}", best.toLocaleString(locale));
  }
  const notes = [now.slower && words.slower, tabs && words.tabs, misses > 1 && words.lost].filter(Boolean).join(" ");
  const shown = { heading, big, sub, notes, lead, message: now.message || "", go: turn ? words.enter : words.check, time: clock(now.updated_at || heard) };
  // What has not changed is not touched, so that a selection and a reader's place survive. Numbers stand out.
  for (const name in shown) {
    const part = self[name];
    if (part && part.textContent !== shown[name]) {
      part.textContent = shown[name];
      part.innerHTML = part.innerHTML.replace(/\d[\d.,:]*/g, "<b>$&</b>");
    }
  }
  document.title = (title ? `(${title}) ` : heading + " – ") + site;
  leaf.style.transform = `translateY(${turn ? -24 : bar.value * -.24}px)`;

  // Read out at once when the state changes, else once a minute if there is something new.
  const news = [heading, big, sub, notes, now.message, fresh && lead].filter(Boolean).join(". ");
  if (fresh || news !== told && Date.now() - said > 6e4) {
    said = Date.now();
    (turn ? alarm : say).textContent = told = news;
  }
  // Time enough to hear it, and to tick the box; none for whoever comes from the gate.
  clearTimeout(going);
  going = turn && !asking && setTimeout(enter, now.enter_after_s * 1e3);
  if (fresh) {
    icon.href = turn ? calm.replace("2f8fb3", "e8590c") : calm;
    if (turn && tell.checked) {
      chime();
      // Last, because on some phones it may not be made here.
      new Notification(document.title);
    }
  }
}

function chime() {
  const tone = new OscillatorNode(sound), gain = new GainNode(sound, { gain: .2 });
  tone.connect(gain).connect(sound.destination);
  gain.gain.setTargetAtTime(0, sound.currentTime, .3);
  tone.start();
  tone.stop(sound.currentTime + 2);
}

// The same address once more, its query and fragment kept. What was posted never goes by itself: its button sends it.
function enter() {
  gone = true;
  // What was posted and is lost is not posted again by a reload.
  if (!self.post) return self.lost ? location.replace(go.href) : location.reload();
  now = { state: "your_turn" };
  heard = asked;
  show();
}

async function poll() {
  // Should nothing come back at all, this asks again.
  later(60);
  if (gone || going) return;
  asked = Date.now();
  let rest = 0;
  try {
    // Whoever holds no place is answered by what the page says.
    const reply = await fetch(location, { headers: { ...headers, "Suimon-Poll": state }, cache: "no-store", redirect: "manual" }), answer = await reply.json().catch(() => 0) || 0;
    rest = +reply.headers.get("Retry-After");
    if (answer.poll_after_s || !reply.ok && answer.state) {
      // After ten minutes without an answer the best seen counts no more: the place may be another.
      if (asked - heard > 6e5) best = least = 1 / 0;
      heard = asked;
      misses = 0;
      now = answer;
      show();
      rest = answer.poll_after_s || rest;
    } else if (reply.status > 499) throw 0;
    // Whatever else is not ours is the application's: the gate is open.
    else if (reply.status !== 429) return enter();
  } catch (e) {
    misses++;
    show();
    rest = Math.max(rest, Math.min(60, 2 ** misses + 9 * Math.random()));
  }
  later(rest || 30);
}

function later(seconds) {
  clearTimeout(timer);
  timer = setTimeout(poll, seconds * 1e3);
}

// Whoever comes back to the page sees how things stand.
document.onvisibilitychange = ononline = onpageshow = () => document.hidden || Date.now() - asked < 2e3 || poll();
if (self.go && state !== "pass") go.onclick = () => {
  (turn ? enter : poll)();
  return false;
};

// Wishes. That to be asked outlasts a reload, unless storage is forbidden.
try { store = sessionStorage; } catch (e) {}
ask.checked = store.suimon;
ask.onchange = () => {
  store.suimon = ask.checked || "";
  show();
};
tell.onchange = () => {
  if (tell.checked) {
    sound = new AudioContext();
    chime();
    Notification.requestPermission();
  }
};
if (self.give) give.onsubmit = () => {
  fetch(give.action, { method: "POST", headers }).then(reply => reply.json()).then(answer => code.textContent = answer.code || give.submit(), () => give.submit());
  return false;
};

// Soon, for a place counts as taken when it is heard of a second time.
later((state === "full" ? 10 : 2) + 2 * Math.random());

// Tabs of one browser share one place. A new one calls, and whoever hears it answers.
const channel = new BroadcastChannel("suimon");
channel.onmessage = event => {
  tabs = true;
  show();
  if (event.data) channel.postMessage(0);
};
channel.postMessage(1);
