// What the desk's modules find in a browser as they are loaded, for Node.js: no more than that.
globalThis.location = { pathname: "/desk", hash: "" };
globalThis.BroadcastChannel = undefined;
globalThis.addEventListener = () => {};
globalThis.desk = new URL("../../../../http/deskwire/http/pages/desk/", import.meta.url);

/** A small generator of random numbers, the same for the same seed (mulberry32). */
export function random(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}
