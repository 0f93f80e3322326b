// Stripe's own verifier on each of the cases on standard input; prints the verdicts.

import { readFileSync } from "node:fs";
import Stripe from "stripe";

const { webhooks } = new Stripe("sk_test_unused");

function accepted({ body, header, secret, now }) {
  try {
    webhooks.constructEvent(Buffer.from(body), header, secret, 300, undefined, now * 1000);
    return true;
  } catch (error) {
    if (error instanceof Stripe.errors.StripeSignatureVerificationError) return false;
    if (error instanceof SyntaxError) return true; // verified, and then the body was no JSON
    throw error;
  }
}

console.log(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(accepted)));
