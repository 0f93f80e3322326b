// The OpenID provider `oidc-provider` of the npm registry, with its own pages for signing in, consent and signing out.
//
// The argument is JSON with the client's metadata. Each line of the input is JSON with a person: `{"sub": …, …claims}`.
// The output has the issuer in its first line, then a line with `sub` for each person, and one for each logout that was reported to the
// client: `reported`, or `refused` with the reason. The process ends with its input.

import { generateKeyPairSync, randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import Provider from "oidc-provider";

const client = JSON.parse(process.argv[2]);
const people = new Map();
console.info = console.error; // its notices, which don't belong into the output
const say = (line) => process.stdout.write(`${line}\n`);

const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const key = { ...privateKey.export({ format: "jwk" }), kid: randomBytes(8).toString("hex"), alg: "RS256", use: "sig" };

const server = createServer();
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [client],
    jwks: { keys: [key] },
    cookies: { keys: [randomBytes(32).toString("hex")] },
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
    features: { backchannelLogout: { enabled: true } },
    findAccount: (_, id) => people.has(id) && { accountId: id, claims: () => people.get(id) },
    // The default refuses loopback addresses, which this client has.
    fetch: (url, { dispatcher, ...options }) => fetch(url, options),
  });
  provider.on("backchannel.success", () => say("reported"));
  provider.on("backchannel.error", (_, error) => say(`refused ${error.message}`));
  provider.on("server_error", (_, error) => console.error(error));
  server.on("request", provider.callback());
  say(issuer);
});

createInterface({ input: process.stdin })
  .on("line", (line) => {
    const person = JSON.parse(line);
    people.set(person.sub, person);
    say(person.sub);
  })
  .on("close", () => process.exit());
