// The page of chat.py: shows the conversation, sends messages, and follows the conversation's channel.
const [list, line, form] = ["ol", "[role=status]", "form"].map((each) => document.querySelector(each));
const messages = new Map(); // by id: a message may arrive twice
const consumerId = crypto.randomUUID(); // one reader for each channel: a newer window takes over
let pusher, timer;

function note(text, seconds) {
  clearTimeout(timer);
  line.textContent = text || "\u00a0";
  if (seconds) timer = setTimeout(note, seconds * 1000, "");
}

function show(message) {
  messages.set(message.id, message);
  const rows = [...messages.values()].sort((a, b) => a.index - b.index).map(({ author, text }) => {
    const row = document.createElement("li");
    row.className = author.type;
    row.textContent = author.type === "contact" ? text : `${author.name ?? "Support"}: ${text}`; // never as HTML
    return row;
  });
  list.replaceChildren(...rows);
  list.lastElementChild.scrollIntoView();
}

async function load() {
  const answer = await fetch("/chat");
  if (!answer.ok) return note("The chat is not available. Reload the page.");
  const { conversation, messages, stream } = await answer.json();
  messages.forEach(show);
  if (conversation && !pusher) follow(conversation, stream);
}

function follow(conversation, { url, key }) {
  const { hostname, port, protocol } = new URL(url);
  pusher = new Pusher(key, {
    cluster: "", // pusher-js wants the option; it has no meaning here
    wsHost: hostname,
    wsPort: port || 80,
    wssPort: port || 443,
    forceTLS: protocol === "https:",
    enabledTransports: ["ws", "wss"],
    channelAuthorization: { transport: "ajax", endpoint: "/auth", paramsProvider: () => ({ consumerId }) },
  });
  const channel = pusher.subscribe(`private-conversation-${conversation}`);
  channel.bind("pusher:subscription_succeeded", load); // after a break, too: fetches missed messages
  channel.bind("message.created", ({ data }) => (note(""), show(data.message)));
  channel.bind("agent.typing.started", ({ data }) => note(`${data.agent.name} is typing …`, 10));
  channel.bind("agent.typing.stopped", () => note(""));
  channel.bind("conversation.closed", () => note("This conversation is closed. Write to open it again."));
  channel.bind("conversation.deleted", () => location.reload());
  pusher.connection.bind("error", ({ data }) => {
    if (data?.code === 4009) note("This chat is open in another window. Reload to continue here.");
  });
}

let unsent = null; // the message that is under way; a repeated attempt has the same id and counts once
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const [input, button] = form.elements;
  if (unsent?.text !== input.value) unsent = { id: crypto.randomUUID(), text: input.value };
  button.disabled = true;
  const headers = { "Content-Type": "application/json" };
  const answer = await fetch("/messages", { method: "POST", headers, body: JSON.stringify(unsent) }).catch(() => null);
  button.disabled = false;
  if (!answer?.ok) return note("Not sent. Try again.");
  unsent = null;
  form.reset();
  note("");
  load();
});

load();
