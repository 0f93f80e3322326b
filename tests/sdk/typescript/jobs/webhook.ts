// Verifies deliveries. Each line of the input is {body, headers, secrets, nowS}; prints the event's type or the reason of the refusal.
import { createInterface } from "node:readline";
import { Webhook } from "standardwebhooks";
import { WebhookVerificationError, webhooks } from "deskwire-sdk";
import { verify } from "deskwire-sdk/webhooks";

if (verify !== webhooks.verify) throw new Error("two copies of the module");

for await (const line of createInterface({ input: process.stdin })) {
  const { body, headers, secrets, nowS, library } = JSON.parse(line);
  const bytes = Buffer.from(body, "base64");
  try {
    const event = library
      ? (new Webhook(secrets[0]).verify(bytes.toString(), headers) as { type: string })
      : await verify(bytes, headers, secrets, { nowS });
    console.log(JSON.stringify({ type: event.type }));
  } catch (error) {
    if (!library && !(error instanceof WebhookVerificationError)) throw error;
    console.log(JSON.stringify({ refused: (error as Error).message }));
  }
}
