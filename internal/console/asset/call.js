// The page of a call: its recording is drawn, and goes with the transcript; a live call's clock runs. Without this the browser's own player
// plays, and the page shows how the call stands.
"use strict";
(() => {
  const $ = (sel, root = document) => root.querySelector(sel);
  const all = (sel, root = document) => [...root.querySelectorAll(sel)];
  const clock = (s) => `${Math.floor(s / 60)}:${String(Math.floor(s % 60)).padStart(2, "0")}`;

  // A player: the shape of the recording, with the customer above the line and the assistant below it, and a slider over it.
  class Player {
    constructor(box) {
      this.box = box;
      this.audio = $("audio", box);
      this.wave = $("[data-wave]", box);
      this.canvas = $("canvas", box);
      this.slider = $("input", this.wave);
      this.turns = all("[data-at]").map((el) => ({ el, at: Number(el.dataset.at) })).sort((a, b) => a.at - b.at);
      this.slider.addEventListener("input", () => { this.go(Number(this.slider.value)); });
      for (const kind of ["timeupdate", "seeked", "loadedmetadata", "pause"]) this.audio.addEventListener(kind, () => this.show());
      this.audio.addEventListener("play", () => this.run());
      this.load();
    }

    async load() {
      try {
        const res = await fetch(this.box.dataset.peaks, { headers: { "HX-Request": "true" } });
        if (!res.ok) return; // the player plays without its picture
        this.peaks = await res.json();
      } catch {
        return;
      }
      this.slider.max = this.peaks.seconds;
      this.wave.hidden = false;
      $("[data-legend]", this.box).hidden = false;
      new ResizeObserver(() => this.draw()).observe(this.wave);
      new MutationObserver(() => this.draw()).observe(document.documentElement, { attributeFilter: ["data-theme"] });
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
      this.show();
    }

    go(seconds, play) {
      this.audio.currentTime = seconds;
      if (play) this.audio.play().catch(() => {}); // the browser may not play before it was asked to; the place is kept
      this.show();
    }

    run() {
      if (this.audio.paused || !this.box.isConnected) return;
      this.show();
      requestAnimationFrame(() => this.run());
    }

    show() {
      const now = this.audio.currentTime;
      if (document.activeElement !== this.slider || !this.slider.matches(":active")) this.slider.value = now;
      this.slider.setAttribute("aria-valuetext", clock(now));
      const said = this.turns.filter((t) => t.at <= now + 0.05).pop();
      const started = now > 0 || !this.audio.paused;
      if (this.now !== said?.el || this.started !== started) {
        this.now?.removeAttribute("aria-current");
        this.now = said?.el;
        this.started = started;
        if (this.now && started) {
          this.now.setAttribute("aria-current", "true");
          if (!this.audio.paused) this.follow(this.now);
        }
      }
      this.draw();
    }

    // follow keeps what is being said in sight, in the transcript alone.
    follow(turn) {
      const box = turn.closest("[data-scroll]");
      if (!box) return;
      const top = turn.offsetTop - box.offsetTop, bottom = top + turn.offsetHeight;
      if (top < box.scrollTop || bottom > box.scrollTop + box.clientHeight) box.scrollTop = top - box.clientHeight / 3;
    }

    draw() {
      if (!this.peaks || this.wave.hidden) return;
      const { clientWidth: width, clientHeight: height } = this.wave, scale = devicePixelRatio || 1;
      if (this.canvas.width !== Math.round(width * scale) || this.canvas.height !== Math.round(height * scale)) {
        this.canvas.width = Math.round(width * scale);
        this.canvas.height = Math.round(height * scale);
      }
      const to = this.canvas.getContext("2d"), style = getComputedStyle(this.wave);
      const colour = (name) => style.getPropertyValue(name).trim();
      to.setTransform(scale, 0, 0, scale, 0, 0);
      to.clearRect(0, 0, width, height);
      const n = this.peaks.customer.length, step = width / Math.max(n, 1), middle = height / 2;
      const played = (this.audio.currentTime / this.peaks.seconds) * width;
      const side = (list, name, up) => {
        for (let i = 0; i < n; i++) {
          const x = i * step, tall = Math.max(0.5, (Math.sqrt(list[i]) / 10) * (middle - 2)); // quiet sounds show too
          to.globalAlpha = x < played ? 1 : 0.45;
          to.fillStyle = colour(name);
          to.fillRect(x, up ? middle - tall : middle, Math.max(step - 0.6, 0.6), tall);
        }
      };
      side(this.peaks.customer, "--of-customer", true);
      side(this.peaks.assistant, "--of-assistant", false);
      to.globalAlpha = 1;
      to.fillStyle = colour("--text");
      to.fillRect(Math.min(played, width - 1.5), 0, 1.5, height);
    }
  }

  const players = new WeakMap();
  function ready(root) {
    for (const box of all("[data-player]", root)) if (!players.has(box)) players.set(box, new Player(box));
  }
  const player = () => players.get($("[data-player]"));

  // A turn leads to its place in the recording: by its time, or by a click on it that selects nothing.
  document.addEventListener("click", (e) => {
    const turn = e.target.closest("[data-at]");
    if (!turn || !player() || e.target.closest("a, summary, pre, details")) return;
    if (!e.target.closest("[data-seek]") && String(getSelection())) return;
    player().go(Number(turn.dataset.at), true);
  });

  // The clock of a live call. The server's own is the measure: where the reader's differs, the time shown on arrival counts.
  const clocks = new WeakMap();
  setInterval(() => {
    for (const el of all("[data-since]")) {
      if (!clocks.has(el)) {
        const [m, s] = el.textContent.split(":").map(Number);
        clocks.set(el, performance.now() - (m * 60 + s) * 1000);
      }
      el.textContent = clock((performance.now() - clocks.get(el)) / 1000);
    }
  }, 250);

  document.addEventListener("parley:came", (e) => ready(e.target));
  document.addEventListener("htmx:afterSettle", () => ready(document));
  ready(document);
})();
