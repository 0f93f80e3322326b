// Sign a customer's identity for Deskwire's widget. Needs Node.js 18 or newer, and nothing else.
//
// CHANNEL_ID=chn_... CHANNEL_SECRET=chs_... node identify.mjs user-1 "Ada Lovelace"
//
// Call `identify` in a route of your site that knows who is signed in, and answer with its result. The secret stays in your backend.

import { createHmac } from "node:crypto";
import { pathToFileURL } from "node:url";

const LIFETIME_S = 3600; // at most 24 hours are accepted

const encoded = (part) => Buffer.from(JSON.stringify(part)).toString("base64url");

/** Return the identity of the signed-in user. `profile` may have name, email, phone, avatar and attributes. */
export function identify(channelId, secret, userId, profile = {}) {
  const claims = { ...profile, sub: userId, aud: channelId, exp: Math.floor(Date.now() / 1000) + LIFETIME_S };
  const signed = `${encoded({ alg: "HS256", typ: "JWT" })}.${encoded(claims)}`;
  return `${signed}.${createHmac("sha256", secret).update(signed).digest("base64url")}`;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [userId, name] = process.argv.slice(2);
  console.log(identify(process.env.CHANNEL_ID, process.env.CHANNEL_SECRET, userId, { name }));
}
