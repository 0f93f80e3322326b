// Print the verdicts of an example on the vectors: node vectors.mjs verify.mjs FILE

import { readFileSync } from "node:fs";

const { verify } = await import(process.argv[2]);
const vectors = JSON.parse(readFileSync(process.argv[3]));
console.log(JSON.stringify(vectors.map((v) => verify(v.secret, v.header, Buffer.from(v.body), v.now))));
