// @ts-check
/** Passkeys of this browser (WebAuthn): use one, or create one. A failure is thrown as a `PasskeyError` in words. */
import { t } from "./sign-in-texts.js";

/** A passkey was not used or created; `message` says why. */
export class PasskeyError extends Error {}

const api = /** @type {any} */ (globalThis).PublicKeyCredential;

/** True if this browser can use passkeys at this address. Browsers turn them off on plain http. */
export const hasPasskeys = typeof api?.parseRequestOptionsFromJSON === "function" && Boolean(navigator.credentials);

const REASONS = /** @type {Record<string, string>} */ ({ InvalidStateError: t.passkeys.known, SecurityError: t.passkeys.address, NotSupportedError: t.passkeys.none });

/** @param {() => Promise<any>} ask @returns {Promise<any>} */
async function credential(ask) {
  if (!hasPasskeys) throw new PasskeyError(t.passkeys.none);
  try {
    return (await ask()).toJSON();
  } catch (error) {
    throw new PasskeyError(REASONS[/** @type {Error} */ (error).name] ?? t.passkeys.cancelled, { cause: error });
  }
}

/** Prove the user's identity with a passkey; return the credential as JSON. @param {any} options  of the service, as JSON */
export const getPasskey = (options) => credential(() => navigator.credentials.get({ publicKey: api.parseRequestOptionsFromJSON(options) }));

/** Create a passkey; return the credential as JSON. @param {any} options  of the service, as JSON */
export const createPasskey = (options) => credential(() => navigator.credentials.create({ publicKey: api.parseCreationOptionsFromJSON(options) }));
