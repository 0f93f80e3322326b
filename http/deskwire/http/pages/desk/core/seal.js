// @ts-check
/**
 * Encryption of drafts and the outbox in this browser (XChaCha20-Poly1305).
 *
 * The service derives keys for each user and returns them to a valid session only. They are held in memory, and forgotten when the session ends. This
 * works without WebCrypto, which browsers offer on https only.
 */
import { signal } from "../vendor/preact.js";
import { xchacha20poly1305 } from "../vendor/ciphers.js";
import { storageKeys } from "./session.js";

const NONCE_BYTES = 24;
const PREFIX = "s1.";

/** None of the user's keys decrypts a value: the installation's secret was replaced. */
export class Unopenable extends Error {}

/** The places of values that could not be decrypted. The values stay, and the page reports them. */
export const unopenable = signal(/** @type {ReadonlySet<string>} */ (new Set()));

/** Note that the value at a place can't be decrypted. @param {string} place */
export const noteUnopenable = (place) => void (unopenable.peek().has(place) || (unopenable.value = new Set(unopenable.peek()).add(place)));

/** @param {Uint8Array} bytes */
function toBase64(bytes) {
  let binary = "";
  for (let at = 0; at < bytes.length; at += 0x8000) binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** @param {string} text */
const fromBase64 = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (each) => each.charCodeAt(0));

/** Return whether there is a key to encrypt with. */
export const canSeal = () => storageKeys.peek().length > 0;

/** @param {Uint8Array} plain @param {string} place */
function sealedBytes(plain, place) {
  const [key] = storageKeys.peek();
  if (!key) throw new Unopenable("No user is signed in, so there is no key.");
  const nonce = crypto.getRandomValues(new Uint8Array(NONCE_BYTES));
  return { nonce, sealed: xchacha20poly1305(fromBase64(key), nonce, new TextEncoder().encode(place)).encrypt(plain) };
}

/** @param {Uint8Array} nonce @param {Uint8Array} sealed @param {string} place */
function openedBytes(nonce, sealed, place) {
  for (const key of storageKeys.peek()) {
    try {
      return xchacha20poly1305(fromBase64(key), nonce, new TextEncoder().encode(place)).decrypt(sealed);
    } catch {
      // encrypted under another key, or altered
    }
  }
  if (canSeal()) noteUnopenable(place);
  throw new Unopenable("No key of this user decrypts it.");
}

/** Encrypt a value so that only its user can read it. Throws Unopenable while no user is signed in. @param {unknown} value  anything that is JSON @param {string} place  its storage key, bound to the ciphertext @returns {string} */
export function seal(value, place) {
  const { nonce, sealed } = sealedBytes(new TextEncoder().encode(JSON.stringify(value)), place);
  return `${PREFIX}${toBase64(nonce)}.${toBase64(sealed)}`;
}

/** Return whether a text was made by `seal`. @param {unknown} text @returns {text is string} */
export const isSealed = (text) => typeof text === "string" && text.startsWith(PREFIX);

/** Decrypt a value. Throws Unopenable. @param {string} text @param {string} place @returns {any} */
export function open(text, place) {
  const [nonce = "", sealed = ""] = text.slice(PREFIX.length).split(".");
  return JSON.parse(new TextDecoder().decode(openedBytes(fromBase64(nonce), fromBase64(sealed), place)));
}

/** Encrypt a file so that only its user can read it. @param {Blob} file @param {string} place @returns {Promise<Uint8Array>} */
export async function sealFile(file, place) {
  const { nonce, sealed } = sealedBytes(new Uint8Array(await file.arrayBuffer()), place);
  const bytes = new Uint8Array(NONCE_BYTES + sealed.length);
  bytes.set(nonce);
  bytes.set(sealed, NONCE_BYTES);
  return bytes;
}

/** Decrypt a file. Throws Unopenable. @param {Uint8Array} bytes @param {string} place @param {string} type @returns {Blob} */
export const openFile = (bytes, place, type) => new Blob([/** @type {any} */ (openedBytes(bytes.subarray(0, NONCE_BYTES), bytes.subarray(NONCE_BYTES), place))], { type });
