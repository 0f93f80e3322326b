// Follow every event of a project with pusher-js 8: npm install pusher-js, then
// BASE=http://127.0.0.1:8080 KEY=sk_... node subscribe.mjs
// This runs on your server: the server key must never reach a browser.

import { hostname } from "node:os";
import Pusher from "pusher-js";

const { BASE, KEY } = process.env;
const headers = { Authorization: `Bearer ${KEY}` };
const project = await (await fetch(`${BASE}/v3/s2s/project`, { headers })).json();
const { hostname: wsHost, port, protocol } = new URL(BASE);

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
    params: { consumerId: `mirror-${hostname()}-${process.pid}` }, // a new one for each start of the process
  },
});

const channel = pusher.subscribe(`private-project-${project.id}`);
channel.bind("pusher:subscription_succeeded", ({ resumedAfter, gap }) => {
  console.log("subscribed", { resumedAfter, gap }); // gap: fetch the conversations anew
});
channel.bind("pusher:subscription_error", (refusal) => console.log("refused", refusal));
channel.bind_global((type, event) => {
  if (!type.startsWith("pusher:")) console.log(type, event.sequence, event.id);
});
pusher.connection.bind("error", ({ data }) => {
  if (data?.code === 4009) console.log("over for good:", data.message); // a takeover, or a revoked key
});
