/** Server-sent events of a response, as the agents' stream sends them. */

import { textLines } from "./exports.js";

export interface ServerSentEvent {
  event: string;
  /** The payload as text, JSON in this service. */
  data: string;
  /** The id to continue after, as `Last-Event-ID`; null without one. */
  id: string | null;
}

/** Yield each event (HTML Living Standard, 9.2.6). Comments and retry times are skipped. */
export async function* serverSentEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerSentEvent, void, undefined> {
  let id: string | null = null;
  let event = "";
  let data: string[] = [];
  for await (const line of textLines(body)) {
    if (line === "") {
      if (data.length) yield { event: event || "message", data: data.join("\n"), id };
      event = "";
      data = [];
      continue;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") event = value;
    else if (field === "data") data.push(value);
    else if (field === "id" && !value.includes("\0")) id = value;
  }
}
