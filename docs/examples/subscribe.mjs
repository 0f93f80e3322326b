// Follow every event of a project with pusher-js 8: npm install pusher-js, then
// BASE=http://127.0.0.1:8080 KEY=sk_... node subscribe.mjs [FILE]
// This runs on your server: the server key must never reach a browser.
// In FILE it keeps its place: started again, it goes on behind the last event that it has worked through.

import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import Pusher from "pusher-js";

const { BASE, KEY } = process.env;
const file = process.argv[2];
const headers = { Authorization: `Bearer ${KEY}` };
const project = await (await fetch(`${BASE}/v3/s2s/project`, { headers })).json();
const { hostname: wsHost, port, protocol } = new URL(BASE);
const consumerId = `mirror-${hostname()}-${process.pid}`; // a new one for each start of the process
let resume = file && existsSync(file) ? readFileSync(file, "utf8") : "auto";
const recent = new Set(); // what was under way when a connection broke comes twice

const pusher = new Pusher(project.streamKey, {
  cluster: "", // pusher-js wants the option; it has no meaning here
  wsHost,
  wsPort: port || 80,
  wssPort: port || 443,
  forceTLS: protocol === "https:",
  enabledTransports: ["ws", "wss"],
  channelAuthorization: {
    transport: "ajax",
    endpoint: `${BASE}/v3/s2s/stream/auth`,
    headers,
    paramsProvider: () => ({ consumerId, resume }),
  },
});

const channel = pusher.subscribe(`private-project-${project.id}`);
channel.bind("pusher:subscription_succeeded", ({ resumedAfter, gap }) => {
  resume = "auto"; // from now on the service knows the place: pongs confirm what has arrived
  console.log("subscribed", { resumedAfter, gap }); // gap: fetch the conversations again
});
channel.bind("pusher:subscription_error", (refusal) => console.log("refused", refusal));
channel.bind_global((type, event) => {
  if (type.startsWith("pusher:") || recent.has(event.id)) return;
  console.log(type, event.sequence, event.id); // your work
  if (recent.add(event.id).size > 1000) recent.delete(recent.values().next().value);
  if (!file) return;
  writeFileSync(`${file}.new`, event.id);
  renameSync(`${file}.new`, file);
});
pusher.connection.bind("error", ({ data }) => {
  if (data?.code === 4009) console.log("over for good:", data.message); // a takeover, or a revoked key
});
