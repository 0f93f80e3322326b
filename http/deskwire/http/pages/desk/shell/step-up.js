// @ts-check
/** The dialog that asks for a new proof of the user's identity, before a call that needs a recent one is repeated. */
import { html, useEffect, useState } from "../vendor/preact.js";
import { t } from "../ui/sign-in-texts.js";
import { Button } from "../ui/parts.js";
import { Dialog } from "../ui/dialog.js";
import { Proof, goToProvider } from "../ui/proof.js";
import { call, get, proof, signedOut } from "../core/api.js";
import { saveBeforeSignOut, session, user } from "../core/session.js";

export function StepUp() {
  const { methods, done } = /** @type {{methods: string[], done: (proved: boolean) => void}} */ (proof.value);
  const [names, setNames] = useState(/** @type {Record<string, string>} */ ({}));
  const over = signedOut.value; // the page then asks to sign in again
  useEffect(() => void (over && done(false)), [over]);
  useEffect(() => {
    if (methods.some((each) => each.startsWith("oidc:"))) get("auth/methods").then(({ oidc }) => setNames(Object.fromEntries((oidc ?? []).map((/** @type {any} */ each) => [each.id, each.name]))), () => {});
  }, []);
  const send = async (/** @type {any} */ given) => {
    const found = await call("POST", "auth/session/proof", { body: given });
    if (found.user?.id !== user.peek()?.id) throw new Error(t.otherUser); // another tab signed in
    session.value = found;
    done(true);
  };
  const toProvider = async (/** @type {string} */ id) => {
    await saveBeforeSignOut();
    goToProvider(id, { purpose: "proof" });
  };
  const signInAgain = () => (done(false), void (signedOut.value = true));
  return html`<${Dialog} title=${t.proofTitle} close=${() => done(false)}><div class="body sign-again">
    ${methods.length
      ? html`<${Proof} methods=${methods} send=${send} passkeyOptions=${() => call("POST", "auth/session/proof/passkey-options", { body: {} })} text=${html`<p>${t.proofText}</p>`} cancelLabel=${t.cancel} cancel=${() => done(false)} names=${names} toProvider=${toProvider} />`
      : html`<p>${t.proofNone}</p><${Button} kind="primary" label=${t.again} press=${signInAgain} />`}
  </div><//>`;
}
