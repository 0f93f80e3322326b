// @ts-check
/** Follows changes of the user's rights: an ended session, a lost project, a changed role, a required second factor. */
import { effect } from "../vendor/preact.js";
import { denied, signedOut } from "../core/api.js";
import { connection, retry } from "../core/feed.js";
import { loadSession, mustEnrol, project } from "../core/session.js";

const CHECK_INTERVAL_MS = 5_000;
let checkedAt = 0;

/** The rights of the page, as text. */
const rights = () => JSON.stringify([project.peek()?.id, project.peek()?.permissions]);

// The session that ended may have been replaced by a new one, as after a password change: `loadSession` finds out.
effect(() => {
  const { state, reason } = connection.value;
  if (state !== "ended") return;
  if (reason === "session_ended") loadSession().then(() => signedOut.peek() || retry(), () => void (signedOut.value = true));
  if (reason === "second_factor_required") loadSession().then(() => mustEnrol.peek() || retry(), () => {}); // shows the page to set one up
  if (reason !== "permission_lost") return;
  const before = rights();
  loadSession().then(() => rights() !== before && retry(), () => {}); // otherwise the banner stays, with its button
});

// A refused call may be the first sign of a new role. The page then shows only what the user still may do.
effect(() => {
  if (!denied.value || Date.now() - checkedAt < CHECK_INTERVAL_MS) return;
  checkedAt = Date.now();
  loadSession().catch(() => {}); // the next refused call tries again
});
