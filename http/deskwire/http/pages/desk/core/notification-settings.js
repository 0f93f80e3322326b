// @ts-check
/** The user's notification settings, stored by the service, and whether this browser shows notifications. */
import { signal } from "../vendor/preact.js";
import { call, get, retryRateLimited } from "./api.js";
import { onSignOut } from "./session.js";
/** @import { NotificationSettings } from "./types.js" */

/** The settings; null until they are loaded. */
export const settings = signal(/** @type {NotificationSettings|null} */ (null));

const channel = typeof BroadcastChannel === "function" ? new BroadcastChannel("deskwire notification settings") : null;
channel?.addEventListener("message", () => settings.peek() && void load().catch(() => {}));

/** Load the settings. Throws Offline or Problem. @returns {Promise<NotificationSettings>} */
export async function load() {
  return (settings.value = await retryRateLimited(() => get("users/me/notifications")));
}

/** Store the settings, for all tabs, and return them. Throws Offline or Problem. @param {NotificationSettings} changed @returns {Promise<NotificationSettings>} */
export async function save(changed) {
  const stored = (settings.value = await call("PUT", "users/me/notifications", { body: changed }));
  channel?.postMessage("changed");
  return stored;
}

onSignOut(() => void (settings.value = null));
