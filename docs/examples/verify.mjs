// Verify a Deskwire webhook. Needs Node 18 or newer, and nothing else.
//
// As a receiver to try it out: WEBHOOK_SECRET=whsec_... node verify.mjs 9000

import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";

const TOLERANCE_S = 300;

// Whether `header`, the value of Service-Signature, signs `body`, the raw Buffer as it came.
export function verify(secret, header, body, now = Date.now() / 1000) {
  let t = "";
  const signatures = [];
  for (const part of header.split(",")) {
    const [name, value = ""] = part.trim().split("=", 2);
    if (name === "t") t = value;
    else if (name === "v1") signatures.push(value);
  }
  if (!/^[0-9]+$/.test(t) || Math.abs(now - Number(t)) > TOLERANCE_S) return false;
  // The key is the whole secret, `whsec_` included. It is not base64: do not decode it.
  const expected = createHmac("sha256", secret).update(`${t}.`).update(body).digest("hex");
  return signatures.some((each) => same(Buffer.from(expected), Buffer.from(each)));
}

function same(one, other) {
  return one.length === other.length && timingSafeEqual(one, other);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const good = verify(process.env.WEBHOOK_SECRET, request.headers["service-signature"] ?? "", body);
    if (good) {
      const event = JSON.parse(body);
      console.log("verified", event.type, event.sequence, event.id);
    }
    response.writeHead(good ? 204 : 400).end();
  }).listen(Number(process.argv[2]), "127.0.0.1");
}
