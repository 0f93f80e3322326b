// Receives deliveries on a port of its own, and verifies each with the SDK and with the package standardwebhooks.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Webhook } from "standardwebhooks";
import { Deskwire, webhooks } from "deskwire-sdk";

const client = new Deskwire({ baseUrl: process.env["BASE"] ?? "", apiKey: process.env["KEY"] ?? "" });
let secret = "";
const server = createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  const event = await webhooks.verify(body, request.headers, secret);
  const ours = Object.keys(request.headers).filter((name) => name.startsWith("webhook-"));
  const { "service-signature": _, ...others } = request.headers;
  const standard = ours.length > 0 ? (await webhooks.verify(body, others, secret)).id : null;
  const library = ours.length > 0 ? (new Webhook(secret).verify(body.toString(), request.headers as Record<string, string>) as { id: string }).id : null;
  const altered = await webhooks.isGenuine(`${body} `, request.headers, secret);
  response.writeHead(204).end();
  console.log(JSON.stringify({ type: event.type, standard: standard === null ? null : standard === event.id, library: library === null ? null : library === event.id, altered }));
});
server.listen(0, "127.0.0.1", async () => {
  const { port } = server.address() as AddressInfo;
  ({ secret } = await client.webhooks.create({ url: `http://127.0.0.1:${port}/`, events: ["message.created"] }));
  console.log("listening");
});
