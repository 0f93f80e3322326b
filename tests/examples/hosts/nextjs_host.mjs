// Serves the route handlers of the guide for Next.js as plain functions: node nextjs_host.mjs PORT.

import { createServer } from "node:http";

createServer(async (incoming, outgoing) => {
  try {
    const chunks = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const url = `http://${incoming.headers.host}${incoming.url}`;
    const { POST } = await import(`./app${incoming.url}/route.mjs`);
    const request = new Request(url, { method: "POST", headers: incoming.headers, body: Buffer.concat(chunks) });
    const answer = await POST(request);
    outgoing.writeHead(answer.status, Object.fromEntries(answer.headers)).end(Buffer.from(await answer.arrayBuffer()));
  } catch (error) {
    console.error(error);
    outgoing.writeHead(500).end();
  }
}).listen(Number(process.argv[2]), "127.0.0.1");
