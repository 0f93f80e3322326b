/** The client. */

import { Resources } from "./resources.js";
import { Transport, type DeskwireOptions, type RequestOptions } from "./transport.js";

/**
 * A client of the service.
 *
 * @example
 * const deskwire = new Deskwire({ baseUrl: "https://support.example.com", apiKey: process.env.DESKWIRE_KEY });
 * const conversation = await deskwire.conversations.create({ contact: { userId: "u1" } });
 */
export class Deskwire extends Resources {
  /** The address of the service, without `/v3`. */
  readonly baseUrl: string;

  readonly #transport: Transport;

  /** Throws `ArgumentError` if `baseUrl` is no address, or if a server key is given in a browser. */
  constructor(options: DeskwireOptions = {}) {
    const transport = new Transport(options);
    super(transport);
    this.#transport = transport;
    this.baseUrl = transport.baseUrl;
  }

  /** Make a call that this version has no method for, such as `request("GET", "/v3/s2s/project")`; return its JSON. */
  request<T = unknown>(method: string, path: string, params: { query?: object; body?: unknown } = {}, options?: RequestOptions): Promise<T> {
    // A key on a call that takes none is ignored.
    const call = { name: `${method} ${path}`, method, path, ...params, credential: true, project: true, idempotent: method === "POST" };
    return this.#transport.json<T>(call, options);
  }
}
