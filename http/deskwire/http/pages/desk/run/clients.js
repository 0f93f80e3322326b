// @ts-check
/** What a client calls itself, in words that its user knows. */
import { t } from "./texts.js";

const BROWSERS = /** @type {[RegExp, string][]} */ ([[/Edg\//, "Edge"], [/OPR\//, "Opera"], [/Firefox\//, "Firefox"], [/(HeadlessChrome|Chrome|Chromium)\//, "Chromium"], [/Safari\//, "Safari"]]);
const SYSTEMS = /** @type {[RegExp, string][]} */ ([[/Windows/, "Windows"], [/iPhone|iPad/, "iOS"], [/Android/, "Android"], [/Mac OS/, "macOS"], [/Linux|X11/, "Linux"]]);

/** The browser and system of a `User-Agent`, e.g. "Firefox, Windows"; the text itself for a client that is no browser. @param {string|null} agent */
export function clientName(agent) {
  if (!agent) return t.sessions.unknown;
  const found = [BROWSERS, SYSTEMS].map((names) => names.find(([fits]) => fits.test(agent))?.[1]).filter(Boolean);
  return found.length ? found.join(", ") : agent.slice(0, 80);
}
