// The chat window of an assistant on any website:
//   <script src="https://SERVER/embed.js" data-assistant-id="UUID" async></script>
// Optional: data-variables='{"customer_name": "Ana"}'. Afterwards ParleyWidget.open() and .close() work from the page's own script.
//
// Everything stands in a shadow root, styled by a constructed style sheet and built node by node: the page's styles stay out, nothing is
// written as HTML, and a Content-Security-Policy needs to allow no more than this server in script-src and connect-src.
(() => {
  "use strict";
  const tag = document.currentScript || document.querySelector("script[data-assistant-id]");
  const id = tag && tag.dataset.assistantId;
  if (!tag) return console.error("Parley: the script can't find its own tag. In a shadow root a script has none: put it into the page itself, with data-assistant-id.");
  if (!id) return console.error("Parley: the script tag needs data-assistant-id, the assistant's UUID.");
  const base = new URL(".", tag.src).href;
  const here = (window.ParleyWidgets = window.ParleyWidgets || {});
  if (here[id]) return; // loaded twice
  here[id] = true;

  const most = 2000; // characters in a message
  let settings, T, ui; // what the server says of the assistant, its texts, the parts of the window
  let conversation = ""; // its id
  let given = {}; // variables
  let told = {}; // those of them that the page knew
  let busy = false; // a message of ours is on its way
  let call = null; // the call that is on
  let seen = 0; // the newest message that stood in the open window
  const name = () => settings.widget_settings.title || settings.name;
  const text = (key, values = {}) => (T[key] || key).replace(/\{(\w+)\}/g, (_, k) => values[k]);

  // What is remembered on this website: which conversation, what of it was seen, and when it was last used. Where storage is forbidden, nothing is.
  const memory = {
    get: () => {
      try {
        return JSON.parse(localStorage.getItem("parley:" + id)) || {};
      } catch (err) {
        return {};
      }
    },
    keep: () => {
      try {
        if (conversation) localStorage.setItem("parley:" + id, JSON.stringify({ conversation, seen, at: Date.now() }));
        else localStorage.removeItem("parley:" + id);
      } catch (err) {}
    },
    open: (yes) => {
      try {
        if (yes === undefined) return sessionStorage.getItem("parley-open:" + id);
        sessionStorage.setItem("parley-open:" + id, yes ? "yes" : "no");
      } catch (err) {}
    },
  };

  // ---- The server ----

  class Refusal extends Error {
    constructor(status, words, wait) {
      super(words || "status " + status);
      this.status = status;
      this.wait = wait || 0;
    }
    // What a visitor is told. The server's own words are for who runs the website.
    get words() {
      const known = { 0: "offline", 402: "unavailable", 403: "forbidden", 404: "unavailable", 503: "unavailable" };
      if (this.status === 429) return text("slow", { n: this.wait || 60 });
      return text(known[this.status] || "failed");
    }
  }

  async function ask(path, options = {}) {
    let res;
    try {
      res = await fetch(base + "api" + path, Object.assign({ credentials: "omit" }, options));
    } catch (err) {
      if (err.name === "AbortError") throw err;
      throw new Refusal(0);
    }
    if (res.ok) return res;
    const said = await res.json().catch(() => ({}));
    const refusal = new Refusal(res.status, said.error || said.message, said.retry_after);
    console.warn("Parley: " + res.status + ": " + refusal.message);
    throw refusal;
  }

  // Variables beside a request's body: the greeting is rendered with them.
  const said = (variables) => (Object.keys(variables).length ? { "Parley-Variables": encodeURIComponent(JSON.stringify(variables)) } : {});
  const post = (path, body, accept) =>
    ask(path, { method: "POST", headers: { "Content-Type": "application/json", Accept: accept || "application/json" }, body: JSON.stringify(body) });

  // The events of a stream (WHATWG HTML, section 9.2), as our server writes them.
  async function events(res, each) {
    const reader = res.body.getReader();
    const decoder = new TextDecoder();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read().catch(() => {
        throw new Refusal(0);
      });
      if (done) return;
      const parts = (rest + decoder.decode(value, { stream: true })).split("\n\n");
      rest = parts.pop();
      for (const part of parts) {
        const e = {};
        for (const line of part.split("\n")) {
          const m = /^(event|id|data): (.*)$/.exec(line);
          if (m) e[m[1]] = m[2];
        }
        if (e.event) each(e.event, JSON.parse(e.data), Number(e.id));
      }
    }
  }

  // ---- Building ----

  function el(kind, props, ...children) {
    const e = document.createElement(kind);
    for (const [k, v] of Object.entries(props || {})) {
      if (v === undefined || v === null || v === false) continue;
      if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
      else if (k === "class") e.className = v;
      else e.setAttribute(k, v === true ? "" : v);
    }
    e.append(...children.filter((c) => c !== null && c !== undefined));
    return e;
  }

  const icons = {
    chat: "M12 3c5 0 9 3.4 9 7.6s-4 7.6-9 7.6c-.9 0-1.8-.1-2.6-.3L5 20.5l.6-3.8C4 15.3 3 13.1 3 10.6 3 6.4 7 3 12 3z",
    close: "M6 6l12 12M18 6L6 18",
    send: "M5 12h13M12 5l7 7-7 7",
    restart: "M4 12a8 8 0 1 0 2.5-5.8M4 4v4.5h4.5",
    call: "M6.5 3.5l3 .8 1 4-2 1.7a12 12 0 0 0 5.5 5.5l1.7-2 4 1 .8 3c-.3 1.7-1.6 3-3.3 3C9.9 20.5 3.5 14.1 3.5 6.8c0-1.7 1.3-3 3-3.3z",
    keypad: "M6 5h.01M12 5h.01M18 5h.01M6 11h.01M12 11h.01M18 11h.01M6 17h.01M12 17h.01M18 17h.01M12 22h.01",
    mic: "M12 3a3 3 0 0 1 3 3v5a3 3 0 0 1-6 0V6a3 3 0 0 1 3-3zM5.5 11a6.5 6.5 0 0 0 13 0M12 17.5V21",
  };
  function icon(which) {
    const ns = "http://www.w3.org/2000/svg";
    const svg = document.createElementNS(ns, "svg");
    const path = document.createElementNS(ns, "path");
    svg.setAttribute("viewBox", "0 0 24 24");
    svg.setAttribute("aria-hidden", "true");
    path.setAttribute("d", icons[which]);
    svg.append(path);
    return svg;
  }
  const button = (which, label, onclick, props) => el("button", Object.assign({ type: "button", class: "icon", "aria-label": label, title: label, onclick }, props), icon(which));

  // Markdown, the part of it that replies use, as nodes. What is not understood stays as it was written.
  const inline = /(`+)(.+?)\1|\*\*(.+?)\*\*|__(.+?)__|\*([^\s*](?:[^*]*[^\s*])?)\*|\b_([^\s_](?:[^_]*[^\s_])?)_\b|\[([^\]]+)\]\(([^\s)]+)\)|(https?:\/\/[^\s<>"]+[^\s<>".,;:!?)\]'*_])/g;
  function phrase(into, s, depth = 0) {
    let at = 0;
    for (const m of depth < 4 ? s.matchAll(inline) : []) {
      into.append(s.slice(at, m.index));
      at = m.index + m[0].length;
      const strong = m[3] || m[4];
      const soft = m[5] || m[6];
      if (m[2]) into.append(el("code", {}, m[2]));
      else if (strong) into.append(phrase(el("strong"), strong, depth + 1));
      else if (soft) into.append(phrase(el("em"), soft, depth + 1));
      else into.append(link(m[8] || m[9], m[7], m[0], depth));
    }
    into.append(s.slice(at));
    return into;
  }
  function link(href, words, raw, depth) {
    if (!/^(https?:\/\/|mailto:|tel:)/i.test(href)) return raw; // javascript: and its kin
    const a = el("a", { href, target: "_blank", rel: "noopener noreferrer nofollow" });
    return words ? phrase(a, words, depth + 1) : (a.append(href), a);
  }
  function markdown(s) {
    const out = document.createDocumentFragment();
    let list = null; // the one that the last line was in
    let words = []; // of the paragraph so far
    const paragraph = () => {
      if (words.length) {
        const p = el("p");
        words.forEach((line, i) => {
          if (i) p.append(el("br"));
          phrase(p, line);
        });
        out.append(p);
      }
      words = [];
    };
    const lines = s.replace(/\r/g, "").split("\n");
    for (let i = 0; i < lines.length; i++) {
      const line = lines[i];
      const item = /^\s{0,6}(?:([-*+])|(\d{1,9})[.)])\s+(.*)$/.exec(line);
      const head = /^#{1,6}\s+(.*?)\s*#*$/.exec(line);
      const fence = /^\s*(```+|~~~+)/.exec(line);
      if (!item) list = /^\s*$/.test(line) ? list : null;
      if (fence) {
        paragraph();
        const code = [];
        while (++i < lines.length && !lines[i].trim().startsWith(fence[1])) code.push(lines[i]);
        out.append(el("pre", { tabindex: "0" }, el("code", {}, code.join("\n"))));
      } else if (item) {
        paragraph();
        const kind = item[1] ? "UL" : "OL";
        if (!list || list.tagName !== kind) out.append((list = el(kind, { start: item[2] > 1 ? item[2] : null })));
        list.append(phrase(el("li"), item[3]));
      } else if (head) {
        paragraph();
        out.append(el("p", {}, phrase(el("strong"), head[1])));
      } else if (/^\s*$/.test(line)) paragraph();
      else words.push(line);
    }
    paragraph();
    return out;
  }

  // ---- What was said ----

  // Every message stands in the log once, in the order of the server's ids. Ours stand there before they have one.
  const shown = new Map(); // id -> element
  let mine = []; // ours that have no id yet
  let replies = []; // replies without one: the sending told them first
  let held = []; // replies that came while ours was on its way, which may be its own

  function bubble(role, content, author) {
    const body = el("div", { class: "body", dir: "auto" });
    if (role === "user") body.append(content);
    else body.append(markdown(content));
    const who = role === "user" ? text("you") : author === "human" ? text("human") : name();
    const b = el("div", { class: "said " + role + (author === "human" ? " human" : "") }, el("span", { class: author === "human" ? "who" : "unseen" }, who + (author === "human" ? "" : ": ")), body);
    b.content = content.trim();
    b.order = Infinity;
    return b;
  }
  function place(b, order, about) {
    b.order = order || about || b.order;
    if (order) shown.set(order, b);
    keepingLow(() => ui.log.insertBefore(b, [...ui.log.children].find((c) => c.order > b.order) || null));
    return b;
  }
  function claim(list, content, order) {
    const b = list.find((b) => b.content === content.trim());
    if (b) {
      list.splice(list.indexOf(b), 1);
      place(b, order);
    }
    return b;
  }
  function receive(m, order) {
    if (shown.has(order)) return;
    if (m.role === "user") {
      const b = claim(mine, m.content, order);
      if (b) settle(b);
      else place(bubble("user", m.content), order);
      return;
    }
    if (claim(replies, m.content, order)) return;
    if (busy) return held.push([m, order]);
    place(bubble("assistant", m.content, m.author), order);
    if (ui.panel.hidden && order > seen) badge(unread + 1);
  }
  let unread = 0;
  function badge(n) {
    unread = n;
    ui.badge.textContent = n || "";
    ui.badge.hidden = !n;
  }

  // What is read at its end stays there when something is added.
  function keepingLow(change) {
    const box = ui.thread;
    const low = box.scrollHeight - box.scrollTop - box.clientHeight < 60;
    change();
    if (low) box.scrollTop = box.scrollHeight;
  }
  function typing(yes) {
    keepingLow(() => (ui.typing.hidden = !yes));
  }
  function notice(words, wrong) {
    ui.notice.textContent = words || "";
    ui.notice.classList.toggle("wrong", Boolean(wrong));
    ui.notice.hidden = !words;
  }

  // ---- Following: history and what comes live, in one stream ----

  let following = null; // aborts it
  let wanted = false; // whether it is to be followed while somebody looks at the page
  let latest = 0; // the newest id that arrived
  async function follow() {
    wanted = true;
    if (following || !conversation || document.hidden) return;
    const life = (following = new AbortController());
    for (let pause = 1000; following === life; pause = Math.min(pause * 2, 30000)) {
      try {
        const res = await ask("/conversations/" + conversation + "/events", { headers: { "Last-Event-ID": String(latest) }, signal: life.signal });
        await events(res, (kind, data, order) => {
          if (following !== life) return;
          pause = 1000;
          if (kind === "message") {
            latest = Math.max(latest, order);
            receive(data, order);
            saw();
            typing(busy);
          } else if (kind === "typing") typing(true);
          else if (kind === "ai" && !data.enabled) notice(text("joined"));
          else if (kind === "ai") notice("");
        });
      } catch (err) {
        if (following !== life) return;
        if (err.status === 404) return forget(); // it was deleted
      }
      if (following === life) await new Promise((done) => setTimeout(done, pause));
    }
  }
  function saw() {
    if (ui.panel.hidden || latest <= seen) return;
    seen = latest;
    memory.keep();
  }
  function unfollow() {
    if (following) following.abort();
    following = null;
  }

  // ---- Sending ----

  async function begin() {
    const made = await (await post("/conversations", { assistant_id: id, variables: given })).json();
    conversation = made.conversation_id;
    memory.keep();
    greeting(""); // it comes with the history
    ui.restart.hidden = false;
    made.history.forEach((m) => replies.push(place(bubble(m.role, m.content), 0, 0.5))); // their ids come by the stream
    follow();
  }

  async function send(words) {
    if (busy) return;
    let gone = false;
    busy = true;
    ui.send.disabled = true;
    notice("");
    const b = bubble("user", words);
    mine.push(b);
    place(b);
    typing(true);
    ui.thread.scrollTop = ui.thread.scrollHeight;
    try {
      if (!conversation) await begin();
      memory.keep();
      const message = { message: words };
      if (Object.keys(tools).length) message.client_tools = Object.keys(tools);
      await reply(await post("/conversations/" + conversation + "/messages", message, "text/event-stream"));
    } catch (err) {
      if (err.status === 404 && conversation) gone = true; // it was deleted: another begins
      else if (err.status || b.order === Infinity) failed(b, words, err); // else the server has it, and the reply comes by the stream
    } finally {
      busy = false;
      ui.send.disabled = false;
      typing(false);
      form("");
      held.splice(0).forEach((h) => receive(h[0], h[1]));
    }
    if (!gone) return;
    forget();
    if (ui.form.hidden) return send(words);
    ui.box.value = words; // for after the questions
  }

  async function reply(res) {
    let said = "";
    let ended = false;
    await events(res, (kind, data) => {
      if (kind === "delta") form((said += data.text));
      else if (kind === "tool") said = "";
      else if (kind === "tool_call") runTool(data);
      else if (kind === "error") throw new Refusal(502, data.error);
      else if (kind === "done") {
        ended = true;
        form("");
        if (data.message === null || data.message === undefined) return;
        const i = held.findIndex((h) => h[0].content.trim() === data.message.trim());
        const b = bubble("assistant", data.message);
        if (i >= 0) place(b, held.splice(i, 1)[0][1]);
        else replies.push(place(b));
        if (ui.panel.hidden) badge(unread + 1);
      }
    });
    if (!ended) throw new Refusal(0);
  }

  // The page's own tools, which the assistant may call (kind client): functions by name.
  const tools = {};
  function addTools(own) {
    for (const [name, run] of Object.entries(own)) {
      if (/^[a-z][a-z_]{0,254}$/.test(name) && typeof run === "function" && Object.keys(tools).length < 64) tools[name] = run;
      else console.warn("Parley: no tool: " + name);
    }
  }
  async function runTool(asked) {
    try {
      const answer = await (await import(base + "web-call.js")).run(tools, asked);
      await post("/conversations/" + conversation + "/tool-calls/" + encodeURIComponent(asked.id), answer);
    } catch (err) {
      console.error("Parley: " + asked.name + ": " + err.message);
    }
  }

  // The reply as it forms stands below the log, so that a screen reader is told it once, whole.
  let forming = "";
  let drawing = 0;
  function form(words) {
    forming = words;
    drawing = drawing || requestAnimationFrame(draw);
    if (!words) draw();
  }
  function draw() {
    cancelAnimationFrame(drawing);
    drawing = 0;
    keepingLow(() => {
      ui.forming.hidden = !forming;
      ui.forming.firstChild.replaceChildren(markdown(forming));
      if (forming) ui.typing.hidden = true;
    });
  }

  function failed(b, words, err) {
    const kept = err.status === 502; // the server has the message, only no reply to it
    const note = el("div", { class: "wrong", role: "alert" }, err.words + " ");
    const retry = el("button", { type: "button", class: "link", onclick: () => {
      note.remove();
      if (!kept) {
        b.remove();
        mine = mine.filter((m) => m !== b);
      }
      ui.box.focus();
      send(words);
    } }, text("retry"));
    if (err.status !== 403 && err.status !== 402) note.append(retry);
    b.note = kept ? null : note;
    keepingLow(() => b.append(note));
    b.classList.add("failed");
  }
  function settle(b) { // it arrived after all
    if (!b.note) return;
    b.note.remove();
    b.classList.remove("failed");
  }

  function clear() {
    unfollow();
    conversation = "";
    latest = seen = 0;
    shown.clear();
    mine = [];
    replies = [];
    held = [];
    ui.log.replaceChildren();
    notice("");
    typing(false);
    memory.keep();
  }
  function forget() {
    clear();
    ui.asked = false;
    stage(true);
  }
  function greeting(words) {
    ui.greeting.hidden = !words;
    ui.greeting.replaceChildren();
    if (words) ui.greeting.append(bubble("assistant", words));
  }

  // ---- Calls ----

  async function dial() {
    if (call) return;
    const live = (call = { hangup() {} });
    const state = (s) => {
      ui.state.textContent = s;
      ui.calling.hidden = false;
      ui.dial.hidden = true;
      keepingLow(() => {});
    };
    state(text("connecting"));
    greeting(""); // it is spoken
    notice("");
    let turn = null;
    try {
      const made = await (await import(base + "web-call.js")).call({ url: base + "api/web-calls/" + id, variables: given, tools, on: (kind, data) => {
        if (call !== live) return;
        if (kind === "live") {
          state(text("listening"));
          ui.pad.hidden = false;
        } else if (kind === "waiting") state(text("connecting"));
        else if (kind === "partial") {
          turn = turn || spoken("user", "");
          turn.lastChild.textContent = data.text;
          keepingLow(() => {});
        } else if (kind === "turn") {
          if (turn && data.speaker === "customer") {
            turn.remove();
            turn = null;
          }
          spoken(data.speaker === "customer" ? "user" : "assistant", data.text);
        } else if (kind === "end" && data.reason === "refused") turnedAway(data.status, data.error);
        else if (kind === "end" && data.reason === "unreachable") end(text("nosound") + (ui.chats ? " " + text("writing") : ""), true);
        else if (kind === "end") end(text(data.reason === "lost" ? "lost" : "ended"), data.reason !== "ended");
      } });
      if (call !== live) return made.hangup();
      Object.assign(live, made);
      live.mute(ui.mute.getAttribute("aria-pressed") === "true");
      ui.mute.focus();
    } catch (err) {
      if (call !== live) return;
      const names = { NotAllowedError: "microphone", NotFoundError: "nomic", NotReadableError: "micbusy", insecure: "insecure", TypeError: "noline" };
      if (err.status === undefined) end(text(names[err.name] || "failed"), true);
      else turnedAway(err.status, err.message, err.wait);
    }
  }
  function turnedAway(status, why, wait) {
    const words = { 0: "noline", 402: "nocalls", 404: "nocalls", 503: "busy" }[status];
    if (status) console.warn("Parley: " + status + ": " + why);
    end(words ? text(words) : new Refusal(status, why, wait).words, true);
  }
  // What is said in a call stands behind the messages that there are; of keys that were pressed only the keys.
  function spoken(role, words) {
    return place(bubble(role, words.replace(/\[keypad: (.*?)\]/g, "$1")), 0, latest + 0.5);
  }
  function end(words, wrong) {
    call = null;
    ui.calling.hidden = true;
    ui.dial.hidden = false;
    ui.mute.setAttribute("aria-pressed", "false");
    ui.mute.setAttribute("aria-label", text("mute"));
    ui.pad.hidden = true;
    ui.pressed.textContent = "";
    keypad(false);
    notice(words, wrong);
    if (!ui.panel.hidden) (ui.dial.isConnected ? ui.dial : ui.box).focus();
  }
  function hangup() {
    if (!call) return;
    call.hangup();
    end(text("ended"));
  }
  function mute() {
    const off = ui.mute.getAttribute("aria-pressed") !== "true";
    if (call && call.mute) call.mute(off);
    ui.mute.setAttribute("aria-pressed", String(off));
    ui.mute.setAttribute("aria-label", text(off ? "unmute" : "mute"));
  }

  // The keypad of a call. With the keyboard in it, the keys of a keyboard are those of the keypad.
  function keypad(yes) {
    ui.keys.hidden = !yes;
    ui.pad.setAttribute("aria-expanded", String(yes));
  }
  function press(key) {
    if (!call || !call.key || !call.key(key)) return;
    ui.pressed.textContent = (ui.pressed.textContent + key).slice(-20);
  }
  function type(e) {
    if (e.ctrlKey || e.altKey || e.metaKey || ui.keys.hidden) return;
    if (e.key === "Escape") {
      e.stopPropagation();
      keypad(false);
      ui.pad.focus();
    } else if (/^[0-9*#]$/.test(e.key)) {
      e.preventDefault();
      press(e.key);
    }
  }

  // ---- The window ----

  // stage shows what comes next: the questions before the chat, or the chat.
  function stage(focus) {
    const w = settings.widget_settings;
    const asking = asks().length > 0 && !conversation && !ui.asked;
    ui.form.hidden = !asking;
    ui.thread.hidden = asking;
    ui.foot.hidden = asking;
    ui.restart.hidden = !conversation && !ui.asked;
    greeting(ui.chats && !conversation && !asking && !ui.log.children.length ? settings.initial_message : "");
    if (!focus || ui.panel.hidden) return;
    const first = !ui.form.hidden ? ui.form.querySelector("input, textarea") : ui.chats ? ui.box : ui.dial;
    if (first) first.focus({ preventScroll: true });
  }

  // asks are the questions that the page has not answered itself (data-variables).
  const asks = () => settings.widget_settings.pre_chat_fields.filter((f) => !told[f.variable]);

  function questions() {
    const form = el("form", { class: "ask", novalidate: true, onsubmit: submit });
    asks().forEach((f, i) => {
      const key = "f" + i;
      const input = el(f.type === "textarea" ? "textarea" : "input", { id: key, name: f.variable, type: f.type === "textarea" ? null : f.type, required: f.required, maxlength: "500", rows: "3",
        autocomplete: { email: "email", tel: "tel" }[f.type], step: f.type === "number" ? "any" : null, "aria-describedby": key + "e" });
      form.append(el("label", { for: key }, f.label, f.required ? el("span", { "aria-hidden": "true" }, " *") : null), input, el("p", { class: "wrong", id: key + "e", role: "alert" }));
    });
    form.append(el("button", { class: "main" }, text("begin")));
    function submit(e) {
      e.preventDefault();
      let wrong = null;
      for (const input of form.querySelectorAll("input, textarea")) {
        input.value = input.value.trim();
        const bad = !input.checkValidity();
        input.setAttribute("aria-invalid", String(bad));
        form.querySelector("#" + input.id + "e").textContent = bad ? text(input.validity.valueMissing ? "required" : "invalid") : "";
        if (bad && !wrong) wrong = input;
        given[input.name] = input.value;
      }
      if (wrong) return wrong.focus();
      ui.asked = true;
      stage(true);
      if (ui.chats) { // the first message may use what was answered
        busy = true;
        begin().catch((err) => {
          ui.asked = false;
          stage(true);
          form.lastChild.before(note(err.words));
        }).then(() => (busy = false));
      }
    }
    const note = (words) => {
      form.querySelectorAll(":scope > .wrong:not([id])").forEach((n) => n.remove());
      return el("p", { class: "wrong", role: "alert" }, words);
    };
    return form;
  }

  function build() {
    const w = settings.widget_settings;
    const label = name();
    ui = { chats: w.mode !== "voice", calls: w.mode !== "chat" && settings.calls };
    ui.log = el("div", { class: "log", role: "log", "aria-live": "polite", "aria-label": label });
    ui.greeting = el("div", { class: "log", hidden: true });
    ui.forming = el("div", { class: "said assistant", hidden: true }, el("div", { class: "body", dir: "auto" }));
    ui.typing = el("div", { class: "typing", role: "status", hidden: true }, el("span", { class: "unseen" }, text("typing", { name: label })), el("i"), el("i"), el("i"));
    ui.notice = el("p", { class: "notice", role: "status", hidden: true });
    ui.thread = el("div", { class: "thread", tabindex: "0", role: "group", "aria-label": label }, ui.greeting, ui.log, ui.forming, ui.typing);
    ui.form = questions();

    ui.box = el("textarea", { rows: "1", "aria-label": w.placeholder || text("placeholder"), placeholder: w.placeholder || text("placeholder"), enterkeyhint: "send", oninput: grow, onkeydown: enter, onkeypress: enter });
    ui.count = el("p", { class: "count", role: "status", hidden: true });
    ui.send = button("send", text("send"), null, { type: "submit", class: "icon main" });
    ui.writer = el("form", { class: "writer", onsubmit: (e) => {
      e.preventDefault();
      write();
    } }, ui.box, ui.send);
    ui.dial = el("button", { type: "button", class: ui.chats ? "icon" : "main wide", onclick: dial, "aria-label": text("call"), title: text("call") }, icon("call"), ui.chats ? "" : text("call"));
    ui.state = el("span", { role: "status" });
    ui.mute = button("mic", text("mute"), mute, { "aria-pressed": "false" });
    ui.pad = button("keypad", text("keypad"), () => {
      keypad(ui.keys.hidden);
      if (!ui.keys.hidden) ui.keys.querySelector("button").focus();
    }, { "aria-expanded": "false", "aria-controls": "keys", hidden: true });
    ui.pressed = el("p", {});
    ui.keys = el("div", { class: "keys", id: "keys", role: "group", "aria-label": text("keypad"), dir: "ltr", hidden: true }, ui.pressed,
      ...[..."123456789*0#"].map((key) => el("button", { type: "button", "aria-label": { "*": text("star"), "#": text("hash") }[key], onclick: () => press(key) }, key)));
    ui.calling = el("div", { class: "calling", hidden: true, onkeydown: type },
      el("div", { class: "line" }, el("i", { class: "pulse" }), ui.state, ui.pad, ui.mute, el("button", { type: "button", class: "end", onclick: hangup }, text("hangup"))), ui.keys);
    ui.foot = el("div", { class: "foot" }, ui.notice, ui.calls ? ui.calling : null, ui.count, ui.chats ? ui.writer : ui.calls ? ui.dial : el("p", { class: "notice" }, text("unavailable")));
    if (ui.chats && ui.calls) ui.writer.prepend(ui.dial);

    ui.restart = button("restart", text("restart"), () => {
      if (busy) return;
      hangup();
      forget();
    });
    const avatar = w.avatar_url ? el("img", { class: "avatar", src: w.avatar_url, alt: "", referrerpolicy: "no-referrer", onerror: (e) => e.target.remove() }) : null;
    ui.panel = el("section", { class: "panel", id: "panel", role: "dialog", "aria-modal": "true", "aria-labelledby": "title", hidden: true, onkeydown: keys },
      el("header", {}, avatar, el("div", { class: "title" }, el("h2", { id: "title", dir: "auto" }, label), w.subtitle ? el("p", { dir: "auto" }, w.subtitle) : null),
        ui.restart, button("close", text("close"), close)),
      ui.form, ui.thread, ui.foot);
    ui.badge = el("span", { class: "badge", hidden: true });
    ui.open = button("chat", text("open"), () => (ui.panel.hidden ? open(true) : close()), { class: "launch", "aria-expanded": "false", "aria-controls": "panel" });
    if (!ui.chats) ui.open.replaceChildren(icon("call"));
    ui.open.append(icon("close"), ui.badge);
    ui.root = el("div", { class: "root " + w.theme + (ui.chats ? "" : " voice"), lang: settings.language, dir: settings.direction }, ui.panel, ui.open);
    const known = ["bottom-right", "bottom-left", "top-right", "top-left"];
    for (const kind of ["keydown", "keypress", "keyup"]) ui.root.addEventListener(kind, (e) => e.stopPropagation()); // the page has shortcuts
    ui.root.classList.add(...(known.includes(w.position) ? w.position : known[0]).split("-"));
    if (!["light", "dark", "auto"].includes(w.theme)) ui.root.classList.add("light");

    const host = document.createElement("parley-widget");
    const shadow = host.attachShadow({ mode: "open" });
    dress(shadow);
    shadow.append(ui.root);
    // Beside the body, a transform on it does not move the window; and a page that replaces its body keeps it.
    const root = document.documentElement;
    root.append(host);
    new MutationObserver(() => host.isConnected || root.append(host)).observe(root, { childList: true });
    paint(w.color);
  }

  function dress(shadow) {
    try {
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(css);
      shadow.adoptedStyleSheets = [sheet];
    } catch (err) { // an older browser
      shadow.append(el("style", {}, css));
    }
  }

  // The colour is the assistant's; what is written on it is black or white, whichever is told apart better (WCAG 2, 1.4.3).
  function paint(colour) {
    if (!colour || !CSS.supports("color", colour)) return;
    ui.root.style.setProperty("--c", colour);
    const parts = /^rgba?\(([\d.]+), ([\d.]+), ([\d.]+)/.exec(getComputedStyle(ui.open).backgroundColor);
    if (!parts) return;
    const [r, g, b] = parts.slice(1).map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    const light = 0.2126 * r + 0.7152 * g + 0.0722 * b;
    ui.root.style.setProperty("--on", 1.05 / (light + 0.05) >= (light + 0.05) / 0.05 ? "#fff" : "#000");
  }

  function grow() {
    const box = ui.box;
    box.style.height = "auto";
    box.style.height = Math.min(box.scrollHeight + 2, 140) + "px";
    box.dir = box.value ? "auto" : settings.direction;
    const n = [...box.value.trim()].length;
    ui.count.hidden = n < most - 200;
    ui.count.classList.toggle("wrong", n > most);
    ui.count.textContent = n > most ? text("long", { n, max: most }) : n + " / " + most;
  }
  function enter(e) {
    if (e.key !== "Enter" || e.shiftKey || e.isComposing) return;
    e.preventDefault(); // of both: some input methods send the second without the first
    if (e.type === "keydown") write();
  }
  function write() {
    const words = ui.box.value.trim();
    if (!words || busy) return;
    if ([...words].length > most) return grow();
    ui.box.value = "";
    grow();
    ui.box.focus();
    send(words);
  }

  function open(focus) {
    ui.panel.hidden = false;
    ui.root.classList.add("opened");
    ui.open.setAttribute("aria-expanded", "true");
    ui.open.setAttribute("aria-label", text("close"));
    memory.open(true);
    badge(0);
    saw();
    stage(focus);
    ui.thread.scrollTop = ui.thread.scrollHeight;
    follow();
  }
  function close() {
    ui.panel.hidden = true;
    ui.root.classList.remove("opened");
    ui.open.setAttribute("aria-expanded", "false");
    ui.open.setAttribute("aria-label", text("open"));
    memory.open(false);
    ui.open.focus();
  }

  // The keyboard stays in the window until Escape.
  function keys(e) {
    if (e.key === "Escape" && !e.isComposing) {
      e.stopPropagation();
      return close();
    }
    if (e.key !== "Tab") return;
    const list = [...ui.panel.querySelectorAll("button, input, textarea, a[href], [tabindex]")].filter((x) => !x.disabled && x.offsetParent !== null);
    const now = ui.root.getRootNode().activeElement;
    const edge = e.shiftKey ? list[0] : list[list.length - 1];
    if (now !== edge) return;
    e.preventDefault();
    (e.shiftKey ? list[list.length - 1] : list[0]).focus();
  }

  const css = `
:host { all: initial !important; position: fixed !important; inset: auto !important; z-index: 2147483000 !important; display: block !important; }
* { box-sizing: border-box; }
[hidden] { display: none !important; }
.root { --c: #2563eb; --on: #fff; --bg: #fff; --fg: #1b1f2a; --soft: #f1f3f6; --line: #dfe3ea; --dim: #5b6472; --bad: #b3261e; color-scheme: light;
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; color: var(--fg); letter-spacing: normal; text-align: start; }
.root.dark { --bg: #1b1e25; --fg: #e9ebf0; --soft: #2a2e38; --line: #3a3f4b; --dim: #a6adbb; --bad: #ff9a90; color-scheme: dark; }
@media (prefers-color-scheme: dark) {
  .root.auto { --bg: #1b1e25; --fg: #e9ebf0; --soft: #2a2e38; --line: #3a3f4b; --dim: #a6adbb; --bad: #ff9a90; color-scheme: dark; }
}
button, input, textarea { font: inherit; color: inherit; margin: 0; }
button { cursor: pointer; }
button:disabled { opacity: 0.5; cursor: default; }
:focus-visible { outline: 2px solid var(--fg); outline-offset: 2px; }
svg { width: 22px; height: 22px; fill: none; stroke: currentColor; stroke-width: 1.8; stroke-linecap: round; stroke-linejoin: round; display: block; }
.launch, .panel { position: fixed; }
.launch { width: 56px; height: 56px; border: 0; border-radius: 50%; background: var(--c); color: var(--on); display: grid; place-items: center;
  box-shadow: 0 6px 20px rgb(0 0 0 / 0.25); transition: transform 0.15s; }
.launch:hover { transform: scale(1.05); }
.root:not(.opened) .launch svg + svg, .opened .launch svg:first-child { display: none; }
.launch svg { width: 26px; height: 26px; }
.launch:focus-visible { outline: 3px solid var(--c); box-shadow: inset 0 0 0 2px var(--on); }
.bottom .launch { bottom: 20px; } .top .launch { top: 20px; } .right .launch { right: 20px; } .left .launch { left: 20px; }
.badge { position: absolute; top: -3px; right: -3px; min-width: 20px; height: 20px; padding: 0 5px; border-radius: 10px; background: #c62828; color: #fff; font-size: 12px; font-weight: 600; line-height: 20px; text-align: center; }
.panel { width: 384px; height: min(620px, 100vh - 116px); display: flex; flex-direction: column; background: var(--bg); border: 1px solid var(--line); border-radius: 16px; overflow: hidden;
  box-shadow: 0 18px 50px rgb(0 0 0 / 0.28); }
.voice .panel { height: auto; max-height: calc(100vh - 116px); }
.voice .thread { flex: 0 1 280px; min-height: 80px; }
.voice .thread:not(:has(.log .said)) { display: none; }
.bottom .panel { bottom: 90px; } .top .panel { top: 90px; } .right .panel { right: 20px; } .left .panel { left: 20px; }
header { display: flex; align-items: center; gap: 10px; padding: 12px 10px 12px 16px; background: var(--c); color: var(--on); }
[dir="rtl"] header { padding: 12px 16px 12px 10px; }
header :focus-visible { outline-color: var(--on); }
.avatar { width: 38px; height: 38px; border-radius: 50%; object-fit: cover; background: var(--on); }
.title { flex: 1; min-width: 0; }
h2, .title p { margin: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; text-align: start; }
h2 { font-size: 16px; font-weight: 600; line-height: 1.3; }
.title p { font-size: 13px; }
.icon { flex: none; width: 38px; height: 38px; padding: 0; border: 0; border-radius: 10px; background: none; display: grid; place-items: center; }
header .icon:hover { background: rgb(128 128 128 / 0.3); }
.thread { flex: 1; overflow-y: auto; overscroll-behavior: contain; padding: 16px; }
.thread:focus-visible, pre:focus-visible, textarea:focus-visible, input:focus-visible { outline-offset: -2px; }
.log { display: flex; flex-direction: column; }
.said { max-width: 86%; width: fit-content; margin-bottom: 10px; }
.said.user { align-self: flex-end; }
.body { padding: 9px 13px; border-radius: 14px; background: var(--soft); overflow-wrap: anywhere; }
.user .body { background: var(--c); color: var(--on); white-space: pre-wrap; border-end-end-radius: 4px; }
.assistant .body { border-end-start-radius: 4px; }
.human .body { background: none; border: 1px solid var(--line); }
.who { display: block; font-size: 12px; color: var(--dim); margin: 0 2px 3px; }
.failed .body { opacity: 0.7; }
.body > * { margin: 0 0 0.6em; } .body > :last-child { margin-bottom: 0; }
.body ul, .body ol { padding-inline-start: 1.4em; }
.body a { color: inherit; text-decoration: underline; text-underline-offset: 2px; }
code { font: 0.9em ui-monospace, Menlo, Consolas, monospace; }
pre { overflow-x: auto; padding: 8px 10px; border-radius: 8px; background: var(--bg); border: 1px solid var(--line); }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.typing { display: flex; gap: 4px; padding: 12px 14px; width: max-content; border-radius: 14px; background: var(--soft); }
.typing i { width: 7px; height: 7px; border-radius: 50%; background: var(--dim); animation: hop 1.2s infinite; }
.typing i:nth-of-type(2) { animation-delay: 0.15s; } .typing i:nth-of-type(3) { animation-delay: 0.3s; }
@keyframes hop { 0%, 60%, 100% { opacity: 0.35; } 30% { opacity: 1; transform: translateY(-3px); } }
.wrong { color: var(--bad); font-size: 13px; margin: 4px 2px 0; }
.notice { font-size: 13px; margin: 0 4px 8px; text-align: center; } .notice:not(.wrong) { color: var(--dim); }
.count { font-size: 12px; margin: 0 4px 4px; text-align: end; } .count:not(.wrong) { color: var(--dim); }
.link { border: 0; padding: 4px 0; background: none; text-decoration: underline; font-weight: 600; }
.foot { padding: 10px 12px 12px; border-top: 1px solid var(--line); }
.writer { display: flex; align-items: flex-end; gap: 6px; }
textarea { resize: none; }
.writer textarea, .ask input, .ask textarea { flex: 1; min-width: 0; width: 100%; padding: 8px 12px; border: 1px solid #868e9c; border-radius: 10px; background: var(--bg); font-size: 16px; line-height: 1.4; }
.writer textarea { max-height: 140px; }
::placeholder { color: var(--dim); opacity: 1; }
.main { background: var(--c); color: var(--on); }
.writer .icon { width: 40px; height: 40px; }
[dir="rtl"] .writer .main svg { transform: scaleX(-1); }
.ask { flex: 1; overflow-y: auto; padding: 18px 16px; }
.ask label { display: block; font-weight: 600; margin: 14px 0 4px; } .ask label:first-child { margin-top: 0; }
[aria-invalid="true"] { border-color: var(--bad) !important; }
.ask .main, .wide { width: 100%; display: flex; justify-content: center; align-items: center; gap: 8px; border: 0; border-radius: 10px; padding: 11px; margin-top: 18px; font-weight: 600; }
.wide { margin-top: 0; }
.calling { margin-bottom: 8px; }
.line { display: flex; align-items: center; gap: 4px; }
.line span { flex: 1; min-width: 0; padding-inline-start: 4px; }
.line .icon:hover, .line [aria-expanded="true"] { background: var(--soft); }
.calling [aria-pressed="true"] { background: var(--soft); color: var(--bad); }
[aria-controls="keys"] svg { stroke-width: 3; }
.keys { display: grid; grid-template-columns: repeat(3, 1fr); gap: 6px; max-width: 252px; margin: 8px auto 4px; }
.keys p { grid-column: 1 / -1; height: 24px; margin: 0; overflow: hidden; text-align: center; font-size: 18px; line-height: 24px; letter-spacing: 0.1em; }
.keys button { height: 42px; border: 0; border-radius: 10px; background: var(--soft); font-size: 18px; font-weight: 600; }
.keys button:hover { background: var(--line); } .keys button:active { background: var(--c); color: var(--on); }
.end { border: 0; border-radius: 10px; padding: 8px 14px; background: #b3261e; color: #fff; font-weight: 600; }
.pulse { width: 10px; height: 10px; margin-inline-start: 4px; border-radius: 50%; background: #2e9d5b; animation: hop 1.6s infinite; }
@media (max-width: 480px) {
  .opened .panel { inset: 0; width: 100%; height: 100%; height: 100dvh; border: 0; border-radius: 0; }
  .opened.voice .panel { inset: auto 0 0; height: auto; max-height: 100%; border-radius: 16px 16px 0 0; }
  .opened .launch { display: none; }
}
@media (prefers-reduced-motion: reduce) { * { animation: none !important; transition: none !important; } }
@media (forced-colors: active) { .body, .launch, .panel { border: 1px solid; } }
@media print { .root { display: none; } }
`;

  // A preview, in the console: the settings stand in the page, and nothing is asked of the server or remembered.
  function preview() {
    settings = JSON.parse(tag.dataset.preview);
    T = settings.texts;
    memory.open = memory.keep = () => {};
    build();
    for (const part of [ui.foot, ui.form, ui.restart]) part.inert = true;
    open(false);
  }

  async function start() {
    if (tag.dataset.preview) return preview();
    try {
      for (const [k, v] of Object.entries(JSON.parse(tag.dataset.variables || "{}"))) given[k] = told[k] = String(v);
    } catch (err) {
      console.error("Parley: data-variables is not a JSON object.");
    }
    try {
      settings = await (await ask("/widgets/" + encodeURIComponent(id), { headers: said(given) })).json();
    } catch (err) {
      if (err.status === 0) return setTimeout(start, 15000);
      return; // ask has told the console why
    }
    T = settings.texts;
    if (settings.widget_settings.mode === "voice" && !settings.calls) return console.warn("Parley: this server does not accept calls from browsers.");
    build();
    const saved = memory.get();
    conversation = saved.conversation || "";
    seen = saved.seen || 0;
    const was = memory.open();
    if (was === "yes" || (settings.widget_settings.auto_open && !was)) open(false);
    else if (conversation && Date.now() - saved.at < 6e5) follow();
    // A page that nobody looks at needs no stream: a browser has six connections for all tabs of a server (HTTP/1.1).
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) unfollow();
      else if (wanted) follow();
    });
    addEventListener("pagehide", () => call && call.hangup());
    window.ParleyWidget = { open: () => open(true), close, tools: addTools };
    dispatchEvent(new Event("parley"));
  }
  if (document.body) start();
  else document.addEventListener("DOMContentLoaded", start);
})();
