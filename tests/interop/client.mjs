// Drives a published client, unmodified: commands come as lines of JSON on stdin, what the client
// tells goes out as lines of JSON. It ends with its stdin.

import { createInterface } from "node:readline";
import Echo from "laravel-echo";
import Pusher from "pusher-js";

const tell = (saw, more) => process.stdout.write(JSON.stringify({ saw, ...more }) + "\n");

// How each form of the authorization is asked for: what a user would write into the options.
const AUTHORIZATIONS = {
  form: (o) => ({
    channelAuthorization: { transport: "ajax", endpoint: o.endpoint, headers: bearer(o), params: o.fields },
  }),
  query: (o) => ({
    channelAuthorization: {
      transport: "ajax",
      endpoint: `${o.endpoint}?${new URLSearchParams(o.fields)}`,
      headers: bearer(o),
    },
  }),
  json: (o) => ({
    channelAuthorization: {
      customHandler: async ({ socketId, channelName }, callback) => {
        const answer = await fetch(o.endpoint, {
          method: "POST",
          headers: { ...bearer(o), "Content-Type": "application/json" },
          body: JSON.stringify({ socket_id: socketId, channel_name: channelName, ...o.fields }),
        });
        if (answer.status === 200) callback(null, await answer.json());
        else callback(new Error(await answer.text()), null);
      },
    },
  }),
  forged: (o) => ({
    channelAuthorization: { customHandler: (_, callback) => callback(null, { auth: `${o.key}:forged` }) },
  }),
  echoHeaders: (o) => ({ authEndpoint: o.endpoint, auth: { headers: bearer(o), params: o.fields } }),
  echoBearer: (o) => ({ authEndpoint: o.endpoint, bearerToken: o.serverKey, auth: { params: o.fields, headers: {} } }),
};

const bearer = (o) => ({ Authorization: `Bearer ${o.serverKey}` });

const options = (o) => ({
  cluster: "",
  wsHost: "127.0.0.1",
  wsPort: o.port,
  wssPort: o.port,
  forceTLS: false,
  enabledTransports: ["ws", "wss"],
  ...AUTHORIZATIONS[o.authorization](o),
  ...o.options,
});

let pusher, echo;

function watch() {
  pusher.connection.bind("state_change", ({ current }) => tell("state", { state: current }));
  pusher.connection.bind("error", (error) => {
    const told = error.error ?? error; // before the connection is established it is wrapped
    tell("error", { code: told.data?.code ?? null });
  });
}

const COMMANDS = {
  connect(o) {
    if (o.authorization.startsWith("echo")) {
      echo = new Echo({ broadcaster: "pusher", Pusher, key: o.key, ...options(o) });
      pusher = echo.connector.pusher;
    } else pusher = new Pusher(o.key, options(o));
    watch();
  },
  subscribe({ channel: name }) {
    const channel = pusher.subscribe(name);
    channel.bind("pusher:subscription_succeeded", (data) => tell("subscribed", { data }));
    channel.bind("pusher:subscription_error", (data) => tell("refused", { status: data.status, type: data.type }));
    channel.bind_global((type, data) => {
      if (!type.startsWith("pusher:")) tell("event", { type, text: JSON.stringify(data) });
    });
  },
  listen({ name, type }) {
    echo
      .private(name)
      .subscribed(() => tell("subscribed", { data: null }))
      .error((data) => tell("refused", { status: data.status, type: data.type }))
      .listen(`.${type}`, (data) => tell("event", { type, text: JSON.stringify(data) }));
  },
  // Many channels at once, on as many connections as they need.
  crowd({ channels, each, ...o }) {
    for (let at = 0; at < channels.length; at += each) {
      const one = new Pusher(o.key, options(o));
      for (const name of channels.slice(at, at + each)) {
        const channel = one.subscribe(name);
        channel.bind("pusher:subscription_succeeded", (data) => tell("subscribed", { data }));
        channel.bind("pusher:subscription_error", (data) => tell("refused", { status: data.status, type: data.type }));
        channel.bind_global((type) => {
          if (!type.startsWith("pusher:")) tell("arrived", { channel: name, at: Date.now() });
        });
      }
    }
  },
  unsubscribe: ({ channel }) => pusher.unsubscribe(channel),
};

const commands = createInterface({ input: process.stdin });
commands.on("line", (line) => {
  const { command, ...details } = JSON.parse(line);
  COMMANDS[command](details);
});
commands.on("close", () => process.exit(0));
