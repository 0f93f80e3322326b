/** NDJSON exports as async iterables. */

import { DeskwireError } from "./errors.js";

/** The export ended before its last line: repeat it with the same `cursor`. */
export class ExportCutError extends DeskwireError {}

/** A deletion in an export: of the object with this id, of all messages of a conversation, or of all responses to a survey. */
export interface ExportDeletion {
  deleted: true;
  id?: string;
  conversationId?: string;
  surveyId?: string;
}

/** An export. Iterate it once; `nextCursor`, `exportedAt` and `deletions` are known after the last line. */
export class Export<T> implements AsyncIterable<T> {
  /** The `cursor` of the next export, which then has only the changes since this one. */
  nextCursor: string | null = null;
  exportedAt: string | null = null;
  /** False if more than 7 days have passed since the last export, so that this one lacks the deletions. */
  deletions: boolean | null = null;
  readonly #open: () => Promise<ReadableStream<Uint8Array>>;

  constructor(open: () => Promise<ReadableStream<Uint8Array>>) {
    this.#open = open;
  }

  /** Yield each object. Throws `ExportCutError` if the last line is missing. */
  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for await (const line of lines(await this.#open())) {
      if (isLastLine(line)) {
        this.nextCursor = line.nextCursor;
        this.exportedAt = line.exportedAt;
        this.deletions = line.deletions;
        return;
      }
      yield line as T;
    }
    throw new ExportCutError("The export ended before its last line: repeat it with the same cursor.");
  }
}

interface LastLine {
  nextCursor: string;
  exportedAt: string;
  deletions: boolean;
}

function isLastLine(line: unknown): line is LastLine {
  return typeof line === "object" && line !== null && "nextCursor" in line && "exportedAt" in line;
}

/** Yield the lines of a text in UTF-8; frees the connection if the caller stops early. */
export async function* textLines(body: ReadableStream<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      const parts = (rest + (done ? decoder.decode() : decoder.decode(value, { stream: true }))).split(/\r?\n/);
      rest = parts.pop() ?? "";
      yield* parts;
      if (done) break;
    }
    if (rest !== "") yield rest;
  } finally {
    await reader.cancel().catch(() => undefined); // nothing to free after the end, or after an error
  }
}

/** Yield the objects of an NDJSON body. Throws `ExportCutError` at a line that was cut. */
export async function* lines(body: ReadableStream<Uint8Array>): AsyncGenerator<unknown, void, undefined> {
  try {
    for await (const line of textLines(body)) if (line !== "") yield JSON.parse(line);
  } catch (cause) {
    // A broken connection, or half a line.
    if (cause instanceof SyntaxError || cause instanceof TypeError) {
      throw new ExportCutError("The export ended before its last line: repeat it with the same cursor.", { cause });
    }
    throw cause;
  }
}
