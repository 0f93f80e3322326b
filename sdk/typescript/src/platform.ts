/** Differences of the platforms: WebCrypto of Node 18, the environment, and pauses that a signal ends. */

/** Return WebCrypto. Node 18 has it only as a module; the other platforms have a global. */
export async function webCrypto(): Promise<Crypto> {
  const global = globalThis.crypto as Crypto | undefined;
  if (global !== undefined) return global;
  const name = "node:crypto"; // not a literal, because bundlers for browsers try to resolve one
  const module = (await import(/* @vite-ignore */ /* webpackIgnore: true */ name)) as { webcrypto: Crypto };
  return module.webcrypto;
}

/** Return 128 random bits in hex. `crypto.randomUUID` is missing in pages without TLS. */
export async function randomId(): Promise<string> {
  const bytes = (await webCrypto()).getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (each) => each.toString(16).padStart(2, "0")).join("");
}

/** Wait; reject with the signal's reason if it aborts before. */
export function pause(ms: number, signal?: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const abort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", abort, { once: true });
  });
}

/** Return a variable of the environment; undefined where there is none, or where Deno may not read it. */
export function environment(name: string): string | undefined {
  try {
    return (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env?.[name];
  } catch {
    return undefined;
  }
}

/** True in a page or worker of a browser; false in Node, Deno, Bun and the workers of servers. */
export function inBrowser(): boolean {
  const { process, Deno, navigator } = globalThis as {
    process?: { versions?: { node?: string } }; // bundlers give pages one without versions
    Deno?: unknown;
    navigator?: { userAgent?: string };
  };
  const onServer = process?.versions?.node !== undefined || Deno !== undefined;
  return !onServer && (navigator?.userAgent ?? "").startsWith("Mozilla/");
}
