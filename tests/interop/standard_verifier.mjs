// The published verifier of Standard Webhooks on each of the cases on standard input; prints the verdicts.

import { readFileSync } from "node:fs";
import { Webhook, WebhookVerificationError } from "standardwebhooks";

function accepted({ body, headers, secret, now }) {
  Date.now = () => now * 1000;
  try {
    new Webhook(secret).verify(body, headers, { jsonParse: false });
    return true;
  } catch (error) {
    if (error instanceof WebhookVerificationError) return false;
    throw error;
  }
}

console.log(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(accepted)));
