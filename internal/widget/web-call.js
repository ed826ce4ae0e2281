// A call with an assistant from a browser, by WHIP (RFC 9725):
//   import { call } from "https://SERVER/web-call.js";
//   const c = await call({ url: "https://SERVER/api/web-calls/UUID", variables: { customer_name: "Ana" }, on: (kind, data) => … });
//   c.mute(true); c.key("5"); c.hangup();
//
// on is told "live" (one can speak now), "waiting" (the network is away: live again, or the end, follows), what the server tells ("partial"
// {text}, "turn" {speaker, text, latency, …}, "tool" {name}), "speaking" {yes} when the assistant begins or stops being heard (stops is told before the end, too), and in the
// end, once, "end" {reason}: "ended", "lost" where the network or the microphone went away, "unreachable" where no sound got through in time (a network without UDP), or
// "refused" {status, error} where the last line went to somebody else while this one connected. key is false where the call can't take it yet. Until call returns it throws instead: the microphone's own errors
// (NotAllowedError, NotFoundError, NotReadableError), one named insecure where the browser gives no microphone to the page, and the server's
// refusals, with status and wait (seconds).
export async function call({ url, variables, on, headers }) {
  const devices = navigator.mediaDevices;
  if (!devices || !devices.getUserMedia || !window.RTCPeerConnection) throw Object.assign(new Error("This page may not use a microphone."), { name: "insecure" });
  const mic = await devices.getUserMedia({ audio: { echoCancellation: true, noiseSuppression: true, autoGainControl: true } });
  const [track] = mic.getAudioTracks();
  const line = new RTCPeerConnection();
  const speaker = new Audio();
  let place = ""; // of the call, to hang it up
  let over = false;
  let begun = false;

  // How long the connection may take until it counts as impossible.
  const connectTime = 15000;
  let deadline = 0;

  // Whether the assistant is heard: what came since the last look had energy, and a pause between words is none.
  let watch = 0, energy = 0, heard = 0, speaks = false;
  async function look() {
    for (const one of (await line.getStats()).values()) {
      if (one.type !== "inbound-rtp" || over) continue;
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
    else on(data.type, data);
  };
  channel.onclose = () => end("ended", true);
  track.onended = () => end("lost");
  line.ontrack = (e) => {
    speaker.srcObject = new MediaStream([e.track]);
    speaker.play().catch(() => {});
  };
  line.onconnectionstatechange = () => {
    if (over) return;
    if (line.connectionState === "connected") {
      clearTimeout(deadline);
      on("live", {});
    }
    if (line.connectionState === "disconnected") on("waiting", {});
    if (line.connectionState === "failed") end("lost");
    if (line.connectionState === "closed") end("ended", true);
  };

  try {
    line.addTransceiver(track, { direction: "sendrecv", streams: [mic] });
    await line.setLocalDescription();
    const sent = Object.assign({ "Content-Type": "application/sdp" }, headers);
    if (variables && Object.keys(variables).length) sent["Parley-Variables"] = encodeURIComponent(JSON.stringify(variables));
    const res = await fetch(url, { method: "POST", credentials: "same-origin", headers: sent, body: line.localDescription.sdp }).catch((err) => {
      throw Object.assign(err, { status: 0 });
    });
    if (!res.ok) {
      const said = await res.json().catch(() => ({}));
      throw Object.assign(new Error(said.error || said.message || "status " + res.status), { status: res.status, wait: said.retry_after });
    }
    place = url + "/" + res.headers.get("Location").split("/").pop(); // whatever the server takes its own address for
    const sdp = await res.text();
    if (over) throw new Error("The microphone is gone.");
    await line.setRemoteDescription({ type: "answer", sdp });
  } catch (err) {
    end("ended");
    throw err;
  }
  begun = true;
  if (line.connectionState !== "connected") deadline = setTimeout(() => end("unreachable"), connectTime);
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
