// @ts-check
/** A form that proves the user's identity by one of several ways: a code, a recovery code, the password, a passkey or a provider. */
import { html, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { t } from "./sign-in-texts.js";
import { Button } from "./parts.js";
import { Offline, Problem, address } from "../core/api.js";
import { getPasskey, hasPasskeys } from "./passkeys.js";

/** Go to a provider, which returns to this place. @param {string} provider @param {Record<string, string>} [query] */
export const goToProvider = (provider, query) => location.assign(address("auth/oidc/start", { provider, returnTo: location.pathname + location.search, ...query }));

/** The ways with a field: its name, label, and the button that chooses it. @type {Record<string, {name: string, label: string, use: string, wrong: string, more: Record<string, string>}>} */
const TYPED = {
  totp: { name: "code", label: t.code, use: t.useCode, wrong: t.invalidCode, more: { inputmode: "numeric", autocomplete: "one-time-code", maxlength: "12" } },
  password: { name: "password", label: t.password, use: t.usePassword, wrong: t.wrongPassword, more: { type: "password", autocomplete: "current-password" } },
  recoveryCode: { name: "recoveryCode", label: t.recoveryCode, use: t.useRecoveryCode, wrong: t.invalidRecoveryCode, more: { autocomplete: "off", spellcheck: "false", maxlength: "40" } },
};
const WRONG = new Set(["invalid_code", "invalid_login"]);

/** Return a refused proof in words. @param {any} error @param {string} [wrong]  for a wrong value */
export function proofProblem(error, wrong) {
  if (error instanceof Offline) return t.offline;
  return wrong && error instanceof Problem && WRONG.has(error.code) ? wrong : error.message;
}

/**
 * @param {{methods: string[], send: (proof: any) => Promise<unknown>, passkeyOptions: () => Promise<any>, text?: any, cancelLabel: string, cancel: () => void, names?: Record<string, string>, toProvider?: (id: string) => void}} props
 *   methods: totp, password, recoveryCode, passkey, `oidc:<provider>`. send: gets one member, such as `code`; may throw. names: of the providers, by id
 */
export function Proof({ methods, send, passkeyOptions, text, cancelLabel, cancel, names = {}, toProvider }) {
  const typed = Object.keys(TYPED).filter((each) => methods.includes(each));
  const [way, setWay] = useState(typed[0] ?? "");
  const [wrong, setWrong] = useState("");
  const [busy, setBusy] = useState(false);
  const running = useRef(false);
  const form = useRef(/** @type {HTMLFormElement|null} */ (null));
  const field = TYPED[way];
  useLayoutEffect(() => form.current?.querySelector("input")?.focus(), [way]);
  const run = async (/** @type {() => Promise<any>} */ proof) => {
    if (running.current) return;
    setBusy((running.current = true));
    setWrong("");
    try {
      await send(await proof());
    } catch (error) {
      setWrong(proofProblem(error, field?.wrong));
      const input = /** @type {HTMLInputElement|null} */ (form.current?.querySelector("input") ?? null);
      input?.focus();
      input?.select();
    }
    setBusy((running.current = false));
  };
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const value = String(new FormData(/** @type {HTMLFormElement} */ (form.current)).get(field?.name ?? "") ?? "");
    if (field && value) void run(async () => ({ [field.name]: way === "totp" ? value.replace(/\s/g, "") : way === "password" ? value : value.trim() }));
  };
  const passkey = methods.includes("passkey") && hasPasskeys && html`<${Button} icon="keys" label=${t.usePasskey} press=${() => run(async () => ({ passkey: await getPasskey((await passkeyOptions()).publicKey) }))} />`;
  const providers = methods.filter((each) => each.startsWith("oidc:")).map((each) => each.slice(5));
  return html`<form ref=${form} class="proof" onSubmit=${submit} aria-busy=${busy}>
    ${text}
    ${wrong && html`<p class="wrong" role="alert">${wrong}</p>`}
    ${field && html`<label class="label" key=${way}>${field.label}<input class="field" name=${field.name} required autofocus ...${field.more} /></label>
      <button type="submit" class="button primary" aria-disabled=${busy ? "true" : undefined}>${t.confirm}</button>`}
    ${passkey}
    ${typed.filter((each) => each !== way).map((each) => html`<${Button} key=${each} kind="quiet" label=${TYPED[each]?.use ?? each} press=${() => (setWrong(""), setWay(each))} />`)}
    ${toProvider && providers.map((each) => html`<${Button} key=${each} icon="lock" label=${t.withProvider(names[each] ?? each)} press=${() => toProvider(each)} />`)}
    <${Button} kind="quiet" label=${cancelLabel} press=${cancel} />
  </form>`;
}
