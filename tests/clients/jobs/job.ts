// A small job with the generated client: `node job.js URL SERVER_KEY`. Prints what it has seen as JSON.
import {
  Configuration,
  ConversationsApi,
  EventToJSON,
  EventsApi,
  MessageCreatedEventFromJSON,
  ProblemDocumentFromJSON,
  ResponseError,
  WebhooksApi,
} from "./client/index.js";
import type { ProblemDocument } from "./client/index.js";

const [url, accessToken] = process.argv.slice(2) as [string, string];
const configuration = new Configuration({ basePath: url, accessToken });
const conversations = new ConversationsApi(configuration);

async function refused(conversationId: string): Promise<ProblemDocument> {
  try {
    await conversations.rateConversation({ conversationId, body: { rating: 11 } });
  } catch (error) {
    if (error instanceof ResponseError) return ProblemDocumentFromJSON(await error.response.json());
    throw error;
  }
  throw new Error("a rating of 11 was taken");
}

const made = await conversations.createConversation({
  body: { contact: { userId: "u1", name: "Ada Lovelace" }, title: "Order A-1001" },
});
const conversationId = made.id;
const said = await conversations.postMessage({ conversationId, body: { text: "Where is my order?" } });
const answer = await conversations.postMessage({
  conversationId,
  body: { text: "On its way.", author: { type: "agent", name: "Grace" } },
});
const patched = await conversations.changeConversation({
  conversationId,
  body: { attributes: { order: "A-1001" } },
});
await conversations.rateConversation({ conversationId, body: { rating: 9 } });
const problem = await refused(conversationId);
const hook = await new WebhooksApi(configuration).createEndpoint({
  body: { url: "https://crm.example.org/deskwire", events: [] },
});
const page = await new EventsApi(configuration).listEvents({ limit: 50 });
const listed = await conversations.listMessages({ conversationId, limit: 1 });
const rest = await conversations.listMessages({ conversationId, limit: 1, cursor: listed.nextCursor ?? undefined });

console.log(
  JSON.stringify({
    conversation: conversationId,
    title: made.title,
    attributes: patched.attributes,
    messages: [...listed.items, ...rest.items].map((each) => each.text),
    authors: [said.author.type, answer.author.type],
    problem: [problem.status, problem.code, (problem.errors ?? []).map((each) => each.pointer)],
    secret: hook.secret.slice(0, 6),
    eventTexts: page.items
      .filter((each) => each.type === "message.created")
      .map((each) => MessageCreatedEventFromJSON(EventToJSON(each)).data.message.text),
    events: page.items.map((each) => [each.type, each.sequence]),
    rating: (await conversations.getConversation({ conversationId })).rating,
  }),
);
