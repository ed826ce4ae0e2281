// A call with an assistant from a browser, by WHIP (RFC 9725):
//   import { call } from "https://SERVER/web-call.js";
//   const c = await call({ url: "https://SERVER/api/web-calls/UUID", variables: { customer_name: "Ana" }, on: (kind, data) => … });
//   c.mute(true); c.key("5"); c.hangup();
// tools: functions by name, which the model may call.
//
// on is told "live" (one can speak now), "waiting" (the network is away or another one: live again, or the end, follows), what the server tells ("partial"
// {text}, "turn" {speaker, text, latency, …}, "tool" {name}), "speaking" {yes} when the assistant begins or stops being heard (stops is told before the end, too), and in the
// end, once, "end" {reason}: "ended", "lost" where the network or the microphone went away, "unreachable" where no sound got through in time, or
// "refused" {status, error} where the last line went to somebody else meanwhile. key is false where the call can't take it yet. Until call returns it throws instead: the microphone's own errors
// (NotAllowedError, NotFoundError, NotReadableError), one named insecure where the browser gives no microphone to the page, and the server's
// refusals, with status and wait (seconds).
export async function call({ url, variables, on, headers, tools = {} }) {
  const devices = navigator.mediaDevices;
  if (!devices || !devices.getUserMedia || !window.RTCPeerConnection) throw Object.assign(new Error("This page may not use a microphone."), { name: "insecure" });
  const wanted = { audio: { echoCancellation: true, noiseSuppression: true, autoGainControl: true } };
  const mic = await devices.getUserMedia(wanted);
  let [track] = mic.getAudioTracks();
  const line = new RTCPeerConnection();
  const speaker = new Audio();
  let place = ""; // of the call, to hang it up
  let over = false;
  let begun = false;
  let sender;

  // How long the connection may take: by the server's own port, until its TURN servers help too, and in all. And how long a lost one is
  // sought again, and after which pause each time.
  const directTime = 1000;
  const connectTime = 5000;
  const seekTime = 15000;
  const seekPause = 5000;
  let deadline = 0, seeking = 0;
  let lostAt = 0; // when the connection was lost; 0: it is there

  // Whether the assistant is heard: what came since the last look had energy, and a pause between words is none. The server sends all the
  // time: where nothing has come for a second, the network has changed, and the browser would notice only seconds later.
  const stallTime = 1000;
  const stallPause = 3000;
  let watch = 0, energy = 0, heard = 0, speaks = false;
  let packets = 0, came = 0, tried = 0;
  async function look() {
    for (const one of (await line.getStats()).values()) {
      if (one.type !== "inbound-rtp" || over) continue;
      if (one.packetsReceived !== packets || deadline || lostAt || !came) came = Date.now();
      packets = one.packetsReceived;
      if (Date.now() - came > stallTime && Date.now() - tried > stallPause) {
        tried = Date.now();
        reconnect();
      }
      if (one.totalAudioEnergy - energy > 2e-5) heard = Date.now();
      energy = one.totalAudioEnergy || 0;
      const now = Date.now() - heard < 600;
      if (now !== speaks) on("speaking", { yes: (speaks = now) });
    }
  }

  // The server is told, unless it has told us.
  function end(reason, told, why) {
    if (over) return;
    over = true;
    clearInterval(watch);
    clearTimeout(deadline);
    clearTimeout(seeking);
    removeEventListener("online", online);
    if (network) network.removeEventListener("change", moved);
    track.stop();
    speaker.srcObject = null;
    const bye = place && !told ? fetch(place, { method: "DELETE", keepalive: true, credentials: "same-origin", headers }) : Promise.resolve();
    bye.catch(() => {}).then(() => line.close());
    if (begun && speaks) on("speaking", { yes: (speaks = false) });
    if (begun) on("end", { reason, ...why });
  }
  const channel = line.createDataChannel("parley");
  channel.onmessage = (e) => {
    const data = JSON.parse(e.data);
    if (over) return;
    if (data.type === "refused") end("refused", false, data);
    else if (data.type === "end") end("ended", true);
    else if (data.type === "tool_call") run(tools, data).then((r) => channel.readyState === "open" && channel.send(JSON.stringify({ type: "tool_result", id: data.id, ...r })));
    else on(data.type, data);
  };
  channel.onclose = () => end("ended", true);

  // A headset that is pulled out: the call goes on with the microphone that the browser takes now.
  async function plug() {
    if (over) return;
    const other = await devices.getUserMedia(wanted);
    const enabled = track.enabled;
    [track] = other.getAudioTracks();
    if (over) return track.stop();
    track.enabled = enabled;
    track.onended = unplugged;
    await sender.replaceTrack(track);
  }
  const unplugged = () => plug().catch(() => end("lost"));
  track.onended = unplugged;

  // The call is connected anew, by what the network lets through now; the server goes on with it (RFC 9725, section 4.3).
  let servers = [], answer = "", anew = false, again = false;
  async function reconnect() {
    if (over || !answer) return;
    again = anew; // the network has changed once more meanwhile
    if (anew) return;
    anew = true;
    try {
      line.setConfiguration({ iceServers: servers });
      line.restartIce();
      await line.setLocalDescription();
      const ours = line.localDescription.sdp.match(/^a=ice-(ufrag|pwd):.*$/gm).slice(0, 2).join("\r\n") + "\r\n";
      const sent = Object.assign({}, headers, { "Content-Type": "application/trickle-ice-sdpfrag", "If-Match": "*" });
      const res = await fetch(place, { method: "PATCH", credentials: "same-origin", headers: sent, body: ours });
      if (!res.ok) throw new Error("status " + res.status);
      answer = renewed(answer, await res.text());
      await line.setRemoteDescription({ type: "answer", sdp: answer });
    } catch (err) {
      if (!over && line.signalingState === "have-local-offer") await line.setLocalDescription({ type: "rollback" }).catch(() => {});
    }
    anew = false;
    if (again) reconnect();
  }
  // seek connects anew until the call is there again, or too long away.
  function seek() {
    clearTimeout(seeking);
    if (over || !lostAt) return;
    if (Date.now() - lostAt > seekTime) return end("lost");
    reconnect();
    seeking = setTimeout(seek, seekPause);
  }
  function lose() {
    if (over || lostAt || !begun || deadline) return; // before the first connection the deadline counts
    lostAt = Date.now();
    on("waiting", {});
    seek();
  }
  // The browser has another network; it tells of a new estimate of its speed as well.
  const network = navigator.connection;
  let kind = network && network.type;
  function moved() {
    const was = kind;
    kind = network && network.type;
    if (!over && begun && !deadline && kind !== was) reconnect();
  }
  function online() {
    if (!over && begun && !deadline) reconnect();
  }
  addEventListener("online", online);
  if (network && network.addEventListener) network.addEventListener("change", moved);
  line.ontrack = (e) => {
    speaker.srcObject = new MediaStream([e.track]);
    speaker.play().catch(() => {});
  };
  line.onconnectionstatechange = () => {
    if (over) return;
    if (line.connectionState === "connected") {
      clearTimeout(deadline);
      clearTimeout(seeking);
      deadline = lostAt = 0;
      on("live", {});
    }
    if (line.connectionState === "disconnected" || line.connectionState === "failed") lose();
    if (line.connectionState === "closed") end("ended", true);
  };

  try {
    sender = line.addTransceiver(track, { direction: "sendrecv", streams: [mic] }).sender;
    await line.setLocalDescription();
    const sent = Object.assign({ "Content-Type": "application/sdp" }, headers);
    if (variables && Object.keys(variables).length) sent["Parley-Variables"] = encodeURIComponent(JSON.stringify(variables));
    if (Object.keys(tools).length) sent["Parley-Client-Tools"] = Object.keys(tools).join(",");
    const res = await fetch(url, { method: "POST", credentials: "same-origin", headers: sent, body: line.localDescription.sdp }).catch((err) => {
      throw Object.assign(err, { status: 0 });
    });
    if (!res.ok) {
      const said = await res.json().catch(() => ({}));
      throw Object.assign(new Error(said.error || said.message || "status " + res.status), { status: res.status, wait: said.retry_after });
    }
    place = url + "/" + res.headers.get("Location").split("/").pop(); // whatever the server takes its own address for
    servers = helpers(res.headers.get("Link"));
    answer = await res.text();
    if (over) throw new Error("The microphone is gone.");
    await line.setRemoteDescription({ type: "answer", sdp: answer });
  } catch (err) {
    end("ended");
    throw err;
  }
  begun = true;
  if (line.connectionState !== "connected") {
    deadline = setTimeout(() => end("unreachable"), connectTime);
    if (servers.length) seeking = setTimeout(reconnect, directTime);
  }
  watch = setInterval(() => look().catch(() => {}), 200);
  return {
    place,
    hangup: () => end("ended"),
    mute: (yes) => (track.enabled = !yes),
    key: (key) => {
      if (channel.readyState !== "open") return false;
      channel.send(JSON.stringify({ type: "digit", key }));
      return true;
    },
  };
}

// run returns what a tool answers, or its error.
export async function run(tools, { name, arguments: given }) {
  try {
    if (!Object.hasOwn(tools, name)) throw "no such tool";
    const result = await tools[name](given);
    if (new Blob([JSON.stringify(result)]).size > 60000) throw "the result is too long";
    return { result };
  } catch (err) {
    return { error: [...String((err && err.message) || err || "it failed")].slice(0, 900).join("") };
  }
}

// helpers are the servers that an answer names in its Link headers (RFC 9725, section 4.6).
function helpers(links) {
  const list = [];
  for (const [, urls, rest] of (links || "").matchAll(/<([^>]*)>([^<]*)/g)) {
    if (!/;\s*rel="?ice-server"?/.test(rest)) continue;
    const value = (name) => (rest.match(new RegExp(";\\s*" + name + '="([^"]*)"')) || [])[1];
    list.push({ urls, username: value("username"), credential: value("credential") });
  }
  return list;
}

// renewed is an answer with the connection of a fragment.
function renewed(answer, fragment) {
  const value = (key) => fragment.match(new RegExp("^a=" + key + ":.*$", "m"))[0];
  const there = (fragment.match(/^a=candidate:.*$/gm) || []).join("\r\n");
  let first = true;
  return answer
    .replace(/^a=(candidate:.*|end-of-candidates)\r\n/gm, "")
    .replace(/^a=ice-ufrag:.*$/gm, value("ice-ufrag"))
    .replace(/^a=ice-pwd:.*$/gm, () => {
      const line = value("ice-pwd") + (first && there ? "\r\n" + there : "");
      first = false;
      return line;
    });
}
