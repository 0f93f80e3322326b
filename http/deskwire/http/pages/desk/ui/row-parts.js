// @ts-check
/** The parts of the list's rows, which the user hides in the settings. */
import { effect } from "../vendor/preact.js";
import { setting } from "./parts.js";

/** The hidden parts: `words`, `tags`, `waits`, `assignee`. */
export const hiddenInRows = setting("hiddenInRows", /** @type {string[]} */ ([]));

effect(() => {
  document.documentElement.dataset.hides = hiddenInRows.value.join(" ");
});
