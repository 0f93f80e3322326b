// @ts-check
/** The stream of events: one for all tabs of this browser, in a worker, or this tab's own where there are no shared ones. */
import { signal } from "./vendor/preact.js";
/** @import { Connection, Envelope } from "./types.js" */

/** The state of the connection. */
export const connection = signal(
  /** @type {Connection} */ ({ state: "connecting", since: Date.now(), cursor: null, lastEventAt: null, caughtUp: 0, retryAt: null, streamId: null, reason: null }),
);

/**
 * Opens the stream of a project, and closes the one before.
 * @param {string} projectId
 * @param {{events: (batch: Envelope[]) => void, passing: (event: any) => void, hello: (hello: any) => void}} to
 *   hello: a `gap` in it, or no `resumedAfter` where there was a cursor, asks for everything to be loaded anew.
 */
export function open(projectId, to) {
  void [projectId, to];
}

/** Closes the stream. */
export function close() {}

/** Tries at once. */
export function retry() {}

/** Tells colleagues what this tab shows and where it writes. @param {string[]} conversationIds @param {string|null} composing */
export function view(conversationIds, composing) {
  void [conversationIds, composing];
}
