// @ts-check
/** Proof of work for a network that starts many conversations: hashes by WebCrypto, in small steps, so that the page stays responsive. */

const BATCH_SIZE = 256;
const DIFFICULTY_MAX = 22;

/** Return the number of zero bits with which the bytes begin. @param {Uint8Array} bytes */
export function leadingZeros(bytes) {
  let bits = 0;
  for (const each of bytes) {
    if (each) return bits + Math.clz32(each) - 24;
    bits += 8;
  }
  return bits;
}

/**
 * Return the proof: a nonce for which SHA-256 of `<challenge>.<nonce>` begins with as many zero bits as demanded. Null if this browser can't find it.
 * @param {{challenge: string, difficulty: number}} wanted
 */
export async function solve({ challenge, difficulty }) {
  if (!globalThis.crypto?.subtle || difficulty > DIFFICULTY_MAX) return null; // without https, there is no WebCrypto
  const encoder = new TextEncoder();
  for (let start = 0; ; start += BATCH_SIZE) {
    const digests = await Promise.all(Array.from({ length: BATCH_SIZE }, (_, at) => crypto.subtle.digest("SHA-256", encoder.encode(`${challenge}.${start + at}`))));
    const at = digests.findIndex((each) => leadingZeros(new Uint8Array(each)) >= difficulty);
    if (at >= 0) return { challenge, nonce: String(start + at) };
    await new Promise((done) => setTimeout(done));
  }
}
