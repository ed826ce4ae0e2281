// Files on the page of a knowledgebase: chosen or dropped ones go up by themselves, a few at a time, each with its progress and with what
// was wrong about it. The form works without this, file by file too.
"use strict";
(() => {
  const $ = (sel, root = document) => root.querySelector(sel);
  const atOnce = 3;
  const waiting = [];
  let under = 0;

  const bytes = (n) => (n < 1000 ? `${n} B` : n < 1e6 ? `${Math.round(n / 1000)} kB` : `${(n / 1e6).toFixed(1)} MB`);

  function add(form, files) {
    const list = $("[data-uploads]", form);
    for (const file of files) {
      const row = $("template", form).content.firstElementChild.cloneNode(true);
      $(".upload-name", row).textContent = file.name;
      $("[data-size]", row).textContent = bytes(file.size);
      $("progress", row).setAttribute("aria-label", `Upload of ${file.name}`);
      list.append(row);
      if (file.size > Number(form.dataset.max)) refuse(row, "It is larger than 20 MB. Split it and upload the parts.");
      else {
        $("[data-state]", row).textContent = "waiting";
        waiting.push({ form, file, row });
      }
    }
    list.hidden = list.children.length === 0;
    next();
  }

  function refuse(row, why) {
    row.classList.add("failed");
    $("progress", row).hidden = true;
    $("[data-state]", row).textContent = "";
    const box = $("[data-why]", row);
    box.textContent = why;
    box.hidden = false;
  }

  function gone(row) {
    const list = row.parentElement;
    row.remove();
    if (list) list.hidden = list.children.length === 0;
  }

  function next() {
    while (under < atOnce && waiting.length) {
      const one = waiting.shift();
      if (!one.row.isConnected) continue; // taken off the list
      under++;
      send(one).then((why) => {
        if (why) refuse(one.row, why);
        else gone(one.row);
      }).finally(() => {
        under--;
        next();
      });
    }
  }

  // send uploads one file and says why it was refused, if it was. Only this kind of request tells how much of it is on its way.
  function send({ form, file, row }) {
    return new Promise((done) => {
      const body = new FormData();
      body.append("file", file, file.name);
      const req = new XMLHttpRequest();
      const bar = $("progress", row), state = $("[data-state]", row);
      req.upload.addEventListener("progress", (e) => {
        if (!e.lengthComputable) return;
        bar.value = e.loaded / e.total;
        state.textContent = e.loaded < e.total ? `${Math.floor((100 * e.loaded) / e.total)} %` : "being taken in";
      });
      req.addEventListener("load", () => {
        const doc = new DOMParser().parseFromString(req.responseText, "text/html");
        if (req.status === 200) {
          const results = $("#results");
          if (results) results.dispatchEvent(new CustomEvent("parley:stale", { bubbles: true }));
          done("");
          return;
        }
        const said = $("[data-why]:not([hidden])", doc) || $("[data-message]", doc);
        done(said ? said.textContent : `The server answered ${req.status}: try again.`);
      });
      req.addEventListener("error", () => done("The connection broke off: try again."));
      row.addEventListener("parley:dismissed", () => req.abort());
      req.addEventListener("abort", () => done("It was taken off the list."));
      req.open("POST", form.action);
      req.setRequestHeader("HX-Request", "true");
      state.textContent = "0 %";
      req.send(body);
    });
  }

  document.addEventListener("change", (e) => {
    const form = e.target.closest("[data-files]");
    if (!form || e.target.type !== "file") return;
    add(form, e.target.files);
    e.target.value = "";
  });
  document.addEventListener("click", (e) => {
    const row = e.target.closest("[data-dismiss]")?.closest("li");
    if (!row) return;
    const form = row.closest("form");
    row.dispatchEvent(new Event("parley:dismissed"));
    gone(row);
    $("input[type=file]", form).focus();
  });

  // Dropping: anywhere on the page counts as on the form, because a file that misses it would replace the page.
  const target = (e) => (e.dataTransfer && [...e.dataTransfer.types].includes("Files") ? $("[data-files]") : null);
  for (const kind of ["dragenter", "dragover"]) {
    document.addEventListener(kind, (e) => {
      const form = target(e);
      if (!form) return;
      e.preventDefault();
      e.dataTransfer.dropEffect = "copy";
      form.classList.add("over");
    });
  }
  document.addEventListener("dragleave", (e) => {
    if (!e.relatedTarget) $("[data-files]")?.classList.remove("over"); // it has left the window
  });
  document.addEventListener("drop", (e) => {
    const form = target(e);
    if (!form) return;
    e.preventDefault();
    form.classList.remove("over");
    add(form, e.dataTransfer.files);
  });
  addEventListener("beforeunload", (e) => { if (under || waiting.length) e.preventDefault(); });
})();
