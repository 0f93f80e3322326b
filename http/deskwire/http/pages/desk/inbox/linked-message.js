// @ts-check
/** The message to which the address leads: it is loaded, scrolled to and focused. */
import { html, useEffect, useState } from "../vendor/preact.js";
import { t } from "../core/texts-lazy.js";
import { Button, Icon } from "../ui/parts.js";
import { go, linkedMessage } from "../core/session.js";
import { loadUpTo } from "./conversation.js";
import { renderMessage } from "./thread-window.js";

const FRAMES_MAX = 120;
const STEADY_FRAMES = 4;
const nextFrame = () => new Promise((done) => requestAnimationFrame(done));

/** Scroll to a loaded message and focus it. @param {string} messageId */
async function show(messageId) {
  let steady = 0;
  // The chunks around it render once they are near, and may have another height then: scroll until it stays where it is.
  for (let frame = 0; frame < FRAMES_MAX && steady < STEADY_FRAMES; frame += 1) {
    await nextFrame();
    if (linkedMessage.peek() !== messageId) return;
    renderMessage(messageId);
    const el = document.getElementById(messageId);
    const before = el?.getBoundingClientRect().top ?? NaN;
    el?.scrollIntoView({ block: "center" });
    steady = el && Math.abs(el.getBoundingClientRect().top - before) < 2 ? steady + 1 : 0;
  }
  document.getElementById(messageId)?.focus({ preventScroll: true });
}

/**
 * Go to the message of the address, and show why that fails.
 * @param {{id: string, ready: boolean}} props  ready: true once the newest messages are loaded
 */
export function LinkedMessage({ id, ready }) {
  const messageId = linkedMessage.value;
  const [state, setState] = useState(/** @type {{of: string|null, is: "loading"|"shown"|"gone"|"failed", why: string}} */ ({ of: null, is: "shown", why: "" }));
  const find = async () => {
    if (!messageId) return;
    const mine = messageId;
    const end = (/** @type {"loading"|"shown"|"gone"|"failed"} */ is, why = "") => linkedMessage.peek() === mine && setState({ of: mine, is, why });
    end("loading");
    try {
      const found = await loadUpTo(id, mine);
      if (end(found ? "shown" : "gone") !== false && found) await show(mine);
    } catch (error) {
      end("failed", /** @type {Error} */ (error).message);
    }
  };
  useEffect(() => {
    if (ready) void find();
  }, [messageId, ready]);
  if (!messageId || state.of !== messageId || state.is === "shown") return null;
  if (state.is === "loading") return html`<p class="banner info" role="status"><${Icon} name="spin" class="spin" />${t.thread.linkLoading}</p>`;
  const close = () => go(`c/${id}`, { replace: true });
  if (state.is === "gone") return html`<div class="banner" role="alert"><${Icon} name="info" /><span>${t.thread.linkGone}</span><${Button} class="small" label=${t.close} press=${close} /></div>`;
  return html`<div class="banner bad" role="alert"><${Icon} name="warn" /><span>${t.thread.linkFailed(state.why)}</span><${Button} class="small" label=${t.tryAgain} press=${find} /></div>`;
}
