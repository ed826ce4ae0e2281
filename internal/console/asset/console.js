// The console's own script. Pages work without it; it adds what HTML alone can't do: the theme without a reload, rows that come and go,
// boxes that grow, variables that are marked, and a word before unsaved changes are lost.
"use strict";
(() => {
  const $ = (sel, root = document) => root.querySelector(sel);
  const all = (sel, root = document) => [...root.querySelectorAll(sel)];

  // Theme: the cookie is what the server paints the next page by.
  document.addEventListener("click", (e) => {
    const button = e.target.closest("[data-theme-button]");
    if (!button) return;
    e.preventDefault();
    const themes = ["auto", "light", "dark"];
    const root = document.documentElement;
    const next = themes[(themes.indexOf(root.dataset.theme) + 1) % themes.length];
    root.dataset.theme = next;
    document.cookie = `parley_theme=${next};path=/;max-age=31536000;samesite=lax`;
    $("[data-theme-name]", button).textContent = next;
  });

  // Rows: a template is copied under the next number that the form has not used.
  document.addEventListener("click", (e) => {
    const add = e.target.closest("[data-add]");
    if (add) {
      const rows = add.closest("[data-rows]");
      const name = rows.dataset.rows;
      const used = all("[name]", add.form).map((i) => i.name).filter((n) => n.startsWith(name + "."))
        .map((n) => parseInt(n.slice(name.length + 1), 10)).filter(Number.isInteger);
      const next = Math.max(-1, ...used) + 1;
      const copy = $("template", rows).content.cloneNode(true);
      for (const el of all("*", copy)) {
        for (const a of ["id", "name", "for", "aria-describedby"]) {
          const v = el.getAttribute(a);
          if (v && v.includes(name + ".NEW")) el.setAttribute(a, v.replaceAll(name + ".NEW", `${name}.${next}`));
        }
      }
      const into = $("[data-rows-in]", rows);
      into.append(copy);
      ready(into.lastElementChild);
      $("input:not([type=hidden]), select, textarea", into.lastElementChild).focus();
      changed(add.form);
    }
    const remove = e.target.closest("[data-remove]");
    if (remove) {
      const form = remove.form, rows = remove.closest("[data-rows]");
      remove.closest("[data-row]").remove();
      $("[data-add]", rows).focus();
      changed(form);
      variables();
    }
    const copyFrom = e.target.closest("[data-copy]");
    if (copyFrom) {
      const box = document.getElementById(copyFrom.dataset.copy);
      box.select();
      const done = () => { $("span", copyFrom).textContent = "Copied"; };
      if (navigator.clipboard) navigator.clipboard.writeText(box.value).then(done, () => document.execCommand("copy") && done());
      else if (document.execCommand("copy")) done();
    }
  });

  // Unsaved changes: every guarded form knows whether it was touched since it came.
  function changed(form) {
    if (!form || !form.hasAttribute("data-guard")) return;
    form.classList.add("touched");
    const word = $("[data-dirty]", form);
    if (word) word.hidden = false;
  }
  const touched = () => $("form.touched[data-guard]");
  addEventListener("beforeunload", (e) => { if (touched()) e.preventDefault(); });
  document.addEventListener("submit", (e) => { e.target.classList.remove("touched"); });
  // A request that failed leaves the form as it was: changed.
  const failed = (text) => (e) => {
    const form = e.target.closest("form");
    changed(form);
    trouble(text(e.detail.xhr));
  };
  document.addEventListener("htmx:responseError", failed((xhr) => {
    if (xhr.status === 401) return "Your session has ended. Sign in again in another tab, then save once more: what you wrote is still here.";
    const said = $("[data-message]", new DOMParser().parseFromString(xhr.responseText, "text/html"));
    return "Nothing was saved. " + (said ? said.textContent : `The server answered ${xhr.status}: try again.`);
  }));
  document.addEventListener("htmx:sendError", failed(() => "The server can't be reached. Nothing was saved: try again when the network is back."));
  document.addEventListener("htmx:beforeRequest", () => trouble(""));
  document.addEventListener("htmx:beforeSwap", () => trouble(""));
  function trouble(text) {
    const box = $("#trouble");
    if (box.textContent !== text) box.textContent = text;
  }

  document.addEventListener("input", (e) => {
    const el = e.target;
    changed(el.form);
    if (el.matches("textarea")) grow(el);
    if (el.type === "range" && el.nextElementSibling) el.nextElementSibling.textContent = Number(el.value).toFixed(2);
    if (el.dataset.colour) {
      const box = document.getElementById(el.dataset.colour);
      box.value = el.value;
    }
    if (el.id && el.id.startsWith("f-widget_settings.color")) paint(el);
    variables();
  });
  // Ctrl+S saves the form that was touched, else the page's only one.
  document.addEventListener("keydown", (e) => {
    if (e.key.toLowerCase() !== "s" || !(e.ctrlKey || e.metaKey) || e.altKey || e.shiftKey) return;
    const button = $("#save");
    if (!button) return;
    e.preventDefault();
    if (!button.disabled) button.form.requestSubmit(button);
  });

  // The index says in which section one reads.
  function section() {
    const index = $(".index");
    if (!index) return;
    const line = index.getBoundingClientRect().bottom + 60;
    const links = all("a", index);
    let now = links[0];
    for (const link of links) {
      if (document.getElementById(link.hash.slice(1))?.getBoundingClientRect().top <= line) now = link;
    }
    if (innerHeight + scrollY >= document.documentElement.scrollHeight - 2) now = links[links.length - 1];
    if (now.hasAttribute("aria-current")) return;
    for (const link of links) link.toggleAttribute("aria-current", link === now);
    now.setAttribute("aria-current", "true");
    const list = $("ul", index); // on a phone it scrolls sideways
    list.scrollLeft = now.offsetLeft - list.offsetLeft - 40;
  }
  addEventListener("scroll", section, { passive: true });
  addEventListener("resize", section, { passive: true });

  // The widget's preview follows its settings, saved or not.
  let soon = 0;
  function preview(el) {
    const frame = $("[data-widget-preview] iframe");
    if (!frame || el.form !== frame.closest("form")) return;
    clearTimeout(soon);
    soon = setTimeout(() => {
      const sent = document.createElement("form");
      sent.method = "post";
      sent.action = frame.parentElement.dataset.widgetPreview;
      sent.target = frame.name;
      sent.hidden = true;
      for (const [name, value] of new FormData(el.form)) {
        const box = document.createElement("textarea");
        box.name = name;
        box.value = value;
        sent.append(box);
      }
      document.body.append(sent);
      sent.submit();
      sent.remove();
    }, 300);
  }
  const shows = (el) => el.name && (el.name.startsWith("widget_settings.") || ["name", "language_id", "initial_message"].includes(el.name) || el.name.startsWith("variables."));
  for (const kind of ["input", "change"]) document.addEventListener(kind, (e) => { if (shows(e.target) || e.target.dataset.colour) preview(e.target); });

  document.addEventListener("focusin", (e) => { if (e.target.matches("[data-select]")) e.target.select(); });

  // A textarea lies in one cell with a copy of its text, so both are as high as the text. The copy marks the variables.
  const pattern = /(\{\{\s*[A-Za-z0-9_.-]{1,255}\s*\}\})/;
  function grow(box) {
    const cell = box.parentElement;
    if (!cell.classList.contains("grow")) return;
    let copy = $(".copy-of", cell);
    if (!copy) {
      copy = document.createElement("span");
      copy.className = "copy-of";
      copy.dir = "auto";
      copy.setAttribute("aria-hidden", "true");
      cell.prepend(copy);
    }
    if (!cell.hasAttribute("data-marked")) {
      copy.textContent = box.value + "\n";
      return;
    }
    copy.replaceChildren(...(box.value + "\n").split(pattern).map((part, i) => {
      if (i % 2 === 0) return document.createTextNode(part);
      const mark = document.createElement("mark");
      mark.textContent = part;
      mark.classList.toggle("missing", from(part.slice(2, -2).trim()) === "no value yet");
      return mark;
    }));
  }

  // Where a variable has its value from.
  function from(name) {
    if (all("[data-key]").some((i) => i.closest("[data-rows=variables]") && i.value.trim() === name)) return "yours";
    return $("[data-vars]")?.dataset.builtin.split(" ").includes(name) ? "built in" : "no value yet";
  }
  // The list of the variables that the prompt uses, and which of them have a value.
  function variables() {
    const list = $("[data-vars]");
    if (!list) return;
    const known = all("[data-rows=variables] [data-key]").map((i) => i.value.trim()).join("\n");
    if (list.dataset.known !== known) { // marks show which are missing
      list.dataset.known = known;
      all("[data-marked] textarea").forEach(grow);
    }
    const text = all("[data-marked] textarea").map((t) => t.value).join("\n");
    const names = new Set([...text.matchAll(/\{\{\s*([A-Za-z0-9_.-]{1,255})\s*\}\}/g)].map((m) => m[1]));
    list.replaceChildren(...[...names].map((name) => {
      const item = document.createElement("li"), code = document.createElement("code"), where = document.createElement("span");
      code.textContent = name;
      where.textContent = from(name);
      item.classList.toggle("missing", where.textContent === "no value yet");
      item.append(code, " ", where);
      return item;
    }));
  }

  function paint(box) {
    const pick = box.parentElement.querySelector("[data-colour]");
    if (/^#[0-9a-f]{6}$/i.test(box.value)) pick.value = box.value;
  }

  // Times are in their page's zone, unless this browser does not know it, and say which that is.
  function inZone(at, style, zone) {
    try {
      return at.toLocaleString(undefined, { ...style, timeZone: zone || undefined });
    } catch (err) {
      return at.toLocaleString(undefined, style);
    }
  }

  // An account without a time zone of its own begins with the browser's (internal/console/session.go).
  const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (here) document.cookie = `parley_zone=${here}; path=/; max-age=31536000; samesite=lax${location.protocol === "https:" ? "; secure" : ""}`;

  // What a piece of the page needs when it comes.
  function ready(root) {
    if (!root || !root.querySelectorAll) return;
    all(".grow > textarea", root).forEach(grow);
    all("[data-colour]", root).forEach((pick) => {
      pick.hidden = false;
      paint(document.getElementById(pick.dataset.colour));
    });
    all("time[datetime]", root).forEach((t) => {
      const at = new Date(t.dateTime);
      if (Number.isNaN(at.getTime())) return;
      const zone = t.closest("[data-zone]")?.dataset.zone;
      t.title = inZone(at, { dateStyle: "full", timeStyle: "long" }, zone);
      const style = { month: "short", day: "numeric", hour: "numeric", minute: "2-digit", timeZoneName: "short" };
      t.textContent = inZone(at, "brief" in t.dataset ? style : { ...style, year: "numeric" }, zone);
    });
    all("[data-zones]", root).forEach((list) => {
      if (list.children.length || !Intl.supportedValuesOf) return;
      list.append(...Intl.supportedValuesOf("timeZone").map((zone) => {
        const o = document.createElement("option");
        o.value = zone;
        return o;
      }));
    });
    const first = $("[data-focus]", root);
    if (first) first.focus();
    all("[data-widget-preview]", root).forEach((place) => {
      if ($("iframe", place)) return;
      const frame = document.createElement("iframe");
      frame.name = "widget-preview";
      frame.title = "Preview of the widget";
      frame.src = place.dataset.widgetPreview;
      place.append(frame);
    });
    section();
    if ($("[data-dirty-now], .mistakes", root)) all("form[data-guard]", root).forEach((f) => $("[data-dirty], .mistakes", f) && changed(f));
  }
  document.addEventListener("htmx:afterSettle", (e) => {
    ready(e.detail.elt && e.detail.elt.isConnected ? e.detail.elt : document);
    variables();
  });
  // A form may lead to a page of another part of the house.
  document.addEventListener("htmx:replacedInHistory", () => {
    for (const link of all("#nav nav a")) {
      if (location.pathname === link.pathname || location.pathname.startsWith(link.pathname + "/")) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  });
  document.addEventListener("parley:came", (e) => ready(e.target)); // chat.js has put something in place
  // After a save the notice in the page has said it: the address need not.
  const url = new URL(location.href);
  if (url.searchParams.has("done")) {
    url.searchParams.delete("done");
    history.replaceState(history.state, "", url);
  }
  ready(document);
})();
