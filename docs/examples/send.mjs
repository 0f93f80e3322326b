// Send a message to a conversation, once, however often it has to be tried. Needs Node 18 or newer, and nothing else.
//
// BASE=http://127.0.0.1:8080 KEY=sk_... node send.mjs cnv_... order-1001-shipped "It left us today."
// The second argument is the Idempotency-Key: the id that the message has in your own system.

import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const ATTEMPTS = 8;
const AGAIN = new Set([409, 429, 500, 502, 503, 504]);

// The message as it was stored. Throws an Error if it was refused, or the service was unavailable for too long.
export async function send(conversation, key, text) {
  const url = `${process.env.BASE}/v3/s2s/conversations/${conversation}/messages`;
  const options = {
    method: "POST",
    headers: {
      Authorization: `Bearer ${process.env.KEY}`,
      "Content-Type": "application/json",
      "Idempotency-Key": key, // the same on each attempt
    },
    body: JSON.stringify({ text, author: { type: "bot", name: "Shop" } }),
  };
  let reason = "";
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    let wanted = null;
    try {
      const answer = await fetch(url, { ...options, signal: AbortSignal.timeout(30_000) });
      const body = await answer.text();
      if (answer.ok) return JSON.parse(body);
      reason = body;
      wanted = answer.headers.get("Retry-After");
      if (!AGAIN.has(answer.status) || (answer.status === 409 && !wanted)) break;
    } catch (error) {
      reason = String(error.cause ?? error); // no answer: it may have been stored, which the key tells the service
    }
    if (attempt < ATTEMPTS - 1) {
      const pause = /^[0-9]+$/.test(wanted ?? "") ? Number(wanted) : Math.min(2 ** attempt, 30);
      await sleep(1000 * (pause + Math.random())); // not all clients at once
    }
  }
  throw new Error(reason);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    console.log("sent", (await send(...process.argv.slice(2, 5))).id);
  } catch (refusal) {
    console.error("not sent:", refusal.message);
    process.exitCode = 1;
  }
}
