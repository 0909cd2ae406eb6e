// The waiting page's script. It asks after the place without reloading, says what has changed, and lets in once the gateway has; without it
// everything can still be read and done. Served inline, after stripping: whole-line comments, indentation, spaces around marks.
//
// The parts of the page are called by their ids, which HTML makes names of the window: icon owner leaf heading big sub bar notes lead message
// post go time boxes ask tell still give code say alarm texts. Those that a page may lack are asked for as `self.post`.

// Boxes that would do nothing without a script wait as text, so that not even a text browser shows them before.
boxes.outerHTML = boxes.textContent;

// Digits are written as the server writes them, in Arabic too.
const root = document.documentElement, locale = root.lang + "-u-nu-latn", words = JSON.parse(texts.textContent), headers = { Accept: "application/json" };
const site = owner.textContent.trim(), calm = icon.href, waited = bar.value, short = { timeStyle: "short" }, began = Date.now(), stop = words.slower.match(/\p{STerm}$/u) || "";
const clock = (time, style) => new Date(time).toLocaleTimeString(locale, style);

let state = root.className, heard = began, misses = 0, asked = began, said = began, store = {};
let now = words.now, turn, asks, pressed, fewest = 1 / 0, least = 1 / 0, slow = 0, first, crowd, told, tabs, others, gone, out, timer, going, sound;
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

// Takes in an answer.
function take(answer) {
  const high = answer.eta_high_s, ahead = answer.ahead_present, at = Date.now(), early = at - began < 3e4;
  // After ten minutes without an answer the best seen counts no more: the place may be another.
  if (at - heard > 6e5) fewest = least = 1 / 0;
  heard = at;
  misses = 0;
  now = answer;
  if (high >= 0) {
    // What is told in the first half minute is a guess. After that a longer wait is never shown without a word, which stays for a minute
    // and goes when the wait is the shortest so far.
    if (!early && (now.slower || high > least * 1.25)) slow = slow || heard;
    else if (high < least && heard - slow > 6e4) slow = 0;
    if (early || high < least) least = high;
    first = first || high;
  }
  if (ahead < fewest) fewest = ahead;
  crowd = crowd || ahead;
}

// Shows what is known, each second; also called when a wish has changed, or the connection.
function show() {
  const fresh = state != now.state, high = now.eta_high_s, passed = (new Date - heard) / 1e3;
  // A page written without a place, or met by a state it has no words for, is written anew; with something posted in it, it stays as it is.
  if (fresh && !(words[now.state] && (self.give || self.post))) return self.post || enter();
  state = now.state;
  // A visitor who wants to be asked may take their time once nobody is ahead.
  asks = state == "next" && !pressed && (self.post || ask.checked);
  const due = asks && now.expires_at, was = turn;
  turn = state == "your_turn" || !!due;
  root.className = turn ? "your_turn" : state;
  let [heading, lead] = words[root.className], big = "", sub = "", title = "";
  if (due) lead = words.held.replace("{t}", clock(due, short));
  if (state == "opening") {
    // Counted on the server's clock.
    const opens = new Date(now.opens_at), left = Math.max(0, opens - new Date(now.updated_at) - passed * 1e3), s = Math.ceil(left / 1e3), far = left > 54e5;
    big = title = left > 6e5 ? clock(opens, short) : (s / 60 | 0) + ":" + `${s % 60}`.padStart(2, 0);
    sub = opens.toLocaleString(locale, { dateStyle: "full", timeStyle: "long" });
    if (left > 6e5) sub += " · " + new Intl.RelativeTimeFormat(locale).format(Math.round(left / (far ? 36e5 : 6e4)), far ? "hour" : "minute");
  }
  // Between two answers time is counted down, and the share of the wait that is over, by time or by place, only ever grows.
  if (high >= 0 && !turn) [big, title] = range(Math.max(0, now.eta_low_s - passed), Math.max(0, high - passed));
  if (now.ahead_present >= 0 && !turn) sub = words.ahead.replace("{n}", fewest.toLocaleString(locale));
  const goes = high > 0 ? Math.max(0, 1 - passed / high) : 1, left = Math.min(first && high >= 0 ? high / first : 1, crowd ? fewest / crowd : 1);
  bar.value = state == "next" ? Math.max(bar.value, 95) : Math.max(bar.value, 100 - (100 - waited) * left * goes);
  bar.ariaLabel = heading;
  const notes = [slow && words.slower, tabs && words.tabs, (misses || !navigator.onLine) && words.lost].filter(Boolean).join(" ");
  const shown = { heading, big, sub, notes, lead, message: now.message || "", go: turn ? words.enter : words.check, time: clock(now.updated_at || heard) };
  // What has not changed is not touched, so that a selection and a reader's place survive. Numbers stand out.
  for (const name in shown) {
    const part = self[name];
    if (part && part.textContent != shown[name]) {
      part.textContent = shown[name];
      part.innerHTML = part.innerHTML.replace(/\d[\d.,:]*/g, "<b>$&</b>");
    }
  }
  document.title = (title ? `(${title}) ` : heading + " – ") + site;
  leaf.style.transform = `translateY(${turn ? -24 : bar.value * -.24}px)`;

  // Read out at once when the state changes, else once a minute if there is something new.
  const news = [heading, state != "opening" && big, sub, notes, now.message, fresh && lead].filter(Boolean).map(text => /\p{STerm}$/u.test(text) ? text : text + stop).join(" ");
  if (fresh || turn != was && was != null || news != told && Date.now() - said > 6e4) {
    said = Date.now();
    (turn ? alarm : say).textContent = told = news;
  }
  // Their session has begun; what was posted goes by its button alone.
  if (state == "your_turn" && !going && !(self.post && !pressed)) going = setTimeout(enter, now.enter_after_s * 1e3);
  if (turn && !was) {
    icon.href = calm.replace("2f8fb3", "e8590c");
    if (tell.checked) {
      chime();
      // Last, because on some phones it may not be made here.
      new Notification(document.title);
    }
  } else if (!turn) icon.href = calm;
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
  // A field of the form may have the name of anything of a form's.
  if (pressed) return HTMLFormElement.prototype.submit.call(post);
  now = { state: "your_turn" };
  show();
}

// Its visitor wants to go in: a visitor who is next waits at the gate for it, and stays on the page meanwhile.
function press() {
  pressed = true;
  state == "next" ? poll() : enter();
}

async function poll() {
  // Should nothing come back at all, this asks again.
  later(60);
  if (gone || going) return;
  asked = Date.now();
  const own = out = {}, enters = state == "next" && !asks;
  let rest = 0;
  try {
    // A visitor without a place is answered by what the page says; one who is next, on admission, or after some seconds.
    const reply = await fetch(location, { headers: { ...headers, "Suimon-Poll": enters ? "enter" : state }, cache: "no-store", redirect: "manual" }), answer = await reply.json().catch(() => 0) || 0;
    if (own != out) return;
    rest = +reply.headers.get("Retry-After");
    if (answer.poll_after_s >= 0 || !reply.ok && answer.state) {
      take(answer);
      show();
      rest = state == "next" && !asks && !enters ? .1 : answer.poll_after_s || rest || .1;
    } else if (reply.status > 499) throw 0;
    // Whatever else is not ours is the application's: the gate is open.
    else if (reply.status != 429) return enter();
  } catch (e) {
    if (own != out) return;
    misses++;
    show();
    rest = enters ? 2 : Math.max(rest, Math.min(60, 2 ** misses + 9 * Math.random()));
  }
  later(rest || 30);
}

function later(seconds) {
  clearTimeout(timer);
  timer = setTimeout(poll, seconds * 1e3);
}

// A visitor who comes back to the page sees the current status, and one who is cut off sees that.
document.onvisibilitychange = ononline = onpageshow = () => document.hidden || Date.now() - asked < 2e3 || poll();
onoffline = show;
if (self.go && state != "pass") go.onclick = () => {
  (turn ? press : poll)();
  return false;
};
if (self.post) post.onsubmit = () => state != "next" || (press(), false);

// Wishes. That to be asked outlasts a reload, unless storage is forbidden.
try { store = sessionStorage; } catch (e) {}
ask.checked = store.suimon;
ask.onchange = () => {
  store.suimon = ask.checked || "";
  show();
  // Who is next and need not be asked any more goes to the gate.
  if (state == "next") poll();
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

take(now);
show();
setInterval(show, 1e3);
// Soon, for a place counts as taken when it is heard of a second time; at once at the gate.
later(state == "next" ? .1 : (state == "full" ? 10 : 2) + 2 * Math.random());

// Tabs of one browser share one place. Each calls now and then, and a tab that hears it answers.
const channel = new BroadcastChannel("suimon");
channel.onmessage = event => {
  tabs = others = true;
  show();
  if (event.data) channel.postMessage(0);
};
function call() {
  tabs = others;
  others = false;
  channel.postMessage(1);
}
call();
setInterval(call, 5e3);
