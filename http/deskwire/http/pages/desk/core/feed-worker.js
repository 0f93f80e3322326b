// @ts-check
/** One event stream of a project for all tabs of a browser. The worker's name holds the page's root and the project. */
import { Stream } from "./stream.js";
import { applyPresence } from "./state.js";
/** @import { Presence } from "./types.js" */

const [root, project] = /** @type {[string, string]} */ (JSON.parse(/** @type {any} */ (self).name).slice(0, 2));
const TAB_TIMEOUT_MS = 150_000; // timers of background tabs run once a minute
const VIEWS_MAX = 20;

/** @type {Map<MessagePort, {heardAt: number, conversationIds: string[], composing: string|null}>} */
const tabs = new Map();
/** @type {ReadonlyMap<string, Presence>} */
let presence = new Map();
/** @type {any} */
let hello = null;
/** The view last reported to the server. */
let lastReported = "";

/** @param {any} message */
const broadcast = (message) => {
  for (const port of tabs.keys()) port.postMessage(message);
};

const stream = new Stream(`${root}v3/stream?project=${encodeURIComponent(project)}`, {
  state: (state) => {
    if (state.state !== "live") hello = null;
    broadcast({ state });
  },
  hello: (said) => {
    hello = said;
    presence = applyPresence(new Map(), said.presence ?? []);
    broadcast({ hello: said });
    lastReported = "";
    reportViews();
  },
  events: (events) => broadcast({ events }),
  ephemeral: (event) => {
    if (event.type === "presence") presence = applyPresence(presence, event.data.agents);
    broadcast({ ephemeral: event });
  },
});

/** @type {ReturnType<typeof setTimeout>|undefined} */
let reportTimer;

/** Report the views of all tabs to the server, shortly after the last change. */
function reportViews() {
  clearTimeout(reportTimer);
  reportTimer = setTimeout(async () => {
    const { streamId } = stream.state;
    const all = [...tabs.values()];
    const conversationIds = [...new Set(all.flatMap((each) => each.conversationIds))].slice(0, VIEWS_MAX);
    const body = JSON.stringify({ conversationIds, composing: all.find((each) => each.composing)?.composing ?? null });
    if (!streamId || body === lastReported) return;
    lastReported = body;
    const headers = { "content-type": "application/json", project };
    const answer = await fetch(`${root}v3/stream/${streamId}/view`, { method: "PUT", headers, body }).catch(() => null);
    if (!answer?.ok) lastReported = ""; // reported again with the next change or stream
  }, 100);
}

/** @param {MessagePort} port */
function leave(port) {
  tabs.delete(port);
  port.close();
  if (!tabs.size) {
    stream.close();
    self.close();
  } else reportViews();
}

setInterval(() => {
  for (const [port, { heardAt }] of tabs) if (Date.now() - heardAt > TAB_TIMEOUT_MS) leave(port);
}, 30_000);

self.addEventListener("connect", (event) => {
  const port = /** @type {MessageEvent} */ (event).ports[0];
  if (!port) return;
  const tab = { heardAt: Date.now(), conversationIds: /** @type {string[]} */ ([]), composing: /** @type {string|null} */ (null) };
  tabs.set(port, tab);
  port.onmessage = ({ data }) => {
    tab.heardAt = Date.now();
    if (data.do === "leave") leave(port);
    else if (data.do === "retry") stream.retry();
    else if (data.do === "view") {
      tab.conversationIds = data.conversationIds;
      tab.composing = data.composing;
      reportViews();
    }
  };
  if (stream.state.state === "ended") stream.retry(); // another user may have signed in since
  port.postMessage({ state: stream.state });
  if (hello) port.postMessage({ hello: { ...hello, resumedAfter: null, gap: false, at: stream.state.cursor, presence: [...presence.values()] } });
});

void stream.run();
