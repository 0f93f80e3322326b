// @ts-check
/** Voice recording: the service turns speech into a reply or transcribes it, into the editor. Nothing is sent. */
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { t } from "../core/texts-lazy.js";
import { Button, Icon, notify, setting } from "../ui/parts.js";
import { call } from "../core/api.js";
import { upload } from "../core/uploads.js";

const SAMPLE_RATE_HZ = 16_000;
const RECORDING_MAX_S = 300;
/** How the recording is used. */
const mode = setting("voiceMode", /** @type {"smart"|"dictate"} */ ("smart"));

/** Return samples from -1 to 1 as a mono WAV file with 16 bits per sample. @param {Float32Array} samples @param {number} rate */
export function wav(samples, rate) {
  const bytes = new DataView(new ArrayBuffer(44 + samples.length * 2));
  const text = (/** @type {number} */ at, /** @type {string} */ word) => [...word].forEach((letter, i) => bytes.setUint8(at + i, letter.charCodeAt(0)));
  text(0, "RIFF");
  bytes.setUint32(4, 36 + samples.length * 2, true);
  text(8, "WAVEfmt ");
  bytes.setUint32(16, 16, true);
  bytes.setUint16(20, 1, true);
  bytes.setUint16(22, 1, true);
  bytes.setUint32(24, rate, true);
  bytes.setUint32(28, rate * 2, true);
  bytes.setUint16(32, 2, true);
  bytes.setUint16(34, 16, true);
  text(36, "data");
  bytes.setUint32(40, samples.length * 2, true);
  samples.forEach((each, i) => bytes.setInt16(44 + i * 2, Math.max(-1, Math.min(1, each)) * 32_767, true));
  return new Blob([bytes.buffer], { type: "audio/wav" });
}

/** Convert a recording to the service's format: mono, 16 kHz. @param {Blob} recorded */
async function toWav(recorded) {
  const context = new AudioContext();
  try {
    const decoded = await context.decodeAudioData(await recorded.arrayBuffer());
    const offline = new OfflineAudioContext(1, Math.max(1, Math.ceil(decoded.duration * SAMPLE_RATE_HZ)), SAMPLE_RATE_HZ);
    const source = offline.createBufferSource();
    source.buffer = decoded;
    source.connect(offline.destination);
    source.start();
    return wav((await offline.startRendering()).getChannelData(0), SAMPLE_RATE_HZ);
  } finally {
    await context.close();
  }
}

/** Transcribe a recording by the service, and delete the upload. @param {string} id @param {Blob} file */
async function transcribe(id, file) {
  const kept = await upload(file, "voice.wav");
  try {
    return /** @type {{reply: string, transcript: string}} */ (await call("POST", `conversations/${id}/voice-reply`, { body: { audioUrl: kept.url, mode: mode.value } }));
  } finally {
    await call("DELETE", `uploads/${kept.id}`).catch(() => null); // the service also deletes unused uploads later
  }
}

/** @param {{id: string, insert: (text: string) => void, close: () => void}} props  insert: inserts the text into the editor */
export function Voice({ id, insert, close }) {
  const [state, setState] = useState(/** @type {"ready"|"recording"|"working"} */ ("ready"));
  const [seconds, setSeconds] = useState(0);
  const recorder = useRef(/** @type {MediaRecorder|null} */ (null));
  const left = useRef(false);
  const release = () => recorder.current?.stream.getTracks().forEach((each) => each.stop());
  useEffect(() => () => ((left.current = true), release()), []);
  useEffect(() => {
    if (state !== "recording") return;
    const begun = Date.now();
    const timer = setInterval(() => {
      const now = Math.floor((Date.now() - begun) / 1000);
      setSeconds(now);
      if (now >= RECORDING_MAX_S) (notify(t.voice.tooLong), stop());
    }, 250);
    return () => clearInterval(timer);
  }, [state]);
  const use = async (/** @type {Blob[]} */ parts, /** @type {string} */ type) => {
    setState("working");
    try {
      const { reply } = await transcribe(id, await toWav(new Blob(parts, { type })));
      if (left.current) return;
      if (!reply.trim()) notify(t.voice.empty, { bad: true });
      else (insert(reply), notify(t.voice.done));
      close();
    } catch (error) {
      if (left.current) return;
      notify(t.voice.failed(/** @type {Error} */ (error).message), { bad: true });
      setState("ready");
    }
  };
  const record = async () => {
    try {
      const stream = await navigator.mediaDevices.getUserMedia({ audio: { channelCount: 1, echoCancellation: true, noiseSuppression: true } });
      const made = (recorder.current = new MediaRecorder(stream));
      /** @type {Blob[]} */
      const parts = [];
      made.ondataavailable = ({ data }) => data.size && parts.push(data);
      made.onstop = () => (release(), left.current || void use(parts, made.mimeType));
      made.start();
      setState("recording");
    } catch {
      notify(t.voice.refused, { bad: true });
    }
  };
  const stop = () => recorder.current?.state === "recording" && recorder.current.stop();
  const allowed = Boolean(navigator.mediaDevices);
  return html`<div class="voice" role="group" aria-label=${t.voice.label}>
    ${state === "ready" && html`<label class="label"><span>${t.voice.mode}</span><select class="field" onChange=${(/** @type {any} */ event) => (mode.value = event.target.value)}>${Object.entries(t.voice.modes).map(([value, label]) => html`<option key=${value} value=${value} selected=${value === mode.value}>${label}</option>`)}</select></label>
      <${Button} kind="primary" icon="mic" label=${t.voice.record} disabled=${!allowed} why=${t.voice.insecure} press=${record} />${!allowed && html`<span class="muted">${t.voice.insecure}</span>`}`}
    ${state === "recording" && html`<span class="bad"><${Icon} name="mic" /> ${t.voice.listening} <span class="num">${`${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`}</span></span><${Button} kind="primary" label=${t.voice.stop} press=${stop} />`}
    ${state === "working" && html`<span role="status">${t.voice.working}</span>`}
    <${Button} kind="quiet" label=${t.voice.cancel} press=${close} />
  </div>`;
}
