// Play requests through the nodes of the n8n workflow that verify them and prepare the action: node n8n.mjs WORKFLOW < requests
// The code and the expressions are the workflow's own; Webhook, Crypto and IF are n8n's, and are reproduced here.

import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";

const workflow = JSON.parse(readFileSync(process.argv[2]));
const nodes = Object.fromEntries(workflow.nodes.map((node) => [node.name, node]));
const AsyncFunction = (async () => {}).constructor;

const run = async (name, json, raw) => {
  const helpers = { getBinaryDataBuffer: async () => raw };
  const code = new AsyncFunction("$input", nodes[name].parameters.jsCode);
  return (await code.call({ helpers }, { first: () => ({ json }) }))[0].json;
};

// A value that begins with = is a template whose {{ }} are expressions.
const value = (text, $json) => {
  if (!text.startsWith("=")) return text;
  return text.slice(1).replace(/\{\{(.*?)\}\}/gs, (_, expression) => Function("$json", `return (${expression})`)($json));
};

const play = async ({ headers, body, secret, now }) => {
  if (now !== undefined) Date.now = () => now * 1000;
  const read = await run("Read request", { headers }, Buffer.from(body, "base64"));
  const { value: signed, dataPropertyName, encoding } = nodes["Compute signature"].parameters;
  const signature = createHmac("sha256", secret).update(value(signed, read)).digest(encoding);
  const verdict = await run("Verify signature", { ...read, [dataPropertyName]: signature });
  if (!verdict.genuine) return { genuine: false };
  const condition = (name) => nodes[name].parameters.conditions.conditions[0].leftValue;
  if (value(condition("New conversation?"), verdict) !== "true") return { genuine: true };
  const { method, url, headerParameters, jsonBody } = nodes["Post message"].parameters;
  const sent = headerParameters.parameters.map((each) => [each.name, value(each.value, verdict)]);
  return { genuine: true, action: { method, url: value(url, verdict), headers: Object.fromEntries(sent), body: value(jsonBody, verdict) } };
};

const answers = [];
for (const request of JSON.parse(readFileSync(0))) answers.push(await play(request));
console.log(JSON.stringify(answers));
