// @ts-check
/** The reason why a provider did not sign the user in, which the service puts into the address. */
import { t } from "../ui/sign-in-texts.js";
import { place } from "../core/session.js";

/** Take the reason out of the address, and return it in words; "" if there is none. */
export function providerFailure() {
  const query = new URLSearchParams(location.search);
  const code = query.get("signIn");
  if (code === null) return "";
  query.delete("signIn");
  const rest = query.size ? `?${query}` : "";
  history.replaceState(history.state, "", location.pathname + rest);
  place.value = place.peek().split("?")[0] + rest;
  return t.failures[/** @type {"other"} */ (Object.hasOwn(t.failures, code) ? code : "other")];
}
