// @ts-check
/** Columns of lists of browser sessions. */
import { html } from "../vendor/preact.js";
import { t } from "./texts.js";
import { Ago } from "../ui/parts.js";
import { clientName } from "../ui/format.js";

/** Return how a session was signed in, in words. @param {any} row */
function signedInBy(row) {
  const way = row.provider ?? t.sessions.ways[/** @type {"password"} */ (row.signedInBy)] ?? row.signedInBy;
  return row.secondFactor ? t.sessions.withFactor(way) : way;
}

/** The columns that every list of sessions has. */
export const SESSION_COLUMNS = [
  { label: t.sessions.client, cell: (/** @type {any} */ row) => html`${clientName(row.client)} ${row.current && html`<span class="chip good">${t.sessions.thisOne}</span>`}` },
  { label: t.sessions.by, less: true, cell: signedInBy },
  { label: t.sessions.lastSeen, cell: (/** @type {any} */ row) => html`<${Ago} at=${row.lastSeenAt} />` },
  { label: t.sessions.began, cell: (/** @type {any} */ row) => html`<${Ago} at=${row.createdAt} />`, less: true },
];
