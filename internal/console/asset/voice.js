// What is heard beside the editor: the test call, with the browser's microphone, and a voice's sample.
"use strict";
(() => {
  const $ = (sel, root = document) => root.querySelector(sel);
  const all = (sel, root = document) => [...root.querySelectorAll(sel)];

  // The microphone's own errors (web-call.js), in words that say how to fix them.
  const known = {
    NotAllowedError: "The microphone is blocked. Allow it for this page, by the icon beside the address, then call again.",
    NotFoundError: "No microphone was found. Connect one, then call again.",
    NotReadableError: "Another program is using the microphone. Close it there, then call again.",
    insecure: "Browsers give the microphone to secure pages only. Open the console over https, or on the server's own machine as localhost.",
  };

  let call = null; // the one that is on, or begins
  const place = () => $("[data-call]");
  const part = (name) => $(`[data-call-${name}]`, place());

  function say(words, mistake) {
    part("state").textContent = words;
    part("state").classList.toggle("wrong", Boolean(mistake));
  }
  function live(yes) {
    part("live").hidden = !yes;
    part("over").hidden = yes;
  }
  function show(yes) {
    place().hidden = !yes;
    $("[data-talk-in]").hidden = yes;
    $("[data-call-start]").hidden = yes;
  }

  async function start() {
    if (call) return;
    const mine = (call = { hangup() {} });
    show(true);
    live(true);
    part("words").replaceChildren();
    part("mute").setAttribute("aria-pressed", "false");
    say("Connecting: your browser may ask for the microphone.");
    const keys = all("#talk-begin [name$='.key']").map((key) => [key.value, key.nextElementSibling.value]).filter(([, value]) => value);
    let partial = null; // what the customer is saying
    try {
      const { call: dial } = await import("/web-call.js");
      const made = await dial({ url: place().dataset.call, variables: Object.fromEntries(keys), headers: { "HX-Request": "true" }, on: (kind, data) => {
        if (call !== mine) return;
        if (kind === "live") say("Listening. You can speak now.");
        else if (kind === "speaking") say(data.yes ? "Speaking…" : "Listening. You can speak now.");
        else if (kind === "waiting") say("The connection is interrupted: looking for the network…");
        else if (kind === "partial") {
          partial = partial || spoken("customer");
          partial.lastChild.textContent = data.text;
          say("Listening…");
        } else if (kind === "turn") {
          if (data.speaker === "customer") {
            partial?.remove();
            partial = null;
            say("Thinking…");
          }
          spoken(data.speaker === "customer" ? "customer" : "ai", data);
        } else if (kind === "tool") used(data);
        else if (kind === "end" && data.reason === "refused") end(data.error, true);
        else if (kind === "end") end(endings[data.reason] || "The call has ended.", Boolean(endings[data.reason]));
        part("words").scrollTop = part("words").scrollHeight;
      } });
      if (call !== mine) return made.hangup();
      Object.assign(mine, made);
      part("mute").focus();
    } catch (err) {
      if (call !== mine) return;
      end(why(err), true);
    }
  }

  const endings = {
    lost: "The connection was lost. Call again when the network is back.",
    unreachable: "No sound gets through: this network blocks it, or the server's port for calls from browsers is closed. Use the chat, or another network.",
  };

  function why(err) {
    return known[err.name] || (err.status === 401 ? "Your session has ended. Sign in again." : err.status ? err.message
      : err.status === 0 ? "The server can't be reached. Call again when the network is back." : "The call could not be started: " + err.message);
  }

  // Taking part in a live call.
  let seat = null; // the line, or what becomes it, and the box of its call
  const modes = {
    listen: "You hear both. Nobody hears you.",
    whisper: "The assistant hears what you say. The customer does not.",
    talk: "Both hear you, and the assistant keeps talking.",
    take_over: "You have taken over. The assistant listens silently.",
  };
  function joined(box, mode, words, mistake) {
    for (const b of all("[data-join-as]", box)) b.setAttribute("aria-pressed", String(b.dataset.joinAs === mode));
    $("[data-join-back]", box).hidden = mode !== "take_over";
    $("[data-join-leave]", box).hidden = !mode;
    $("[data-join-state]", box).textContent = words;
    $("[data-join-state]", box).classList.toggle("wrong", Boolean(mistake));
  }
  function leave(words, mistake) {
    const was = seat;
    seat = null;
    was.hangup();
    joined(was.box, "", words, mistake);
  }
  async function take(box, mode) {
    if (seat && seat.box !== box) leave("You left this call.");
    try {
      if (!seat) {
        const mine = (seat = { box, hangup() {} });
        joined(box, "", "Connecting: your browser may ask for the microphone.");
        const { call: dial } = await import("/web-call.js");
        const live = new Promise((resolve) => (mine.live = resolve));
        const made = await dial({ url: box.dataset.join, headers: { "HX-Request": "true" }, on: (kind) => {
          if (kind === "live") {
            mine.live();
            if (mine.waited) joined(box, mine.mode, modes[mine.mode]);
            mine.waited = false;
          } else if (kind === "waiting" && seat === mine) {
            mine.waited = true;
            $("[data-join-state]", box).textContent = "The connection is interrupted: looking for the network…";
          }
          else if (kind === "end" && seat === mine) leave("You are no longer in this call.");
        } });
        if (seat !== mine) return made.hangup();
        Object.assign(mine, made);
        await live;
        if (seat !== mine) return;
        mine.mode = "listen";
        if (mode === "listen") return joined(box, mode, modes[mode]);
      }
      const mine = seat;
      if (!mine.place) return; // it is on its way
      const leg = mine.place.split("/").pop();
      const res = await fetch(box.dataset.legs + leg + "?mode=" + mode, { method: "POST", headers: { "HX-Request": "true" } })
        .catch((err) => { throw Object.assign(err, { status: 0 }); });
      if (!res.ok) throw Object.assign(new Error((await res.json().catch(() => ({}))).message || "status " + res.status), { status: res.status });
      mine.mode = mode;
      if (seat === mine) joined(box, mode, modes[mode]);
    } catch (err) {
      if (seat?.box !== box) return; // somebody went on to another call
      if (!seat.place) leave(why(err), true); // there is no line
      else {
        $("[data-join-state]", box).textContent = why(err);
        $("[data-join-state]", box).classList.add("wrong");
      }
    }
  }

  // A turn, with how quick the reply was.
  function spoken(who, turn) {
    const box = document.createElement("article"), words = document.createElement("p");
    box.className = "said " + who;
    words.className = "words";
    words.dir = "auto";
    words.textContent = turn ? turn.text + (turn.interrupted ? " —" : "") : "";
    const head = document.createElement("header"), name = document.createElement("span");
    name.textContent = who === "ai" ? "AI" : "You";
    head.append(name);
    const ms = turn?.latency?.first_packet_ms;
    if (ms) head.append(` ${ms} ms`);
    box.append(head, words);
    const tools = []; // those that a reply has used are told before the words that it answers
    for (let at = part("words").lastElementChild; who === "customer" && turn && at?.matches(".tool-call"); at = at.previousElementSibling) tools.unshift(at);
    part("words").append(box, ...tools);
    return box;
  }

  // A tool that was used, with what it was given and what it answered.
  function used(tool) {
    const box = $("[data-call-tool]").content.firstElementChild.cloneNode(true), [given, result] = all("pre", box);
    $("code", box).textContent = tool.name;
    $(".state", box).textContent = tool.failed ? "failed" : "done";
    box.classList.toggle("failed", tool.failed);
    given.textContent = indented(tool.arguments);
    result.textContent = indented(tool.result);
    part("words").append(box);
  }
  function indented(text) {
    try {
      return JSON.stringify(JSON.parse(text), null, 2);
    } catch {
      return text;
    }
  }

  function end(words, mistake) {
    const focused = part("live").contains(document.activeElement) || document.activeElement === document.body;
    call = null;
    live(false);
    say(words, mistake);
    if (focused) $("button", part("over")).focus();
  }
  function hangup(words) {
    const was = call;
    end(words);
    was?.hangup();
  }

  document.addEventListener("click", (e) => {
    const on = (name) => e.target.closest(`[data-call-${name}]`);
    if (on("start") || on("again")) start();
    else if (on("hangup")) hangup("The call has ended.");
    else if (on("back")) {
      show(false);
      $("[data-call-start]").focus();
    } else if (on("mute")) {
      const off = part("mute").getAttribute("aria-pressed") !== "true";
      part("mute").setAttribute("aria-pressed", String(off));
      call?.mute?.(off);
    } else if (e.target.closest("[data-join-as]")) take(e.target.closest("[data-join]"), e.target.closest("[data-join-as]").dataset.joinAs);
    else if (e.target.closest("[data-join-back]")) take(e.target.closest("[data-join]"), "listen");
    else if (e.target.closest("[data-join-leave]")) leave("You left the call.");
    else if (e.target.closest("[data-preview]")) preview(e.target.closest("[data-preview]"));
  });
  document.addEventListener("htmx:afterSettle", () => { // another page came
    if (call && !place()) {
      call.hangup();
      call = null;
    }
    if (seat && !seat.box.isConnected) leave("");
  });
  // On a phone it all is a sheet: who closes it sees no more that the microphone is on.
  document.addEventListener("toggle", (e) => {
    if (call && e.target.id === "talk" && e.newState === "closed") hangup("The call ended when you closed this.");
  }, true); // these events don't bubble
  addEventListener("pagehide", () => {
    if (call) hangup("The call has ended.");
    if (seat) leave("");
  });

  // A voice's sample plays, until it is asked to stop or another is chosen.
  let sample = null;
  function stop() {
    sample?.audio.pause();
    sample?.button.setAttribute("aria-pressed", "false");
    sample = null;
  }
  function preview(button) {
    if (sample) return stop();
    const voice = document.getElementById(button.dataset.preview).value;
    const mine = (sample = { button, audio: new Audio(`/api/voices/${encodeURIComponent(voice)}/preview`) });
    button.setAttribute("aria-pressed", "true");
    mine.audio.addEventListener("ended", stop);
    $("#trouble").textContent = "";
    mine.audio.play().catch((err) => {
      if (sample !== mine) return;
      stop();
      if (err.name !== "AbortError") $("#trouble").textContent = "This voice has no sample on this server at the moment.";
    });
  }
  document.addEventListener("change", (e) => { if (e.target.id === "f-voice_id") stop(); });
})();
