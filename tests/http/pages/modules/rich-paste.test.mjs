import assert from "node:assert/strict";
import { test } from "node:test";
import { random } from "./browser.mjs";

const { toMarkdown } = await import(new URL("inbox/rich-paste.js", desk));
const { parse, textOf } = await import(new URL("core/markdown.js", desk));

test("formatting of a page becomes Markdown", () => {
  const cases = {
    "<p>Hello <b>Ada</b>, <i>it</i> left.</p><p>Bye</p>": "Hello **Ada**, _it_ left.\n\nBye",
    "<meta charset='utf-8'><strong>bold </strong>word": "**bold** word",
    '<a href="https://a.example/x_(y)">here</a>': "[here](https://a.example/x_%28y%29)",
    '<a href="https://a.example/x">https://a.example/x</a>': "https://a.example/x",
    "<ul><li>one</li><li>two<ol><li>deep</li></ol></li></ul>": "- one\n- two\n  1. deep",
    '<ol start="3"><li>c</li><li><p>d</p></li></ol>': "3. c\n4. d",
    "<blockquote><p>asked</p><p>again</p></blockquote>answer": "> asked\n>\n> again\n\nanswer",
    "<pre><code>let a = `b`;\n  c &lt; d</code></pre>": "```\nlet a = `b`;\n  c < d\n```",
    "<h2>Title</h2><p>text</p>": "**Title**\n\ntext",
    "<div>a</div><div>b</div><div><br></div><div>c</div>": "a\nb\nc",
    "use <code>a ` b</code>": "use `` a ` b ``",
    '<b style="font-weight:normal"><p><span style="font-weight:700">x</span> <span style="font-style:italic">y</span></p></b>': "**x** _y_",
    "<table><tr><td>a</td><td>b</td></tr><tr><td>c</td><td>d</td></tr></table>": "a\tb\n\nc\td",
    "a<br>b": "a\nb",
  };
  for (const [html, markdown] of Object.entries(cases)) assert.equal(toMarkdown(html), markdown, html);
});

test("scripts, styles and comments vanish, other elements leave their words", () => {
  assert.equal(toMarkdown("<style>p{}</style><script>alert(1)</script><!-- x --><custom-tag onclick='a'>words</custom-tag><img src=x onerror=alert(1)>"), "words");
  assert.equal(toMarkdown('<a href="javascript:alert(1)">x</a><a href="java&#115;cript:a">y</a><a href=" https://u:p@a.example">z</a>'), "xyz");
});

test("characters of the text that would be markup are escaped", () => {
  for (const text of ["*not bold*", "2 * 3 * 4", "snake_case _x_", "`code`", "[a](https://b.example)", "a <https://b.example>", "- no item", "1. no item", "> no quote", "C:\\dir"]) {
    const shown = textOf(parse(toMarkdown(`<p>${text.replaceAll("<", "&lt;")}</p>`)));
    assert.equal(shown.replace(/\\/g, ""), text.replace(/\\/g, ""));
    assert.ok(parse(toMarkdown(`<p>${text.replaceAll("<", "&lt;")}</p>`)).every(({ type, kids }) => type === "p" && kids.every((each) => typeof each === "string" || each.type === "url")), text);
  }
});

test("hostile and broken HTML is read to its end, and loses no word", () => {
  const words = (html) => html.match(/word\d+/g)?.length ?? 0;
  for (const [name, html] of Object.entries({ nested: "<div><b>".repeat(20_000) + "word1", unclosed: "<b word1".repeat(20_000), angles: "< ".repeat(50_000) + "word1", quotes: '<a href="'.repeat(20_000) + "word1", comments: "<!--".repeat(50_000), closings: "</b>".repeat(50_000) + "word1", lists: "<ul><li>".repeat(10_000) + "word1" })) {
    const found = toMarkdown(html);
    toMarkdown(html.repeat(10)); // time that grows with the square would be minutes, and the runner ends tests that hang
    if (["nested", "closings", "lists", "angles"].includes(name)) assert.equal(words(found), 1, name);
  }
  const next = random(7);
  const tags = ["b", "/b", "p", "/p", "ul", "/ul", "li", "/li", "i", "/i", "pre", "/pre", "blockquote", "/blockquote", "br", "code", "/code", "span style='font-weight:700'", "/span", "div", "/div", 'a href="https://a.example"', "/a"];
  for (let round = 0; round < 5_000; round += 1) {
    let n = 0;
    const html = Array.from({ length: 30 }, () => (next() < 0.6 ? `<${tags[Math.floor(next() * tags.length)]}>` : ` word${(n += 1)} `)).join("");
    const shown = textOf(parse(toMarkdown(html))).match(/word\d+/g) ?? [];
    assert.deepEqual(shown, html.match(/word\d+/g) ?? [], `${html} gave ${toMarkdown(html)}`);
  }
});
