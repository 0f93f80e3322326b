// @ts-check
/**
 * The Markdown of messages: parsed in linear time to a tree with a fixed list of node types. The widget's panel uses this module, too.
 *
 * A subset of CommonMark: emphasis, code, lists, quotes, links. HTML, entities, pictures, headings and reference links stay text. Some rules
 * differ from CommonMark, because it would change what an agent means: a line break is kept, and a line after a quote or list item continues
 * it only with its own `>` or indent. A backslash stays unless markup follows it, and a fence with several words after it is text.
 */
import { DEPTH_MAX, Inline, node } from "./markdown-inline.js";
/** @import { Node } from "./markdown-inline.js" */

const MARKER = /^([-+*]|(\d{1,9})([.)]))(?=[ \t]|$)/;
/** The word after it, the name of a language, is not shown; other words would be, so they make it no fence. */
const FENCE = /^(`{3,}|~{3,})[\w+#.-]{0,20}[ \t]*$/;
const RULE = /^([-*_])[ \t]*(?:\1[ \t]*){2,}$/;

/** Return the columns of white space at the start of a line. @param {string} line */
function indentOf(line) {
  let columns = 0;
  for (const each of line) {
    if (each === " ") columns += 1;
    else if (each === "\t") columns += 4 - (columns % 4);
    else break;
  }
  return columns;
}

/** Remove white space up to this many columns; a tab that is wider leaves spaces. @param {string} line @param {number} columns */
function outdent(line, columns) {
  let at = 0;
  let done = 0;
  while (done < columns && (line[at] === " " || line[at] === "\t")) {
    done += line[at] === "\t" ? 4 - (done % 4) : 1;
    at += 1;
  }
  return " ".repeat(Math.max(0, done - columns)) + line.slice(at);
}

/** The open blocks while lines are read. */
class Blocks {
  /** @type {{of: Node, columns: number}[]} Columns: the indent of a list item's lines; 0 for a quote. */
  open = [{ of: node("p"), columns: 0 }];
  /** @type {{lines: string[], of: Node} | null} The paragraph that the next line may continue. */
  paragraph = null;
  /** @type {{lines: string[], of: Node, mark: string, indent: number, depth: number} | null} */
  fence = null;
  /** @type {{lines: string[], of: Node}[]} */
  leaves = [];

  /** @returns {Node} */
  get innermost() {
    return /** @type {{of: Node}} */ (this.open.at(-1)).of;
  }

  /** @param {string} line */
  add(line) {
    let rest = line;
    let kept = 1;
    for (; kept < this.open.length; kept += 1) {
      const { of, columns } = /** @type {{of: Node, columns: number}} */ (this.open[kept]);
      const inner = of.type === "quote" ? quoted(rest) : !rest.trim() ? (of.kids.length ? "" : null) : indentOf(rest) >= columns ? outdent(rest, columns) : null;
      if (inner === null) break;
      rest = inner;
    }
    if (this.fence && kept >= this.fence.depth) return this.addCode(rest);
    this.fence = null;
    if (kept < this.open.length) ((this.open.length = kept), (this.paragraph = null));
    if (!rest.trim()) return void (this.paragraph = null);
    rest = this.begin(rest);
    if (this.beginFence(rest)) return void (this.paragraph = null);
    if (!rest.trim()) return;
    if (!this.paragraph) this.paragraph = this.leaf("p");
    this.paragraph.lines.push(rest);
  }

  /** Open the quotes and list items that begin in a line. Return the rest of it. @param {string} line */
  begin(line) {
    let rest = line;
    while (this.open.length < DEPTH_MAX && indentOf(rest) < 4) {
      const inner = quoted(rest);
      const item = inner === null ? this.item(rest) : null;
      if (inner === null && item === null) break;
      this.paragraph = null;
      if (inner !== null) {
        this.push(node("quote"), 0);
        rest = inner;
      } else if (item) {
        const last = this.innermost.kids.at(-1);
        const list = typeof last === "object" && last.type === item.type && last.mark === item.mark ? last : node(item.type, { mark: item.mark });
        if (list !== last) this.innermost.kids.push(list);
        const of = node("li", item.value === null ? {} : { value: item.value });
        list.kids.push(of);
        this.open.push({ of, columns: item.columns });
        rest = item.rest;
      }
    }
    return rest;
  }

  /** Return the list item that a line begins, if any. A paragraph is interrupted only as in CommonMark. @param {string} line */
  item(line) {
    const indent = indentOf(line);
    const text = outdent(line, indent);
    const found = MARKER.exec(text);
    if (!found || RULE.test(text)) return null;
    const [marker = "", , digits, end] = found;
    const after = text.slice(marker.length);
    if (this.paragraph && (!after.trim() || (digits !== undefined && Number(digits) !== 1))) return null;
    const space = indentOf(after);
    const width = marker.length + (!after.trim() || space > 4 ? 1 : space);
    /** @type {"ol" | "ul"} */
    const type = digits === undefined ? "ul" : "ol";
    return { type, mark: end ?? marker, value: digits === undefined ? null : Number(digits), columns: indent + width, rest: outdent(after, width - marker.length) };
  }

  /** @param {string} line */
  beginFence(line) {
    const indent = indentOf(line);
    const found = FENCE.exec(outdent(line, indent));
    if (!found || indent > 3) return false;
    this.fence = { ...this.leaf("pre"), mark: found[1] ?? "", indent, depth: this.open.length };
    return true;
  }

  /** @param {string} line */
  addCode(line) {
    const fence = /** @type {NonNullable<Blocks["fence"]>} */ (this.fence);
    const text = line.trim();
    if (indentOf(line) < 4 && text.length >= fence.mark.length && text === /** @type {string} */ (fence.mark[0]).repeat(text.length)) this.fence = null;
    else fence.lines.push(outdent(line, fence.indent));
  }

  /** @param {Node} of @param {number} columns */
  push(of, columns) {
    this.innermost.kids.push(of);
    this.open.push({ of, columns });
  }

  /** @param {"p" | "pre"} type */
  leaf(type) {
    const made = { of: node(type), lines: /** @type {string[]} */ ([]) };
    this.innermost.kids.push(made.of);
    this.leaves.push(made);
    return made;
  }
}

/** Return the line without its `>`; null if it has none. @param {string} line */
function quoted(line) {
  const text = line.trimStart();
  return text[0] === ">" && indentOf(line) < 4 ? (text[1] === " " ? text.slice(2) : text.slice(1)) : null;
}

/** Return the blocks of a text. @param {string} text @returns {Node[]} */
export function parse(text) {
  const blocks = new Blocks();
  for (const line of text.split(/\r\n|\n|\r/)) blocks.add(line);
  for (const { of, lines } of blocks.leaves) of.kids = of.type === "pre" ? [lines.join("\n")] : new Inline(lines.join("\n")).parse();
  return /** @type {Node[]} */ (blocks.open[0]?.of.kids ?? []);
}

/** Return whether a text looks different from plain text when it is rendered. @param {string} text */
export function hasMarkup(text) {
  const shown = parse(text).map(({ type, kids }) => (type === "p" && kids.every((each) => typeof each === "string" || (each.type === "url" && text.includes(String(each.kids[0])))) ? kids.map((each) => (typeof each === "string" ? each : each.kids[0])).join("") : null));
  return shown.includes(null) || shown.join("").replace(/\s/g, "") !== text.replace(/\s/g, "");
}

const TAGS = { p: "p", quote: "blockquote", ul: "ul", ol: "ol", li: "li", strong: "strong", em: "em", a: "a", url: "a", code: "code", pre: "pre" };

/**
 * Return the elements of parsed blocks. Their tags are those above, `bdi` and `span`.
 * @param {readonly (Node | string)[]} nodes @param {(tag: any, props: any, ...children: any[]) => any} h @param {string} [newTab]  hidden words after each link
 * @param {(text: string) => any} [mark]  returns the content that replaces a text outside code
 * @returns {any[]}
 */
export const draw = (nodes, h, newTab = "", mark) =>
  nodes.map((each) => {
    if (typeof each === "string") return mark ? mark(each) : each;
    const kids = draw(each.kids, h, newTab, each.type === "code" || each.type === "pre" ? undefined : mark);
    return each.href === undefined ? h(TAGS[each.type], each.value === undefined ? null : { value: each.value }, ...kids) : drawLink(each, kids, h, newTab);
  });

/** Return a link, with its real host if its words are not the address. @param {Node} of @param {any[]} kids @param {(tag: any, props: any, ...children: any[]) => any} h @param {string} newTab */
function drawLink({ type, href = "", kids: words }, kids, h, newTab) {
  const { host, pathname } = new URL(href);
  const shown = textOf(words).trim();
  const place = host || pathname;
  const link = { href, target: "_blank", rel: "noopener noreferrer nofollow" };
  return [h("a", link, h("bdi", null, ...kids), newTab && h("span", { class: "hidden" }, newTab)), type === "url" || shown === href || shown === place ? null : h("bdi", { class: "host" }, ` (${place})`)];
}

/** Return the text of nodes. @param {readonly (Node | string)[]} nodes @returns {string} */
export const textOf = (nodes) => nodes.map((each) => (typeof each === "string" ? each : textOf(each.kids))).join("");
