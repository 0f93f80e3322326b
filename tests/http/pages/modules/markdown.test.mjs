import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { random } from "./browser.mjs";

const { draw, hasMarkup, parse, textOf } = await import(new URL("core/markdown.js", desk));
const { DEPTH_MAX, safeAddress } = await import(new URL("core/markdown-inline.js", desk));

/** The elements of a text, as the pages make them. */
const h = (tag, props, ...kids) => ({ tag, props: props ?? {}, kids: kids.flat(Infinity).filter((each) => each !== null && each !== "") });
const drawn = (text) => draw(parse(text), h).flat(Infinity);
function* elements(nodes) {
  for (const each of nodes) if (typeof each !== "string") (yield each, yield* elements(each.kids));
}
const shown = (nodes) => nodes.map((each) => (typeof each === "string" ? each : each.props.class === "host" ? "" : shown(each.kids))).join("");
const depth = (nodes) => Math.max(0, ...nodes.map((each) => (typeof each === "string" ? 0 : 1 + depth(each.kids))));

// CommonMark's own examples.

const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
const source = (nodes) =>
  nodes
    .map((each) => {
      if (typeof each === "string") return escaped(each);
      if (each.tag === "bdi") return each.props.class ? "" : source(each.kids);
      return `<${each.tag}${each.props.href ? ` href="${escaped(each.props.href)}"` : ""}>${source(each.kids)}</${each.tag}>`;
    })
    .join("");
/** HTML without differences that nobody sees: paragraphs of items, spaces at the ends of lines, classes and numbers of lists. */
const comparable = (html) =>
  html
    .replace(/<br \/>\n?/g, "\n")
    .replace(/<pre>(?:<code[^>]*>)?([^]*?)(?:\n?<\/code>)?<\/pre>/g, (_, code) => `<pre>${code.replace(/\n/g, "␤")}</pre>`)
    .replace(/<ol start="\d+">/g, "<ol>")
    .replace(/<\/?p>/g, "¶")
    .replace(/\s*\n\s*/g, "\n")
    .replace(/\n*(<\/?(?:ul|ol|li|blockquote|pre)>)\n*/g, "$1")
    .replace(/¶*(<\/?li>)¶*/g, "$1")
    .replace(/¶+\n*¶*/g, "¶")
    .replace(/¶*(<\/?(?:ul|ol|blockquote|pre)>)¶*/g, "$1")
    .replace(/^[¶\n ]+|[¶\n ]+$/g, "")
    .replace(/¶\n|\n¶/g, "¶")
    .replace(/ +(?=\n|¶|<\/)/g, "");

test("the examples of CommonMark's specification look as they should, or differ for a known reason", () => {
  const { different, examples } = JSON.parse(readFileSync(new URL("commonmark.json", import.meta.url), "utf8"));
  const known = new Map(Object.entries(different).flatMap(([reason, numbers]) => numbers.map((each) => [each, reason])));
  const equal = examples.filter(([number, markdown, html]) => {
    const ours = comparable(source(drawn(markdown.replace(/\]\((<?)\//g, "]($1https://e.x/"))));
    const same = ours === comparable(html.replace(/href="\//g, 'href="https://e.x/'));
    assert.equal(same, !known.has(number), `example ${number}, ${known.get(number) ?? "must be equal"}: ${ours}`);
    return same;
  });
  assert.ok(equal.length > 270, String(equal.length));
});

// Hostile texts.

const TAGS = new Set(["p", "blockquote", "ul", "ol", "li", "strong", "em", "a", "code", "pre", "bdi"]);
const PROPS = { a: ["href", "target", "rel"], li: ["value"], bdi: ["class"] };

function assertSafe(text) {
  const nodes = drawn(text);
  assert.ok(depth(nodes) <= 3 * DEPTH_MAX + 4);
  for (const { tag, props } of elements(nodes)) {
    assert.ok(TAGS.has(tag), tag);
    for (const name of Object.keys(props)) assert.ok(PROPS[tag]?.includes(name), `${tag} ${name}`);
    if (tag !== "a") continue;
    const { protocol, username } = new URL(props.href);
    assert.ok(["http:", "https:", "mailto:"].includes(protocol) && !username, props.href);
    assert.deepEqual([props.target, props.rel], ["_blank", "noopener noreferrer nofollow"]);
  }
  return nodes;
}

test("addresses of scripts, data and users make no link", () => {
  const bad = ["javascript:alert(1)", "JaVaScRiPt:alert(1)", "java\tscript:alert(1)", "\u0001javascript:alert(1)", "javascript&colon;alert(1)", "java&#115;cript:alert(1)", "data:text/html,<script>alert(1)</script>", "vbscript:x", "file:///etc/passwd", "//evil.example", "/v3/users/me", "https:evil.example", "https://paypal.example@evil.example", "https://a:b@c.example", "https://", "http://[", "blob:https://a.example/1", "https://a.example/\u202egpj.exe", `https://a.example/${"x".repeat(3000)}`];
  for (const each of bad) {
    assert.equal(safeAddress(each), null, each);
    for (const text of [`[x](${each})`, `[x](<${each}>)`, `<${each}>`, `![x](${each})`]) for (const { tag, props } of elements(assertSafe(text))) assert.ok(tag !== "a" || !props.href.includes("javascript"), text);
  }
  assert.equal(safeAddress("HTTPS://Example.COM/a b"), null);
  assert.equal(safeAddress("HTTPS://Example.COM/a"), "https://example.com/a");
  assert.equal(safeAddress("mailto:ada@example.org"), "mailto:ada@example.org");
});

test("a link shows its real host unless its words are the address", () => {
  const host = (text) => [...elements(drawn(text))].filter((each) => each.props.class === "host").map((each) => each.kids.join(""));
  assert.deepEqual(host("[your bank](https://evil.example/login)"), [" (evil.example)"]);
  assert.deepEqual(host("[https://bank.example](https://evil.example)"), [" (evil.example)"]);
  assert.deepEqual(host("[bank.example](https://bank.example/login)"), []);
  assert.deepEqual(host("[b\u0430nk.example](https://b\u0430nk.example)"), [" (xn--bnk-6cd.example)"]);
  assert.deepEqual(host("[write](mailto:ada%ff@example.org)"), [" (ada%ff@example.org)"]);
  assert.deepEqual(host("https://bank.example <https://a.example>"), []);
});

test("HTML and entities are text", () => {
  for (const text of ["<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<svg/onload=alert(1)>", "&lt;b&gt; &#60;i&#62; &amp;", "<!-- x -->", "<a href=x>y</a>"]) {
    assert.equal(shown(drawn(text)), text);
    assert.deepEqual([...elements(drawn(text))].map((each) => each.tag), ["p"]);
  }
});

const MANY = 10_000;
const HOSTILE = {
  "quotes in quotes": ">".repeat(MANY),
  "items in items": "- ".repeat(MANY),
  "items in items, indented": Array.from({ length: 600 }, (_, i) => `${" ".repeat(2 * i)}- a`).join("\n"),
  "emphasis in emphasis": "*a ".repeat(MANY) + "*".repeat(MANY),
  "strong in strong": "**a ".repeat(MANY) + " b**".repeat(MANY),
  "asterisks": "*".repeat(MANY * 5) + "a" + "*".repeat(MANY * 5),
  "asterisks and underscores": "*_".repeat(MANY) + "a" + "_*".repeat(MANY),
  "ends without a start": "a* ".repeat(MANY * 3),
  "starts of two kinds": "*a_ ".repeat(MANY * 3),
  "brackets": "[".repeat(MANY * 5) + "]".repeat(MANY * 5),
  "links in links": "[".repeat(MANY) + "a" + "](https://a.example)".repeat(MANY),
  "links without an end": "[a](https://".repeat(MANY),
  "enclosed addresses without an end": "[a](<b".repeat(MANY),
  "brackets in addresses": "[a](".repeat(MANY) + ")".repeat(MANY),
  "backticks of growing length": Array.from({ length: 600 }, (_, i) => "`".repeat(i)).join(" "),
  "backticks": "`a``b".repeat(MANY),
  "angles": "<".repeat(MANY * 5),
  "addresses": "https://-".repeat(MANY),
  "addresses of users": "https://a@b.example/-".repeat(MANY),
  "brackets after an address": `https://a.example/${")".repeat(MANY * 5)}`,
  "backslashes": "\\".repeat(MANY * 5),
  "blank lines": "\n".repeat(MANY * 5),
  "fences": "```\n".repeat(MANY),
  "numbers": "1".repeat(MANY * 5),
  "spaces": " ".repeat(MANY * 5) + "a",
  "tabs": "\t".repeat(MANY * 5) + "a",
  "rules": "- ".repeat(MANY) + "a\n" + "* ".repeat(MANY),
  "letters that may begin an address": "h".repeat(MANY * 5),
};

// Forty times the text, too: time that grows with the square would be minutes, and the runner ends tests that hang.
for (const [name, text] of Object.entries(HOSTILE))
  test(`${name}: parsed in linear time, and nested at most so deep`, () => {
    assertSafe(text);
    hasMarkup(text);
    drawn(Array(40).fill(text).join("\n\n"));
  });

// Any text.

const PIECES = ["*", "**", "_", "__", "***", "`", "``", "```\n", "~~~\n", "[", "]", "](https://a.example)", "](javascript:a)", "(", ")", "<", ">", "> ", "- ", "1. ", "7) ", "+ ", "\n", "\n\n", "  ", "    ", "\t", "\\", "https://b.example/x_y*z", "&amp;", "\u202e", "\u{1f600}", "é", "|", "#", "!", "\r\n"];

function anyText(next, words) {
  const parts = [];
  for (let i = Math.floor(next() * 40); i >= 0; i -= 1) parts.push(next() < 0.5 ? PIECES[Math.floor(next() * PIECES.length)] : `word${words.push(`word${words.length}`) - 1}x`);
  return parts.join(next() < 0.5 ? "" : " ");
}

test("any text makes listed elements only, and no word of it vanishes, changes or moves", () => {
  const next = random(20261129);
  for (let round = 0; round < 8_000; round += 1) {
    const words = [];
    const text = anyText(next, words);
    const seen = shown(assertSafe(text));
    const expected = text.match(/word\d+x/g) ?? [];
    // words after a fence are the name of a language
    const language = [...text.matchAll(/(?:`{3,}|~{3,})([\w+#.-]{0,20})[ \t]*(?=[\r\n]|$)/g)].flatMap((each) => each[1].match(/word\d+x/g) ?? []);
    const left = seen.match(/word\d+x/g) ?? [];
    assert.deepEqual(left, expected.filter((each) => left.includes(each)), JSON.stringify(text));
    for (const each of expected) assert.ok(left.includes(each) || language.includes(each), `${each} in ${JSON.stringify(text)}`);
    let at = 0;
    for (const letter of seen.replace(/\s/g, "")) ((at = text.indexOf(letter, at) + 1), assert.ok(at > 0, JSON.stringify(text)));
  }
});

test("plain texts have no markup, and look the same with it", () => {
  for (const text of ["Hello", "a\n\n\nb", "2 * 3 * 4", "snake_case_name and __init__x", "C:\\Users\\ada \\\\server\\share", "https://a.example/b_c_d?e=*f", "5 > 3", "-- \nGrace", "#1 is done", "a | b", "(*)", "1.5 and 3.\nx", "~/.config", "`", "* * *", "[x] y", "don't ``"]) {
    assert.equal(hasMarkup(text), false, text);
    assert.equal(shown(drawn(text)).replace(/\s/g, ""), text.replace(/\s/g, ""));
  }
  for (const text of ["*a*", "**a**", "`a`", "- a", "1. a", "> a", "[a](https://b.example)", "```\na\n```", "\\*a\\*", "a\n- b", "<https://a.example>"]) assert.equal(hasMarkup(text), true, text);
});

test("line breaks stay, and an answer below a quote is not part of it", () => {
  assert.equal(source(drawn("a\nb")), "<p>a\nb</p>");
  assert.equal(source(drawn("> asked\nanswered")), "<blockquote><p>asked</p></blockquote><p>answered</p>");
  assert.deepEqual([...elements(drawn("3. a\n7. b"))].filter((each) => each.tag === "li").map((each) => each.props.value), [3, 7]);
});

test("texts of nodes are their texts in order", () => assert.equal(textOf(parse("a *b `c`* [d](https://e.example)")), "a b c d"));

// Mentions in notes.

test("texts are marked, also in other markup, and code is not", () => {
  const mark = (text) => text.toUpperCase();
  const marked = draw(parse("Ask **@Grace** about `@Grace`\n\n```\n@Grace\n```"), h, "", mark).flat(Infinity);
  assert.equal(shown(marked).replace(/\s+/g, " "), "ASK @GRACE ABOUT @Grace@Grace");
});
