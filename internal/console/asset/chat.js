// What the pages of conversations do beyond links and forms: replies are shown as they form, messages of others appear as they come, and
// the test chat stays beside the editor. Every piece of a page comes from the server as HTML; it goes where its id says.
"use strict";
(() => {
  const $ = (sel, root = document) => root.querySelector(sel);
  const all = (sel, root = document) => [...root.querySelectorAll(sel)];
  const parse = (html) => new DOMParser().parseFromString(html, "text/html");
  const offline = "The server can't be reached. Try again when the network is back.";

  // Requests go to the pages' own addresses, with the session's cookie. A refusal becomes an error in words.
  async function ask(url, options = {}) {
    const headers = { "HX-Request": "true", Accept: options.accept || "text/html" };
    let res;
    try {
      res = await fetch(url, { ...options, headers });
    } catch (err) {
      throw err.name === "AbortError" ? err : new Error(offline);
    }
    if (res.ok) return res;
    const said = $("[data-message]", parse(await res.text()));
    const err = new Error(said ? said.textContent : `The server answered ${res.status}: try again.`);
    err.status = res.status;
    throw err;
  }
  const page = async (url, options) => parse(await (await ask(url, options)).text());
  const streams = (res) => (res.headers.get("Content-Type") || "").startsWith("text/event-stream");

  // The events of a stream (WHATWG HTML, section 9.2), as our server writes them.
  async function* events(res) {
    const reader = res.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const parts = (text + value).split("\n\n");
      text = parts.pop();
      for (const part of parts) {
        const m = /^event: (\w+)\ndata: (.*)$/.exec(part);
        if (m) yield [m[1], JSON.parse(m[2])];
      }
    }
  }

  function came(el) {
    el.dispatchEvent(new CustomEvent("parley:came", { bubbles: true }));
  }

  // What is read at its end stays there when something is added.
  function adding(add) {
    const box = $("[data-scroll]");
    const low = !box || box.scrollHeight - box.scrollTop - box.clientHeight < 80;
    add();
    if (box && low) box.scrollTop = box.scrollHeight;
  }

  // put places a piece: in place of the one with its id, or, a message, at the end. One that is there already stays.
  function put(el) {
    const there = document.getElementById(el.id);
    if (there ? there.dataset.v === el.dataset.v : !el.classList.contains("said")) return;
    adding(() => {
      if (el.matches(".said:not(.customer)")) formed();
      if (!there) {
        sent(el);
        return $("#thread").append(el);
      }
      const focused = there.contains(document.activeElement);
      there.replaceWith(el);
      if (focused) $("button", el)?.focus();
    });
    came(el);
  }
  const putAll = (doc) => all("[data-v]", doc).forEach(put);
  const piece = (html) => parse(html).body.firstElementChild;

  // The reply as it forms stands below the messages, where screen readers are not told of every word.
  function form(change) {
    adding(() => {
      const box = $("[data-forming]");
      box.hidden = false;
      change(box, $(".words", box));
    });
    $("#typing").hidden = true;
  }
  function formed() {
    const box = $("[data-forming]");
    if (!box) return;
    box.hidden = true;
    $(".words", box).textContent = "";
    all("details", box).forEach((d) => d.remove());
  }

  // What was sent stands in the thread at once, paler, until the server's own piece takes its place.
  function sending(sender, words) {
    const pattern = $("template[data-sending]", sender);
    if (!pattern || !$("#thread")) return null;
    const el = pattern.content.firstElementChild.cloneNode(true);
    $(".words", el).textContent = words.trim();
    adding(() => $("#thread").append(el));
    const box = $("[data-scroll]");
    if (box) box.scrollTop = box.scrollHeight; // who has just written looks at the end
    return el;
  }
  function sent(el) {
    const words = $(".words", el)?.textContent;
    all(".said.sending").find((one) => $(".words", one).textContent === words)?.remove();
  }

  // The answer to a form may be older than what the live stream brings while it is on its way. The stream has the last word: what it
  // brings is noted for each form that is being sent, and put again after the answer.
  const sends = new Set();

  // Sending: the box empties at once, and gets its words back when they were refused.
  async function send(sender) {
    const box = sender.elements.message;
    if (sender.dataset.busy || (box && !box.value.trim())) return;
    const words = box && box.value;
    const body = new URLSearchParams(new FormData(sender));
    const write = (text) => {
      if (!box) return;
      box.value = text;
      box.dispatchEvent(new Event("input", { bubbles: true }));
    };
    sender.dataset.busy = "yes";
    refuse(sender, "");
    write("");
    box?.focus();
    const shown = box && sending(sender, words);
    const meanwhile = [];
    sends.add(meanwhile);
    try {
      const res = await ask(sender.action, { method: "POST", body, accept: "streams" in sender.dataset ? "text/event-stream" : "text/html" }).catch((err) => {
        write(box?.value ? words + "\n" + box.value : words); // before what was typed meanwhile
        throw err;
      });
      if (streams(res)) await reply(res);
      else {
        putAll(parse(await res.text()));
        for (const html of meanwhile) put(piece(html));
      }
      sender.closest(".ask[popover]")?.hidePopover();
    } catch (err) {
      refuse(sender, err.message);
    } finally {
      sends.delete(meanwhile);
      delete sender.dataset.busy;
      shown?.remove();
      adding(formed);
    }
  }

  async function reply(res) {
    let ended = false;
    try {
      for await (const [kind, data] of events(res)) {
        if (kind === "put") put(piece(data.html));
        if (kind === "delta") form((_, text) => { text.textContent += data.text; });
        if (kind === "tool") form((box, text) => { box.insertBefore(piece(data.html), text); text.textContent = ""; });
        if (kind === "error") throw Object.assign(new Error(data.message), { said: true });
        ended ||= kind === "done";
      }
    } catch (err) {
      if (err.said) throw err;
    }
    if (!ended) throw new Error("The connection broke off. What was said is kept: open the conversation again to see the reply.");
  }

  function refuse(sender, text) {
    const box = $("[data-refused]", sender) || $("[data-refused]", sender.parentElement) || $("#trouble");
    if (box.hasAttribute("data-refused")) box.hidden = !text;
    box.textContent = text;
  }

  // Who writes a reply says so now and then, so that others see it (internal/console/writing.go). A refusal changes nothing.
  let told = 0;
  document.addEventListener("input", (e) => {
    const at = e.target.form?.dataset.writing;
    if (!at || !e.target.value.trim() || Date.now() - told < 3000) return;
    told = Date.now();
    ask(at, { method: "POST" }).catch(() => {});
  });

  document.addEventListener("submit", (e) => {
    const beginner = e.target.closest("[data-talk] [data-begin]");
    if (!beginner && !e.target.matches("[data-send]")) return;
    e.preventDefault();
    if (beginner) begin(beginner);
    else send(e.target);
  });
  // Canned answers: from their menu, or by a slash and the beginning of a name.
  const choices = () => all("[data-canned-name]").filter((b) => !b.parentElement.hidden);
  function offer(yes, begins = "") {
    $("#canned-list").hidden = !yes;
    $("[data-canned-open]").setAttribute("aria-expanded", String(yes));
    for (const b of all("[data-canned-name]")) {
      b.parentElement.hidden = !b.dataset.cannedName.startsWith(begins.toLowerCase());
      b.classList.remove("first");
    }
    if (begins) choices()[0]?.classList.add("first");
  }
  function insert(choice) {
    const box = $(".composer textarea"), text = choice.dataset.cannedText;
    if (/^\/\S*$/.test(box.value)) box.value = text;
    else box.setRangeText(text, box.selectionStart, box.selectionEnd, "end");
    offer(false);
    box.focus();
    box.dispatchEvent(new Event("input", { bubbles: true }));
  }
  document.addEventListener("input", (e) => {
    if (!$("[data-canned]") || !e.target.matches(".composer textarea")) return;
    const typed = /^\/(\S*)$/.exec(e.target.value);
    if (typed) offer(true, typed[1]);
    else if (!$("#canned-list").hidden) offer(false);
  });
  document.addEventListener("click", (e) => {
    const choice = e.target.closest("[data-canned-name]");
    if (choice) insert(choice);
    else if (e.target.closest("[data-canned-open]")) offer($("#canned-list").hidden);
  });
  document.addEventListener("keydown", (e) => {
    if (!$("[data-canned]") || $("#canned-list").hidden || !e.target.closest(".canned, .composer")) return;
    const list = choices(), at = list.indexOf(document.activeElement);
    if (e.key === "Escape") {
      offer(false);
      $(".composer textarea").focus();
    } else if ((e.key === "ArrowDown" || e.key === "ArrowUp") && list.length) {
      e.preventDefault();
      list[(at + (e.key === "ArrowDown" ? 1 : list.length - (at < 0 ? 0 : 1))) % list.length].focus();
    } else if (e.key === "Enter" && e.target.matches("textarea") && /^\/\S+$/.test(e.target.value) && list.length && !e.isComposing) {
      e.preventDefault();
      e.stopImmediatePropagation(); // it is not sent
      insert(list[0]);
    }
  });
  for (const kind of ["keydown", "keypress"]) {
    document.addEventListener(kind, (e) => {
      if (e.key !== "Enter" || e.shiftKey || e.isComposing || !e.target.matches(".composer textarea")) return;
      e.preventDefault(); // of both: some input methods send the second without the first
      if (kind === "keydown") send(e.target.form);
    });
  }

  // The test chat beside the editor.
  const panel = () => $("[data-talk]");
  const saved = () => $("[data-guard] [name=seen]")?.value;
  function show(content, started) {
    const p = panel();
    $("[data-talk-in]", p).replaceChildren(content);
    $("[data-restart]", p).hidden = !started;
    const record = $("[data-record]", p);
    record.hidden = !started;
    if (started) record.href = new URL($(".composer", content).action).pathname.replace(/\/say$/, "");
    $("[data-stale]", p).hidden = true;
    p.dataset.seen = saved();
    came(content);
    start(); // also of what comes later, such as a tool's answer
  }
  async function begin(beginner) {
    const button = $("[type=submit]", beginner);
    button.disabled = true;
    try {
      const doc = await page(beginner.action, { method: "POST", body: new URLSearchParams(new FormData(beginner)) });
      show($(".talk", doc), true);
      $(".composer textarea", panel()).focus();
    } catch (err) {
      button.disabled = false;
      $("#trouble").textContent = err.message;
    }
  }
  async function again(focus) {
    const values = (root) => new Map(all("[name$='.key']", root).map((key) => [key.value, key.nextElementSibling]));
    try {
      const fresh = $("#talk-begin", await page(panel().dataset.talk));
      const typed = values(panel());
      values(fresh).forEach((box, name) => { box.value = typed.get(name)?.value || ""; });
      show(fresh, false);
      if (focus) $("input:not([type=hidden]), button", panel().querySelector("form")).focus();
    } catch (err) {
      $("#trouble").textContent = err.message;
    }
  }
  document.addEventListener("click", (e) => { if (e.target.closest("[data-restart]")) again(true); });
  document.addEventListener("htmx:afterSettle", () => { // a save puts the rest of the page anew
    if (panel() && panel().dataset.seen && panel().dataset.seen !== saved()) {
      if ($("[data-begin]", panel())) again(false);
      else $("[data-stale]", panel()).hidden = false;
    }
    start();
  });

  // Live: a stream per place that asks for one (live.js). A stream begins with how things stand, so that nothing is lost in between.
  const lives = new Map(); // the place -> what ends its stream
  function start() {
    for (const [place, end] of lives) {
      if (place.isConnected) continue;
      end();
      lives.delete(place);
    }
    for (const place of all("[data-live]")) if (!lives.has(place)) lives.set(place, window.parleyLive(place.dataset.live, (kind, data) => happened(place, kind, data)));
    if (panel() && !panel().dataset.seen) panel().dataset.seen = saved();
    if ($("[data-scroll]") && !$("[data-scroll]").dataset.placed) {
      $("[data-scroll]").dataset.placed = "yes";
      if (!("fromTop" in $("[data-scroll]").dataset)) $("[data-scroll]").scrollTop = $("[data-scroll]").scrollHeight;
    }
  }
  function happened(place, kind, data) {
    if (kind === "put" && renewing.has(place)) renewing.get(place).pieces.push(data.html);
    else if (kind === "put") {
      for (const meanwhile of sends) meanwhile.push(data.html);
      put(piece(data.html));
    }
    if (kind === "list" && data.version !== place.dataset.list) renew(place, data.version);
    if (kind !== "refused") return;
    lives.get(place)?.();
    const said = data.message || $("[data-message]", parse(data.html || ""))?.textContent;
    if (said) $("#trouble").textContent = said;
  }

  // A list that has changed comes anew, once at a time. What is missed meanwhile, or can't be had, is asked for again. Pieces that come
  // meanwhile are put in place afterwards: what is on its way may be older than they are.
  const renewing = new Map(); // the place -> the version that it is to have, and the pieces that came meanwhile
  async function renew(place, version) {
    const under = renewing.get(place);
    if (under) {
      under.version = version;
      return;
    }
    const mine = { version, pieces: [] };
    renewing.set(place, mine);
    for (let tries = 0; place.isConnected && tries < 5; tries++) {
      const wanted = mine.version;
      try {
        await refresh(place);
        if (wanted === mine.version) break;
        tries = 0;
      } catch (err) {
        if (err.status >= 400 && err.status < 500) break;
        await new Promise((done) => setTimeout(done, 2000));
      }
    }
    renewing.delete(place);
    for (const html of mine.pieces) put(piece(html));
  }
  document.addEventListener("parley:stale", (e) => renew(e.target, "")); // files.js has added to it

  // The list comes anew, with what is new in it marked until the page is left. A question that is open in it is answered first.
  async function refresh(place) {
    const question = $(":popover-open", place);
    if (question) await new Promise((done) => question.addEventListener("toggle", done, { once: true }));
    const counts = new Map(all("[data-count]", place).map((row) => [row.id, row.classList.contains("unread") ? -1 : Number(row.dataset.count)]));
    const first = !new URLSearchParams(location.search).has("page");
    const doc = await page(place.dataset.again || location.href);
    const came = $("#results", doc);
    if (!came) return;
    const focused = document.activeElement.closest("#results a")?.getAttribute("href");
    if (Boolean($(".filters")) !== Boolean($(".filters", doc))) { // the first conversation of all
      const rest = [...$("#main", doc).children].map((el) => (el.id === "results" ? place : el));
      $("#main").replaceChildren(...rest);
      window.htmx?.process($("#main"));
    }
    const kept = new Map(all("[data-keep]", place).map((el) => [el.id, el])), active = document.activeElement;
    place.replaceChildren(...came.childNodes);
    for (const el of all("[data-keep]", place)) if (kept.has(el.id)) el.replaceWith(kept.get(el.id));
    if (active !== document.activeElement && place.contains(active)) active.focus();
    place.dataset.list = came.dataset.list;
    const cost = $(".who .num"), fresh = $(".who .num", doc); // members are shown none
    if (cost && fresh) cost.textContent = fresh.textContent;
    all("[data-count]", place).forEach((row) => {
      const was = counts.get(row.id);
      row.classList.toggle("unread", was === undefined ? first : Number(row.dataset.count) > was);
    });
    const unread = all(".unread", place).length;
    document.title = document.title.replace(/^(\(\d+\) )?/, unread ? `(${unread}) ` : "");
    if ($("#news")) $("#news").textContent = unread ? `${unread} with news` : "";
    place.dispatchEvent(new CustomEvent("parley:came", { bubbles: true }));
    if (focused) all("#results a").find((a) => a.getAttribute("href") === focused)?.focus();
  }

  start();
})();
