// @ts-check
/**
 * Turns pasted HTML into Markdown. It reads the HTML as text and makes no elements of it, because the page's policy allows no HTML of others, and a
 * document of it could load pictures. Other elements than those of a message are left out, with their words kept.
 */
import { safeAddress } from "../core/markdown-inline.js";

const HTML_MAX = 400_000;
const ENTITIES = /** @type {Record<string, string>} */ ({ amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0", ndash: "–", mdash: "—", hellip: "…", lsquo: "‘", rsquo: "’", ldquo: "“", rdquo: "”", bull: "•", copy: "©", euro: "€" });
const SILENT = new Set(["script", "style", "head", "title", "template", "svg", "math", "object", "iframe", "noscript", "select", "textarea"]);
const VOID = new Set(["br", "img", "hr", "meta", "input", "link", "col", "wbr", "area", "base", "embed", "source", "track"]);
/** Blocks with a blank line around them. Lines of the others follow each other. */
const APART = new Set(["p", "ul", "ol", "blockquote", "pre", "table", "h1", "h2", "h3", "h4", "h5", "h6", "hr"]);
const BLOCKS = new Set([...APART, "div", "section", "article", "header", "footer", "main", "nav", "aside", "li", "tr", "dl", "dt", "dd", "figure", "address", "tbody", "thead", "tfoot"]);
const MARKS = /** @type {Record<string, string>} */ ({ b: "**", strong: "**", i: "_", em: "_", code: "`", tt: "`", kbd: "`", samp: "`", h1: "**", h2: "**", h3: "**", h4: "**", h5: "**", h6: "**" });
/** Google Docs encloses everything in a bold element of normal weight, and marks words by their style. */
const WEIGHT = /font-weight:\s*(bold|normal|[1-9]00)/i;
const SLANT = /font-style:\s*italic/i;
const DEPTH_MAX = 40;

/** @typedef {{tag: string, attributes: string, kids: (Element | string)[], blocks: boolean}} Element  blocks: true if it contains some */

/** @param {string} text */
const decoded = (text) =>
  text.replace(/&(?:#x([0-9a-f]{1,6})|#(\d{1,7})|([a-z]{2,8}));/gi, (whole, hex, decimal, name) => {
    const code = hex ? parseInt(hex, 16) : Number(decimal);
    if (name) return ENTITIES[name.toLowerCase()] ?? whole;
    return code > 31 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff) ? String.fromCodePoint(code) : "";
  });

/** Return a text with a backslash before what would be markup. @param {string} text */
const escaped = (text) => text.replace(/[`[\]]|<(?=\S)|(?<![\s*])\*|\*(?!\s)|(?<![\p{L}\p{N}\s_])_|_(?![\p{L}\p{N}\s_])/gu, "\\$&").replace(/^(\s*)([-+>](?=\s)|\d{1,9}(?=[.)]\s))/gm, (_, space, mark) => (/\d/.test(mark) ? `${space}${mark}\\` : `${space}\\${mark}`));

/** Return the index after a tag's closing `>`, ignoring a quoted `>`; the length of the text if the tag is not closed. @param {string} html @param {number} from */
function tagEnd(html, from) {
  let quote = "";
  for (let at = from; at < html.length; at += 1) {
    const each = /** @type {string} */ (html[at]);
    if (quote) quote = each === quote ? "" : quote;
    else if (each === ">") return at;
    else if (each === '"' || each === "'") quote = each;
  }
  return html.length;
}

/** Split HTML into tags and texts, without comments. @param {string} html @returns {Generator<string | {closing: boolean, tag: string, attributes: string}>} */
function* tokens(html) {
  for (let at = 0; at < html.length; ) {
    const next = html.indexOf("<", at);
    if (next !== at) yield html.slice(at, next < 0 ? undefined : next);
    if (next < 0) return;
    const name = /^<(\/?)([a-z][a-z0-9:-]*)/i.exec(html.slice(next, next + 60));
    if (html[next + 1] === "!") {
      const end = html.indexOf(html.startsWith("<!--", next) ? "-->" : ">", next);
      at = end < 0 ? html.length : html.indexOf(">", end) + 1;
    } else if (!name) {
      yield "<";
      at = next + 1;
    } else {
      const [whole, closing, tag = ""] = name;
      at = tagEnd(html, next + whole.length) + 1;
      yield { closing: closing === "/", tag: tag.toLowerCase(), attributes: html.slice(next + whole.length, at - 1) };
    }
  }
}

/** Return the elements of HTML. @param {string} html @returns {Element} */
function parse(html) {
  /** @type {Element} */
  const root = { tag: "", attributes: "", kids: [], blocks: true };
  const open = [root];
  for (const token of tokens(html)) {
    const top = /** @type {Element} */ (open.at(-1));
    if (typeof token === "string") top.kids.push(decoded(token));
    else if (token.closing) {
      const at = open.findLastIndex((each) => each.tag === token.tag);
      if (at > 0) open.length = at;
    } else {
      const { tag, attributes } = token;
      const made = { tag, attributes, kids: [], blocks: false };
      top.kids.push(made);
      if (BLOCKS.has(tag)) for (const each of open) each.blocks = true;
      if (!VOID.has(tag) && !attributes.endsWith("/") && open.length < DEPTH_MAX) open.push(made);
    }
  }
  return root;
}

/** Return the mark of an element; empty for none. @param {Element} element */
function markOf({ tag, attributes }) {
  const weight = WEIGHT.exec(attributes)?.[1]?.toLowerCase();
  const light = weight === "normal" || (weight !== undefined && Number(weight) < 600);
  if (MARKS[tag]) return light && MARKS[tag] === "**" ? "" : MARKS[tag];
  if (tag !== "span") return "";
  return weight && !light ? "**" : SLANT.test(attributes) ? "_" : "";
}

/** Return the address of a link; null if it has none that is allowed. @param {Element} element */
const addressOf = ({ tag, attributes }) => (tag === "a" ? safeAddress(decoded(/\shref\s*=\s*(?:"([^"]*)"|'([^']*)')/i.exec(attributes)?.slice(1).find((each) => each !== undefined) ?? "")) : null);

/** Return words in a mark, with the spaces around them outside. @param {string} words @param {(words: string) => string} mark */
const marked = (words, mark) => (words.trim() ? words.replace(/^(\s*)([^]*?)(\s*)$/, (_, before, inner, after) => before + mark(inner) + after) : words);

/** Return the text within a block. @param {readonly (Element | string)[]} nodes @param {readonly string[]} marks  those around it @returns {string} */
function inline(nodes, marks) {
  const found = nodes.map((each) => {
    if (typeof each === "string") return marks.includes("`") ? each.replace(/\s+/g, " ") : escaped(each.replace(/\s+/g, " "));
    if (SILENT.has(each.tag)) return "";
    if (each.tag === "br") return "\n";
    const href = marks.includes("a") || marks.includes("`") ? null : addressOf(each);
    if (href) {
      const words = inline(each.kids, [...marks, "a"]);
      return marked(words, (inner) => (plain(each.kids).trim() === href || /^https?:\/\//.test(plain(each.kids).trim()) ? href : `[${inner.replaceAll("\n", " ")}](${href.replaceAll("(", "%28").replaceAll(")", "%29")})`));
    }
    const mark = markOf(each);
    if (!mark || marks.includes(mark) || marks.includes("`")) return inline(each.kids, marks) + (/^t[dh]$/.test(each.tag) ? "\t" : "");
    return marked(inline(each.kids, [...marks, mark]), (inner) => (mark === "`" && inner.includes("`") ? `\`\` ${inner} \`\`` : mark + inner + mark));
  });
  return found.join("").replace(/ *\n */g, "\n").replace(/ {2,}/g, " ");
}

/** Return the text without markup. @param {readonly (Element | string)[]} nodes @returns {string} */
const plain = (nodes) => nodes.map((each) => (typeof each === "string" ? each : SILENT.has(each.tag) ? "" : each.tag === "br" ? "\n" : plain(each.kids) + (each.tag === "div" ? "\n" : ""))).join("");

/** Return blocks, each with whether it has blank lines around it. @param {readonly (Element | string)[]} nodes @param {readonly string[]} marks @returns {{text: string, apart: boolean}[]} */
function blocks(nodes, marks) {
  /** @type {{text: string, apart: boolean}[]} */
  const found = [];
  /** @type {(Element | string)[]} */
  let run = [];
  const add = (/** @type {string} */ text, /** @type {boolean} */ apart) => void (text.trim() && found.push({ text, apart }));
  const flush = () => (add(inline(run, marks).trim(), false), (run = []));
  for (const each of nodes) {
    if (typeof each === "string" || (!each.blocks && !BLOCKS.has(each.tag))) run.push(each);
    else if (!SILENT.has(each.tag)) {
      flush();
      const apart = APART.has(each.tag);
      if (each.tag === "pre") add(fenced(plain(each.kids).replace(/^\n|\n$/g, "")), true);
      else if (each.tag === "ul" || each.tag === "ol") add(list(each, marks), true);
      else if (each.tag === "blockquote") add(joined(blocks(each.kids, marks)).replace(/^/gm, "> ").replace(/> $/gm, ">"), true);
      else if (/^h[1-6]$/.test(each.tag)) add(marked(inline(each.kids, [...marks, "**"]), (inner) => `**${inner.replaceAll("\n", " ")}**`).trim(), true);
      else {
        const mark = markOf(each);
        const inner = blocks(each.kids, mark ? [...marks, mark] : marks);
        for (const { text, apart: own } of inner) add(mark && !own ? marked(text, (words) => mark + words + mark) : text, own || apart);
      }
    }
  }
  flush();
  return found;
}

/** @param {string} code */
function fenced(code) {
  const fence = "`".repeat(Math.max(3, ...[...code.matchAll(/`+/g)].map((each) => each[0].length + 1)));
  return `${fence}\n${code}\n${fence}`;
}

/** @param {Element} of @param {readonly string[]} marks */
function list({ tag, attributes, kids }, marks) {
  let n = Number(/start="?(\d{1,8})/.exec(attributes)?.[1] ?? 1);
  return kids
    .filter((each) => typeof each !== "string" || each.trim())
    .map((each) => {
      const item = typeof each !== "string" && each.tag === "li";
      const text = joined(blocks(item ? each.kids : [each], marks), true);
      if (!item) return text.replace(/^/gm, "  ");
      const marker = tag === "ol" ? `${n++}. ` : "- ";
      return marker + text.replace(/\n(?=.)/g, `\n${" ".repeat(marker.length)}`);
    })
    .join("\n");
}

/** @param {{text: string, apart: boolean}[]} found @param {boolean} [tight] */
const joined = (found, tight = false) => found.map(({ text, apart }, i) => (i ? (!tight && (apart || found[i - 1]?.apart) ? "\n\n" : "\n") : "") + text).join("");

/** Return the Markdown of a piece of HTML; empty for too much of it. @param {string} html */
export const toMarkdown = (html) => (html.length > HTML_MAX ? "" : joined(blocks(parse(html).kids, [])).replace(/[ \t]+$/gm, "").trim());
