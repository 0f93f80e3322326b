// Calls each operation once with a `fetch` that records the request; the operations come as JSON from the test.
import { readFileSync } from "node:fs";
import { Deskwire } from "deskwire-sdk";

interface Expected {
  name: string;
  segments: number;
  body: string | null;
}

const requests: string[] = [];
const client = new Deskwire({
  baseUrl: "http://localhost",
  apiKey: "sk_x",
  project: "prj_1",
  fetch: async (url, init) => {
    requests.push(`${init?.method} ${new URL(String(url)).pathname}`);
    return new Response('{"items": [], "nextCursor": null}');
  },
});

for (const { name, segments, body } of JSON.parse(readFileSync(process.argv[2] ?? "", "utf8")) as Expected[]) {
  const path = name.split(".");
  const method = path.pop() ?? "";
  const resource = path.reduce((found: any, part) => found[part], client);
  if (typeof resource[method] !== "function") throw new Error(`${name} is missing`);
  const params = body === "lines" ? [] : { file: { content: "x", name: "x" } };
  const result = resource[method](...Array.from({ length: segments }, (_, index) => index + 1), params);
  if (Symbol.asyncIterator in result) await result[Symbol.asyncIterator]().next().catch(() => undefined);
  else await result;
}
console.log(JSON.stringify(requests));
