// @ts-check
/** The text within a block of Markdown: emphasis, code, links and addresses. */

/**
 * A block or an inline element. Texts are strings. `a` is a link with words of its own, `url` an address that stands in the text.
 * @typedef {{type: "p" | "quote" | "ul" | "ol" | "li" | "strong" | "em" | "a" | "url" | "code" | "pre", kids: (Node | string)[], href?: string, mark?: string, value?: number}} Node
 */
/**
 * A run of `*` or `_`. `ends` and `starts` are the lengths of the elements that it closes and opens.
 * @typedef {{mark: string, size: number, left: number, opens: boolean, closes: boolean, ends: number[], starts: number[], before: Run | null, after: Run | null}} Run
 */
/** @typedef {string | Node | Run | {link: string, href: string | null}} Token  `link` is a bracket; it is one of a link if it has an address. */

/** Elements within elements; deeper ones stay text. */
export const DEPTH_MAX = 12;
const ADDRESS_MAX = 2048;
/** Characters that turn the direction of the text after them, and so could disguise an address. */
const BIDI = "\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069";
const ADDRESS = new RegExp(`https?://[^\\s<>"\`[\\]\\\\${BIDI}]{1,${ADDRESS_MAX}}`, "iy");
const ANGLED = new RegExp(`<((?:https?://|mailto:)?[^\\s<>${BIDI}]+)>`, "iy");
const DISGUISES = new RegExp(`[\\s${BIDI}]`);
const ENCLOSED = /<[^<>\n]*>\)/y;
const MAIL = /^[\w.+-]+@[\w-]+(\.[\w-]+)+$/;
const TAIL = /[.,;:!?…'"»)}*_~]/;
const PUNCTUATION = /[\p{P}\p{S}]/u;
/** A backslash before other characters stays, as in `\\server\share`. */
const ESCAPABLE = /[`*_[\]<>]/;
const MARKER_ESCAPE = /^[-+.)]$/;
const LINE_START = /(?:^|\n)[ \t]*\d{0,9}$/;

/** Return the address that a link may have; null for any other scheme, and if it names a user, which hides the host. @param {string} given */
export function safeAddress(given) {
  if (given.length > ADDRESS_MAX || !/^(https?:\/\/|mailto:)/i.test(given) || DISGUISES.test(given)) return null;
  if (!URL.canParse(given)) return null;
  const { href, protocol, username, password } = new URL(given);
  return ["http:", "https:", "mailto:"].includes(protocol) && !username && !password ? href : null;
}

/** @param {Node["type"]} type @param {Partial<Node>} [more] @returns {Node} */
export const node = (type, more) => ({ type, kids: [], ...more });

/** Return the end of a link's address, which begins at `from` after its bracket; -1 if it has none. @param {string} text @param {number} from */
function addressEnd(text, from) {
  let open = 0;
  for (let at = from; at < text.length; at += 1) {
    const each = /** @type {string} */ (text[at]);
    if (each === "\\") at += 1;
    else if (each === "(" && (open += 1) > 32) return -1;
    else if (each === ")" && (open -= 1) < 0) return at;
    else if (each <= " " || each === "<" || each === ">") return -1;
  }
  return -1;
}

/** Return the address of a link and the place after it; null if the bracket before `at` begins none. @param {string} text @param {number} at */
function destination(text, at) {
  if (text[at] !== "(") return null;
  ENCLOSED.lastIndex = at + 1;
  const enclosed = ENCLOSED.exec(text)?.[0];
  const end = enclosed ? at + enclosed.length : addressEnd(text, at + 1);
  if (end < 0) return null;
  const source = text.slice(at, end + 1);
  const href = safeAddress((enclosed ? source.slice(2, -2) : source.slice(1, -1)).replace(/\\([!-/:-@[-`{-~])/g, "$1"));
  return href && { href, source, end: end + 1 };
}

/** Return the address that stands at a place in the text, without the punctuation after it; empty for none. @param {string} text @param {number} at */
function addressAt(text, at) {
  ADDRESS.lastIndex = at;
  const found = ADDRESS.exec(text)?.[0] ?? "";
  let end = found.length;
  let [open, close] = [0, 0];
  for (const each of found) ((open += Number(each === "(")), (close += Number(each === ")")));
  while (end > 0 && TAIL.test(/** @type {string} */ (found[end - 1]))) {
    if (found[end - 1] === ")" && (close -= 1) < open) break;
    end -= 1;
  }
  return found.slice(0, end);
}

/** Reads the text of one block. */
export class Inline {
  /** @type {Token[]} */
  tokens = [];
  /** @type {{token: {link: string, href: string | null}, runs: Run | null}[]} Brackets that may begin a link, each with the last run before it. */
  brackets = [];
  /** @type {Run | null} */
  run = null;
  /** @type {Map<number, number[]>} Where runs of backticks are, by their length. */
  ticks = new Map();

  /** @param {string} text */
  constructor(text) {
    this.text = text;
    for (const { 0: { length }, index } of text.matchAll(/`+/g)) {
      const known = this.ticks.get(length);
      if (known) known.push(index);
      else this.ticks.set(length, [index]);
    }
    for (const places of this.ticks.values()) places.reverse(); // the next one is last
  }

  /** @returns {(Node | string)[]} */
  parse() {
    const { text } = this;
    for (let at = 0; at < text.length; ) {
      const each = /** @type {string} */ (text[at]);
      if (each === "\\" && this.escapes(at)) at = this.literal(text[at + 1] ?? "", at + 2);
      else if (each === "`") at = this.code(at);
      else if (each === "*" || each === "_") at = this.mark(each, at);
      else if (each === "[") at = this.bracket(at);
      else if (each === "]") at = this.link(at);
      else if (each === "<") at = this.angled(at);
      else if ((each === "h" || each === "H") && !/[\p{L}\p{N}]/u.test(text[at - 1] ?? "")) at = this.url(at);
      else at = this.plain(at);
    }
    pair(this.run, null);
    return tree(this.tokens);
  }

  /** Return whether the backslash at a place hides markup, which it does not show itself. @param {number} at */
  escapes(at) {
    const next = this.text[at + 1] ?? "";
    return ESCAPABLE.test(next) || (MARKER_ESCAPE.test(next) && LINE_START.test(`${at > 12 ? "x" : ""}${this.text.slice(Math.max(0, at - 12), at)}`));
  }

  /** @param {string} words @param {number} end */
  literal(words, end) {
    this.tokens.push(words);
    return end;
  }

  /** @param {number} at */
  plain(at) {
    let end = at + 1;
    while (end < this.text.length && !/[\\`*_[\]<hH]/.test(/** @type {string} */ (this.text[end]))) end += 1;
    return this.literal(this.text.slice(at, end), end);
  }

  /** @param {number} at */
  code(at) {
    let end = at;
    while (this.text[end] === "`") end += 1;
    const places = this.ticks.get(end - at) ?? [];
    while (places.length && /** @type {number} */ (places.at(-1)) < end) places.pop();
    const close = places.at(-1);
    if (close === undefined) return this.literal(this.text.slice(at, end), end);
    const inside = this.text.slice(end, close);
    const padded = inside.length > 2 && /^[ \n][^]*[ \n]$/.test(inside) && inside.trim();
    this.tokens.push(node("code", { kids: [padded ? inside.slice(1, -1) : inside] }));
    return close + end - at;
  }

  /** @param {string} mark @param {number} at */
  mark(mark, at) {
    const { text } = this;
    let end = at;
    while (text[end] === mark) end += 1;
    const before = at ? (/.$/su.exec(text.slice(Math.max(0, at - 2), at))?.[0] ?? "") : "";
    const after = String.fromCodePoint(text.codePointAt(end) ?? 32);
    const [blankBefore, blankAfter] = [!before.trim(), !after.trim()];
    const [wordBefore, wordAfter] = [!blankBefore && !PUNCTUATION.test(before), !blankAfter && !PUNCTUATION.test(after)];
    const left = !blankAfter && (wordAfter || !wordBefore);
    const right = !blankBefore && (wordBefore || !wordAfter);
    const under = mark === "_";
    const opens = left && (!under || !right || !wordBefore);
    const closes = right && (!under || !left || !wordAfter);
    if (!opens && !closes) return this.literal(text.slice(at, end), end);
    /** @type {Run} */
    const run = { mark, size: end - at, left: end - at, opens, closes, ends: [], starts: [], before: this.run, after: null };
    if (this.run) this.run.after = run;
    this.run = run;
    this.tokens.push(run);
    return end;
  }

  /** @param {number} at */
  bracket(at) {
    const token = { link: "[", href: /** @type {string | null} */ (null) };
    this.tokens.push(token);
    this.brackets.push({ token, runs: this.run });
    return at + 1;
  }

  /** @param {number} at */
  link(at) {
    const start = this.brackets.pop();
    const found = start && destination(this.text, at + 1);
    if (!found) return this.literal("]", at + 1);
    start.token.href = found.href;
    pair(this.run, start.runs);
    this.run = start.runs;
    if (this.run) this.run.after = null;
    this.brackets = []; // a link within a link is none
    this.tokens.push({ link: `]${found.source}`, href: found.href });
    return found.end;
  }

  /** @param {number} at */
  angled(at) {
    ANGLED.lastIndex = at;
    const found = ANGLED.exec(this.text);
    const [whole = "", words = ""] = found ?? [];
    const href = found && safeAddress(MAIL.test(words) ? `mailto:${words}` : words);
    if (!href) return this.literal("<", at + 1);
    this.tokens.push(node("url", { kids: [words], href }));
    return at + whole.length;
  }

  /** @param {number} at */
  url(at) {
    const words = addressAt(this.text, at);
    const href = words && safeAddress(words);
    if (!words) return this.plain(at);
    this.tokens.push(href ? node("url", { kids: [words], href }) : words);
    return at + words.length;
  }
}

/** Pair the runs after `bottom` to emphasis, as CommonMark does. @param {Run | null} newest @param {Run | null} bottom */
function pair(newest, bottom) {
  let oldest = newest;
  while (oldest && oldest.before !== bottom) oldest = oldest.before;
  if (newest === bottom) return;
  /** @type {Map<string, Run | null>} Below these runs there is no start for this kind of end, which keeps the time linear. */
  const bottoms = new Map();
  const remove = (/** @type {Run} */ run) => {
    if (run.before) run.before.after = run.after;
    if (run.after) run.after.before = run.before;
  };
  for (let end = oldest; end; ) {
    const kind = `${end.mark}${end.opens}${end.size % 3}`;
    const low = bottoms.has(kind) ? bottoms.get(kind) : bottom;
    let start = end.closes ? end.before : bottom;
    const fits = (/** @type {Run} */ run) => run.mark === end?.mark && run.opens && !((end.opens || run.closes) && end.size % 3 && (run.size + end.size) % 3 === 0);
    while (start && start !== bottom && start !== low && !fits(start)) start = start.before;
    if (end.closes && start && start !== bottom && start !== low) {
      const size = start.left > 1 && end.left > 1 ? 2 : 1;
      start.left -= size;
      end.left -= size;
      start.starts.push(size);
      end.ends.push(size);
      start.after = end;
      end.before = start;
      if (!start.left) remove(start);
      if (end.left) continue;
      remove(end);
    } else if (end.closes) {
      bottoms.set(kind, end.before);
      if (!end.opens) remove(end);
    }
    end = end.after;
  }
}

/** Return the tree of tokens. Elements that are nested too deeply stay text. @param {Token[]} tokens @returns {(Node | string)[]} */
function tree(tokens) {
  const root = node("p");
  /** @type {{of: Node, shown: boolean, link: boolean}[]} */
  const open = [{ of: root, shown: true, link: false }];
  let depth = 0;
  const top = () => /** @type {{of: Node, shown: boolean, link: boolean}} */ (open.at(-1));
  const add = (/** @type {Node | string} */ each) => {
    const { kids } = top().of;
    const last = kids.length - 1;
    if (typeof each === "string" && typeof kids[last] === "string") kids[last] += each;
    else if (each !== "") kids.push(each);
  };
  const begin = (/** @type {Node} */ of, /** @type {string} */ source) => {
    const shown = depth < DEPTH_MAX;
    if (shown) (add(of), (depth += 1));
    else add(source);
    open.push({ of: shown ? of : top().of, shown, link: top().link || of.type === "a" });
  };
  const end = (/** @type {string} */ source) => {
    if (open.pop()?.shown) depth -= 1;
    else add(source);
  };
  for (const each of tokens) {
    if (typeof each === "string") add(each);
    else if ("ends" in each) {
      for (const size of each.ends) end(each.mark.repeat(size));
      add(each.mark.repeat(each.left));
      for (const size of each.starts.reverse()) begin(node(size > 1 ? "strong" : "em"), each.mark.repeat(size));
    } else if ("link" in each) {
      if (each.href === null) add(each.link);
      else if (each.link === "[") begin(node("a", { href: each.href }), "[");
      else end(each.link);
    } else if (each.type === "url" && top().link) add(each.kids[0] ?? "");
    else add(each);
  }
  return root.kids;
}
