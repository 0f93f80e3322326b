// Builds the widget's panel: one minified module with its style sheet, and one for the views that are loaded later.
// `node widget.mjs <folder>` writes the files of `http/deskwire/http/pages/widget` to the folder.
//
// Customers pay for each byte, so templates become calls of `h` here, and only the used parts of the desk's vendored library are
// taken, from the same packages.
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import htm from "htm";
import ts from "typescript";

const HERE = dirname(fileURLToPath(import.meta.url));
const PAGES = join(HERE, "../../../http/deskwire/http/pages/widget");
const LIBRARY = `export { h, render } from "preact";
export { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
export const html = null; // no template is left`;

/** An expression of a template. As a spread it becomes a property of its own kind. */
class Hole {
  constructor(code) {
    this[Symbol(code)] = this;
  }
  toString() {
    throw new Error("An expression must be the whole value of an attribute, or a child.");
  }
}
class Code {
  constructor(text) {
    this.text = text;
  }
}
const holeCode = (hole) => Object.getOwnPropertySymbols(hole)[0].description;
const codeOf = (value) => (value instanceof Code ? value.text : value instanceof Hole ? holeCode(value) : JSON.stringify(value));

/** Return the code of an element, as htm has parsed it. */
function element(tag, props, ...children) {
  const named = Object.entries(props ?? {}).map(([name, value]) => `${JSON.stringify(name)}: ${codeOf(value)}`);
  const spread = props ? Object.getOwnPropertySymbols(props).map((each) => `...${each.description}`) : [];
  const given = named.length + spread.length ? `{${[...named, ...spread].join(", ")}}` : "null";
  return new Code(`h(${[codeOf(tag), given, ...children.map(codeOf)].join(", ")})`);
}
const parse = htm.bind(element);

/** Return the source of a node with calls in place of its templates. */
function compiled(node, source) {
  const parts = [];
  let end = node.getStart(source);
  const visit = (each) => {
    if (!ts.isTaggedTemplateExpression(each) || each.tag.getText(source) !== "html") return ts.forEachChild(each, visit);
    const { template } = each;
    const spans = template.templateSpans ?? [];
    const texts = [template.head?.text ?? template.text, ...spans.map(({ literal }) => literal.text)];
    const made = parse(texts, ...spans.map(({ expression }) => new Hole(compiled(expression, source))));
    parts.push(source.text.slice(end, each.getStart(source)), Array.isArray(made) ? `[${made.map(codeOf).join(", ")}]` : codeOf(made));
    end = each.end;
  };
  visit(node);
  return parts.join("") + source.text.slice(end, node.end);
}

const templates = {
  name: "templates",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /desk\/vendor\/preact\.js$/ }, () => ({ path: "library", namespace: "widget" }));
    onLoad({ filter: /.*/, namespace: "widget" }, () => ({ contents: LIBRARY, resolveDir: HERE }));
    onLoad({ filter: /widget\/[\w-]+\.js$/ }, async ({ path }) => {
      const text = await readFile(path, "utf8");
      const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
      const library = text.includes("html`") && !/^import \{ h,/m.test(text) ? 'import { h } from "../desk/vendor/preact.js";\n' : "";
      return { contents: library + compiled(source, source) };
    });
  },
};

await build({
  absWorkingDir: PAGES,
  entryPoints: ["panel.js", "panel.css"],
  outdir: process.argv[2],
  bundle: true,
  splitting: true,
  minify: true,
  format: "esm",
  target: ["es2022", "chrome123", "firefox120", "safari17.5"],
  legalComments: "none",
  logLevel: "warning",
  plugins: [templates],
});
