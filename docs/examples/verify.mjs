// Receive Deskwire's webhooks: verify, store, answer, and then work. Needs Node 18 or newer, and nothing else.
//
// WEBHOOK_SECRET=whsec_... node verify.mjs 9000
// While you rotate the secret, give both: WEBHOOK_SECRET=whsec_new,whsec_old

import { createHmac, randomUUID, timingSafeEqual } from "node:crypto";
import { link, mkdir, unlink, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";

const TOLERANCE_S = 300;
const BODY_MAX = 1 << 20;
const INBOX = process.env.INBOX ?? "deskwire-inbox";

// Whether `header`, the value of Service-Signature, signs `body`, the raw Buffer as it came.
export function verify(secret, header, body, now = Date.now() / 1000) {
  let t = "";
  const signatures = [];
  for (const part of header.split(",")) {
    const [name, value = ""] = part.trim().split("=", 2);
    if (name === "t") t = value;
    else if (name === "v1") signatures.push(Buffer.from(value));
  }
  if (!/^[0-9]{1,15}$/.test(t) || Math.abs(now - Number(t)) > TOLERANCE_S) return false;
  // The key is the whole secret, `whsec_` included. It is not base64: do not decode it.
  return secret.split(",").some((key) => {
    const ours = Buffer.from(createHmac("sha256", key.trim()).update(`${t}.`).update(body).digest("hex"));
    return signatures.some((theirs) => ours.length === theirs.length && timingSafeEqual(ours, theirs));
  });
}

// Keeps an event in a file of its own; false if it is there. A table with a unique column does the same.
export async function store(eventId, body) {
  await mkdir(INBOX, { recursive: true });
  const part = `${INBOX}/.${eventId}-${randomUUID()}`;
  await writeFile(part, body);
  try {
    await link(part, `${INBOX}/${eventId}.json`); // whole, and once
    return true;
  } catch (error) {
    if (error.code === "EEXIST") return false;
    throw error;
  } finally {
    await unlink(part);
  }
}

async function rawBody(request) {
  const chunks = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > BODY_MAX) return Buffer.alloc(0);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

async function receive(request, response) {
  const body = await rawBody(request);
  if (!verify(process.env.WEBHOOK_SECRET, request.headers["service-signature"] ?? "", body)) {
    return response.writeHead(400).end();
  }
  const event = JSON.parse(body);
  if (!/^evt_[0-9A-Za-z]{1,60}$/.test(event.id)) return response.writeHead(400).end();
  const isNew = await store(event.id, body);
  response.writeHead(204).end(); // within 5 seconds, whatever the work takes
  if (isNew) work(event);
  else console.log("again", event.id);
}

// Do what your business needs; on a queue of yours if it takes long. What a crash leaves undone is in the inbox.
function work(event) {
  console.log("verified", event.type, event.sequence, event.id);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  createServer((request, response) => {
    receive(request, response).catch((error) => {
      console.error(error); // not stored: it is sent again
      if (!response.headersSent) response.writeHead(500).end();
    });
  }).listen(Number(process.argv[2]), "127.0.0.1");
}
