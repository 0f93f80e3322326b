/** Verifies webhook deliveries: by `Service-Signature`, or by the headers of Standard Webhooks. */

import { DeskwireError } from "./errors.js";
import { webCrypto } from "./platform.js";
import type { DeskwireEvent } from "./types.js";

/** The delivery is not genuine, or not readable; `message` has the reason. Answer 400. */
export class WebhookVerificationError extends DeskwireError {}

/** Headers of a request: of the Fetch API, of Node, or a plain object. */
export type WebhookHeaders = { get(name: string): string | null } | { readonly [name: string]: string | readonly string[] | undefined };

export interface VerifyOptions {
  /** Accepted difference to the time of the signature, in seconds. Default 300. */
  toleranceS?: number | undefined;
  /** The present time in seconds since 1970, for tests. */
  nowS?: number | undefined;
}

const TOLERANCE_S = 300;
const PREFIX = "whsec_";

interface Signed {
  timestamp: string;
  /** The text before the body in the signed content. */
  before: string;
  /** The signatures that may match, decoded. */
  signatures: Uint8Array[];
  key: (secret: string) => Uint8Array | null;
}

/**
 * Return the event of a delivery.
 *
 * @param body the body as received. JSON that was parsed and written again differs.
 * @param headers the request's headers.
 * @param secret the endpoint's secret; several while you rotate it.
 * @throws WebhookVerificationError if no signature matches, or its time differs by more than the tolerance.
 */
export async function verify(
  body: string | Uint8Array | ArrayBuffer,
  headers: WebhookHeaders,
  secret: string | readonly string[],
  options: VerifyOptions = {},
): Promise<DeskwireEvent> {
  const bytes = bytesOf(body);
  const secrets = (typeof secret === "string" ? [secret] : secret).map((each) => each.trim()).filter(Boolean);
  if (!secrets.length) throw new WebhookVerificationError("No secret was given.");
  const offered = [...serviceSignature(headers), ...standardSignature(headers)];
  if (!offered.length) {
    throw new WebhookVerificationError("The request has neither Service-Signature nor webhook-signature: it is no delivery, or a proxy removed them.");
  }
  const fresh = offered.filter((each) => isFresh(each, options));
  if (!fresh.length) throw stale(offered, options);
  for (const each of fresh) if (await matches(each, bytes, secrets)) return event(bytes);
  throw new WebhookVerificationError("No signature matches: the secret is another endpoint's, or the body is not the bytes as received.");
}

/** True if `verify` would return the event. */
export async function isGenuine(...delivery: Parameters<typeof verify>): Promise<boolean> {
  try {
    await verify(...delivery);
    return true;
  } catch (error) {
    if (error instanceof WebhookVerificationError) return false;
    throw error;
  }
}

function bytesOf(body: string | Uint8Array | ArrayBuffer): Uint8Array {
  if (typeof body === "string") return new TextEncoder().encode(body);
  if (body instanceof Uint8Array) return body;
  if (body instanceof ArrayBuffer) return new Uint8Array(body);
  throw new WebhookVerificationError("The body must be the text or bytes as received, not a parsed object.");
}

function header(headers: WebhookHeaders, name: string): string {
  if (typeof headers.get === "function") return headers.get(name) ?? "";
  for (const [each, value] of Object.entries(headers)) {
    if (each.toLowerCase() === name) return Array.isArray(value) ? value.join(",") : String(value ?? "");
  }
  return "";
}

/** Return the signature of `Service-Signature`: `t=<seconds>,v1=<hex>`, where `v1` may occur several times. */
function serviceSignature(headers: WebhookHeaders): Signed[] {
  const value = header(headers, "service-signature");
  if (value === "") return [];
  const parts = value.split(",").map((each) => each.trim().split("=") as [string, string?]);
  const timestamp = parts.find(([name]) => name === "t")?.[1] ?? "";
  const signatures = parts.filter(([name]) => name === "v1").map(([, hex]) => fromHex(hex ?? ""));
  // The key is the whole secret with its prefix. It is not decoded.
  return [{ timestamp, before: `${timestamp}.`, signatures, key: (secret) => new TextEncoder().encode(secret) }];
}

/** Return the signature of Standard Webhooks 1.0: `v1,<base64>`, several separated by blanks. */
function standardSignature(headers: WebhookHeaders): Signed[] {
  const value = header(headers, "webhook-signature");
  if (value === "") return [];
  const timestamp = header(headers, "webhook-timestamp");
  const signatures = value.split(" ").filter((each) => each.startsWith("v1,")).map((each) => fromBase64(each.slice(3)) ?? new Uint8Array());
  const before = `${header(headers, "webhook-id")}.${timestamp}.`;
  return [{ timestamp, before, signatures, key: (secret) => fromBase64(secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret) }];
}

function isFresh({ timestamp }: Signed, options: VerifyOptions): boolean {
  return /^\d{1,15}$/.test(timestamp) && Math.abs(difference(timestamp, options)) <= (options.toleranceS ?? TOLERANCE_S);
}

function difference(timestamp: string, options: VerifyOptions): number {
  return (options.nowS ?? Date.now() / 1000) - Number(timestamp);
}

function stale([first]: Signed[], options: VerifyOptions): WebhookVerificationError {
  if (!first || !/^\d{1,15}$/.test(first.timestamp)) return new WebhookVerificationError("The signature has no time.");
  const seconds = Math.round(difference(first.timestamp, options));
  const far = seconds > 0 ? `${seconds} s old` : `${-seconds} s in the future`;
  return new WebhookVerificationError(`The signature is ${far}, more than the ${options.toleranceS ?? TOLERANCE_S} s allowed: a repeated request, or a wrong clock.`);
}

async function matches(signed: Signed, body: Uint8Array, secrets: readonly string[]): Promise<boolean> {
  const { subtle } = await webCrypto();
  const before = new TextEncoder().encode(signed.before);
  const content = new Uint8Array(before.length + body.length);
  content.set(before);
  content.set(body, before.length);
  for (const secret of secrets) {
    const bytes = signed.key(secret);
    if (!bytes?.length) continue;
    const key = await subtle.importKey("raw", bytes as BufferSource, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
    for (const each of signed.signatures) {
      // `verify` compares in constant time.
      if (await subtle.verify("HMAC", key, each as BufferSource, content)) return true;
    }
  }
  return false;
}

function event(bytes: Uint8Array): DeskwireEvent {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) as DeskwireEvent;
  } catch (cause) {
    throw new WebhookVerificationError("The signature matches, but the body is not JSON.", { cause });
  }
}

function fromHex(text: string): Uint8Array {
  if (!/^(?:[0-9a-f]{2})+$/i.test(text)) return new Uint8Array();
  return Uint8Array.from(text.match(/../g) ?? [], (each) => parseInt(each, 16));
}

function fromBase64(text: string): Uint8Array | null {
  try {
    return Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
  } catch {
    return null; // the secret is not base64
  }
}
