// @ts-check
/** The state of the connection: in the navigation, and as a banner when the service is unreachable. */
import { html, useEffect, useState } from "../vendor/preact.js";
import { t } from "../core/texts-lazy.js";
import { Ago, Button, Icon, Popover, clockTime, cx, now } from "../ui/parts.js";
import { signedOut } from "../core/api.js";
import { connection, retry } from "../core/feed.js";
import { entries, unsent } from "../core/outbox.js";

const DOTS = /** @type {Record<string, string>} */ ({ live: "live", connecting: "busy", reconnecting: "busy", gap: "busy", offline: "off", silent: "off", ended: "off" });

export function Status() {
  const state = connection.value;
  const shown = state.silentSince === null ? state.state : "silent";
  const words = /** @type {any} */ (t.connection)[shown];
  useEffect(() => void (document.documentElement.dataset.link = DOTS[shown]), [shown]); // a narrow window marks the button of its navigation
  const face = (/** @type {boolean} */ open, /** @type {() => void} */ toggle, /** @type {any} */ hook) =>
    html`<button type="button" ref=${hook} class="view" aria-expanded=${open} aria-label=${`${t.side.status}: ${words}`} title=${words} onClick=${toggle}><span class="dot-box"><span class=${cx("dot", DOTS[shown])}></span></span><span class="label-text">${words}</span></button>`;
  return html`<${Popover} button=${face} class="popover receipts" label=${t.side.status}>
    ${() => html`<h2>${words}</h2>
      <dl class="pairs">
        <dt>${t.connection.cursor}</dt><dd class="mono">${state.cursor ?? t.connection.nothing}</dd>
        <dt>${t.connection.lastEvent}</dt><dd>${state.lastEventAt ? html`<${Ago} at=${new Date(state.lastEventAt).toISOString()} />` : t.connection.nothing}</dd>
        <dt>${t.connection.caughtUp}</dt><dd>${t.connection.events(state.caughtUp)}</dd>
        <dt>${t.connection.waitingToSend}</dt><dd class="num">${unsent()}</dd>
      </dl>
      ${shown !== "live" && html`<p class="popover-foot"><${Button} label=${t.connection.retry} press=${retry} /></p>`}`}
  <//>`;
}

/** A shorter interruption shows no banner. */
const BANNER_DELAY_MS = 2_000;

export function Banner() {
  const { state, since, reason, silentSince } = connection.value;
  const limited = entries.value.find((each) => each.waitsFor === "rate_limited");
  const kept = unsent();
  const [, look] = useState(0);
  const lost = silentSince ?? (state === "reconnecting" ? since : null);
  const soon = lost === null ? 0 : lost + BANNER_DELAY_MS - Date.now(); // streams are closed and reopened routinely
  useEffect(() => {
    if (!(soon > 0)) return;
    const timer = setTimeout(() => look(Date.now()), soon);
    return () => clearTimeout(timer);
  }, [lost]);
  if (state === "offline" || (lost !== null && soon <= 0)) {
    const words = state === "offline" ? t.connection.offlineSince(clockTime(since)) : t.connection.brokenSince(clockTime(lost ?? since));
    return html`<div class="banner" role="alert"><${Icon} name="warn" /><span>${words}${kept > 0 && ` ${t.connection.kept(kept)}`}</span><${Button} label=${t.connection.retry} class="small" press=${retry} /></div>`;
  }
  if (state === "ended" && !signedOut.value) return html`<div class="banner bad" role="alert"><${Icon} name="warn" /><span>${t.connection.ended_[/** @type {"permission_lost"} */ (reason)] ?? t.connection.endedBanner}</span><${Button} label=${t.connection.retry} class="small" press=${retry} /></div>`;
  if (limited) return html`<div class="banner info" role="status"><${Icon} name="clock" /><span>${t.connection.limited(Math.max(1, Math.ceil((limited.notBefore - now.value) / 1000)))}</span></div>`;
  return html`<div></div>`;
}
