// @ts-check
/** The second step of a sign-in: a code, a recovery code or a passkey. */
import { html } from "../vendor/preact.js";
import { t } from "../ui/sign-in-texts.js";
import { Icon } from "../ui/parts.js";
import { call } from "../core/api.js";
import { loadSession, session, signedIn } from "../core/session.js";
import { Proof } from "../ui/proof.js";

/** @param {{of: {id: string, methods: string[]}, over?: boolean, ended?: (why: string) => void, done?: () => void}} props  ended: called if the challenge is no longer accepted */
export function Challenge({ of, over, ended, done }) {
  const startAgain = () => void (session.value = { ...session.value, challenge: null });
  const send = async (/** @type {any} */ proof) => {
    try {
      signedIn(await call("POST", "auth/session/factor", { body: { challenge: of.id, ...proof } }));
      done?.();
    } catch (error) {
      if (/** @type {any} */ (error).code !== "challenge_ended") throw error;
      await loadSession(); // another tab may have finished this sign-in
      if (session.peek().user) return done?.();
      startAgain();
      ended?.(t.challengeEnded);
    }
  };
  const text = html`${!over && html`<span class="mark"><${Icon} name="lock" /></span><h1>${t.factorTitle}</h1>`}<p>${t.factorText}</p>`;
  return html`<${Proof} methods=${of.methods} send=${send} passkeyOptions=${() => call("POST", "auth/session/factor/passkey-options", { body: { challenge: of.id } })} text=${text} cancelLabel=${t.startAgain} cancel=${startAgain} />`;
}
