// Live streams. A browser has six connections to a server (HTTP/1.1), for all of its tabs. So one tab has the connection, which carries
// the streams of all of them: a Web Lock decides which, and it tells the others by a BroadcastChannel. When it goes, another takes over.
// Where there are no Web Locks (an insecure page), each tab has its own connection, and lets go of it while it is hidden: it looks once in
// a while instead. Sounds and notifications are here too, because who has the connection makes them, once for all tabs.
"use strict";
(() => {
  const all = (sel) => [...document.querySelectorAll(sel)];
  const shares = Boolean(navigator.locks && window.BroadcastChannel);
  const channel = shares ? new BroadcastChannel("parley-live") : null;
  const tab = String(Math.random()).slice(2);
  const maxLives = 60, glance = 30000;

  const wanted = new Map(); // address -> what is done with its events in this tab
  window.parleyLive = (at, fn) => {
    const fns = wanted.get(at) || new Set();
    wanted.set(at, fns.add(fn));
    say();
    return () => {
      fns.delete(fn);
      if (!fns.size && wanted.get(at) === fns) wanted.delete(at);
      say();
    };
  };
  window.parleyLive.leads = () => leads;
  function deliver({ at, event, data }) {
    if (!at) return connected(event === "found");
    for (const fn of [...(wanted.get(at) || [])]) fn(event, data);
  }

  // Whether the connection is there is said in all tabs, once it has failed twice in a row: a server that restarts is back by then.
  function connected(yes) {
    const lost = document.getElementById("lost");
    if (lost) lost.hidden = yes;
  }

  // What this tab wants, told to who leads.
  let asking = false;
  function say() {
    if (asking) return;
    asking = true;
    queueMicrotask(() => {
      asking = false;
      if (leads) want(tab, [...wanted.keys()]);
      else channel?.postMessage({ kind: "want", tab, at: [...wanted.keys()] });
    });
  }

  // Leading: what all tabs want goes over one connection. It is made anew when they want something else, and begins with how things stand.
  const wants = new Map(); // tab -> addresses
  let leads = false, line = null, soon = 0, release = null;
  function want(who, at) {
    if (String(wants.get(who) || "") === String(at)) return;
    if (at.length) wants.set(who, at);
    else wants.delete(who);
    clearTimeout(soon);
    soon = setTimeout(open, 30);
  }
  function open() {
    line?.abort();
    line = null;
    const at = [...new Set([...wants.values()].flat())].slice(0, maxLives);
    if (!leads || !at.length) return;
    line = new AbortController();
    run("/lives?" + new URLSearchParams(at.map((one) => ["at", one])), at, line.signal);
  }
  let failures = 0; // of the connection, in a row
  async function run(url, at, signal) {
    for (let pause = 1000; !signal.aborted; pause = Math.min(pause * 2, 15000)) {
      const once = !shares && document.hidden;
      if (once) await wait(glance, signal);
      if (signal.aborted) return;
      try {
        const res = await fetch(url, { signal, headers: { "HX-Request": "true", Accept: "text/event-stream", ...(once && { "Parley-Once": "1" }) } });
        if (res.status >= 400 && res.status < 500 && res.status !== 429) { // too many streams: another will end
          const html = await res.text();
          for (const one of at) tell({ at: one, event: "refused", data: { html } });
          return;
        }
        if (res.ok) {
          for await (const e of events(res)) {
            if (signal.aborted) return;
            pause = 1000;
            if (failures > 1) tell({ at: "", event: "found" });
            failures = 0;
            tell(e);
          }
        }
      } catch {
        // the connection broke: it is made again
      }
      if (signal.aborted) return;
      if (++failures === 2) tell({ at: "", event: "lost" });
      if (!once) await wait(pause, signal);
    }
  }
  function tell(e) {
    channel?.postMessage({ kind: "event", e });
    if (e.event === "waits") waits(e.data);
    deliver(e);
  }
  function wait(ms, signal) {
    return new Promise((done) => {
      setTimeout(done, ms);
      signal.addEventListener("abort", done);
    });
  }
  // The events of the connection (WHATWG HTML, section 9.2), as our server writes them.
  async function* events(res) {
    const reader = res.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const parts = (text + value).split("\n\n");
      text = parts.pop();
      for (const part of parts) {
        const m = /^event: at\ndata: (.*)$/.exec(part);
        if (!m) continue;
        const e = JSON.parse(m[1]);
        yield { ...e, data: JSON.parse(e.data) };
      }
    }
  }

  channel?.addEventListener("message", ({ data: m }) => {
    if (m.kind === "want" && leads) want(m.tab, m.at);
    if (m.kind === "who") say();
    if (m.kind === "event" && !leads) deliver(m.e);
    if (m.kind === "ring") ring();
  });
  let queued = null;
  function lead() {
    leads = true;
    channel?.postMessage({ kind: "who" });
    say();
  }
  function begin() {
    if (!shares) return lead();
    queued = new AbortController();
    navigator.locks.request("parley-live", { signal: queued.signal }, () => {
      lead();
      return new Promise((done) => { release = done; });
    }).catch(() => {}); // the page went before it was its turn
  }
  function stop() {
    if (!leads) channel?.postMessage({ kind: "want", tab, at: [] });
    leads = false;
    wants.clear();
    open();
    queued?.abort();
    release?.();
    release = null;
  }
  addEventListener("pagehide", stop);
  addEventListener("pageshow", (e) => { if (e.persisted) begin(); });
  if (!shares) document.addEventListener("visibilitychange", open);

  // What is heard and seen when a conversation begins to need a person, as this browser is asked to.
  const on = (name) => localStorage.getItem("parley-" + name) === "on";
  function waits({ newest, words }) {
    const seen = localStorage.getItem("parley-waits");
    localStorage.setItem("parley-waits", Math.max(Number(newest), Number(seen)));
    if (seen === null || Number(newest) <= Number(seen)) return;
    if (on("sound")) {
      channel?.postMessage({ kind: "ring" });
      ring();
    }
    if (on("notice") && window.Notification?.permission === "granted") {
      try {
        const n = new Notification("A customer waits for a person", { body: words + ".", tag: "parley-waits" });
        n.onclick = () => {
          window.focus();
          location.assign("/conversations?show=needs_person");
        };
      } catch {
        // a telephone's browser shows them by other means only
      }
    }
  }
  // A browser lets only tabs that were used make a sound: the first of them does.
  function ring() {
    if (navigator.userActivation && !navigator.userActivation.hasBeenActive) return;
    if (!navigator.locks) chime();
    else navigator.locks.request("parley-ring", { ifAvailable: true }, (lock) => lock && chime());
  }
  function chime() {
    return new Promise((done) => {
      const sound = new AudioContext(), loud = sound.createGain();
      loud.connect(sound.destination);
      loud.gain.setValueAtTime(0.12, sound.currentTime);
      loud.gain.exponentialRampToValueAtTime(0.001, sound.currentTime + 0.7);
      [660, 880].forEach((hz, i) => {
        const tone = sound.createOscillator();
        tone.frequency.value = hz;
        tone.connect(loud);
        tone.start(sound.currentTime + i * 0.18);
        tone.stop(sound.currentTime + 0.7);
      });
      setTimeout(() => sound.close().then(done, done), 800);
    });
  }
  function switches() {
    for (const box of all("[data-alarms]")) box.hidden = false;
    for (const b of all("[data-alarm]")) {
      const allowed = b.dataset.alarm === "sound" || window.Notification?.permission === "granted";
      b.hidden = b.dataset.alarm === "notice" && !window.Notification;
      b.setAttribute("aria-pressed", String(allowed && on(b.dataset.alarm)));
    }
  }
  document.addEventListener("click", async (e) => {
    const button = e.target.closest("[data-alarm]");
    if (!button) return;
    const name = button.dataset.alarm, yes = button.getAttribute("aria-pressed") !== "true";
    if (yes && name === "notice" && (await Notification.requestPermission()) !== "granted") {
      document.getElementById("trouble").textContent = "This browser blocks notifications of this page. Allow them by the icon beside the address, then try again.";
      return;
    }
    localStorage.setItem("parley-" + name, yes ? "on" : "off");
    if (yes && name === "sound") chime(); // as it will be
    switches();
  });
  addEventListener("storage", switches); // another tab has switched
  document.addEventListener("htmx:afterSettle", switches);
  document.addEventListener("parley:came", switches);
  switches();
  begin();
})();
