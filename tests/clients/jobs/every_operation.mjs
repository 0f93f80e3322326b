// Calls every recorded operation with the compiled client: `node every_operation.mjs CLIENT URL TOKEN CASSETTE`.
// Prints JSON: for each call and each event its error, or the answer in the client's own JSON.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [path, basePath, accessToken, cassette] = process.argv.slice(2);
const client = await import(pathToFileURL(path));
const tour = JSON.parse(readFileSync(cassette, "utf8"));
const configuration = new client.Configuration({ basePath, accessToken });

// The generator writes the names of parameters in camel case, and marks words of the language.
const RESERVED = new Set(["in"]);
const named = (name) => {
  const camel = name.replace(/[-_](\w)/g, (_, letter) => letter.toUpperCase());
  const first = camel[0].toLowerCase() + camel.slice(1);
  return RESERVED.has(first) ? `_${first}` : first;
};

const methods = {};
for (const [name, kind] of Object.entries(client)) {
  if (!name.endsWith("Api") || typeof kind !== "function") continue;
  const api = new kind(configuration);
  for (const each of Object.getOwnPropertyNames(kind.prototype)) {
    if (!each.endsWith("Raw") && each !== "constructor") methods[each] = api[each].bind(api);
  }
}

function given(exchange) {
  const found = {};
  for (const { name, value, format } of exchange.parameters) {
    found[named(name)] = format === "date-time" ? new Date(value) : value;
  }
  if (exchange.has_body) found.body = client[`${exchange.request_model}FromJSON`](exchange.body);
  return found;
}

// Returns a model's JSON after it was written, read and written again.
function survived(model, value) {
  if (value === undefined || !client[`${model}ToJSON`]) return value ?? null;
  const written = () => JSON.stringify(client[`${model}ToJSON`](value));
  const first = written();
  value = client[`${model}FromJSON`](JSON.parse(first));
  if (written() !== first) throw new Error("it differs after its own JSON");
  return JSON.parse(first, withoutMarks);
}

// Beside a field whose name is a word of the language the client also writes the marked one: `goto` and `_goto`.
function withoutMarks(_, value) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
  const marked = ([name, each]) => name.startsWith("_") && value[name.slice(1)] === each;
  return Object.fromEntries(Object.entries(value).filter((each) => !marked(each)));
}

async function outcome(act) {
  try {
    return { answer: await act() };
  } catch (error) {
    const text = error.response ? ` ${error.response.status} ${error.response.url}` : "";
    return { error: `${error.name}: ${error.message}${text}` };
  }
}

const found = {};
for (const each of tour.exchanges) {
  found[each.name] = await outcome(async () =>
    survived(each.response_model, await methods[each.operation](given(each))),
  );
}
for (const each of tour.events) {
  found[each.name] = await outcome(() => survived(each.model, client[`${each.model}FromJSON`](each.body)));
}
console.log(JSON.stringify(found));
