// @ts-check
/** Files of messages and drafts: stored in this browser, and uploaded. */
import { t } from "./texts.js";
import { signal } from "../vendor/preact.js";
import { Offline, Problem, address, credentials, newKey, problemOf } from "./api.js";
import * as kept from "./outbox-store.js";
/** @import { OutgoingFile } from "./types.js" */

/** The files being uploaded, by key; `problem` is the reason of a failure. */
export const uploads = signal(/** @type {ReadonlyMap<string, OutgoingFile & {problem?: string}>} */ (new Map()));
/** @type {Map<string, Promise<string>>} */
const uploading = new Map();

/** @param {string} key @param {Partial<OutgoingFile & {problem?: string}>} changes */
function setProgress(key, changes) {
  const before = uploads.peek().get(key);
  if (before) uploads.value = new Map(uploads.peek()).set(key, { ...before, ...changes });
}

/**
 * Store a file for a message; `uploaded` sends it to the server.
 * @param {File|Blob} file @param {string} name @param {string} scope  the user's id and the project's @returns {Promise<OutgoingFile>}
 */
export async function attach(file, name, scope) {
  /** @type {OutgoingFile} */
  const made = { key: newKey(), name, type: file.type, size: file.size, progress: 0, uploadId: null };
  await kept.addFile(made.key, file, scope);
  return made;
}

/** Upload a file once, and return its id. Throws Problem or Offline. @param {OutgoingFile} file @returns {Promise<string>} */
export function uploaded(file) {
  const under = uploading.get(file.key);
  if (under) return under;
  uploads.value = new Map(uploads.peek()).set(file.key, file);
  const made = (async () => {
    const one = await kept.file(file.key);
    if (one?.uploadId) return one.uploadId;
    if (!one) throw new Problem(0, { code: "file_lost", detail: `${file.name} is no longer on this device.` }, null, null);
    const { id } = await upload(one.blob, file.name, (progress) => setProgress(file.key, { progress }));
    await kept.fileUploaded(file.key, id);
    return id;
  })();
  uploading.set(file.key, made);
  made.then(
    (id) => setProgress(file.key, { progress: 1, uploadId: id }),
    (error) => (uploading.delete(file.key), error instanceof Problem && setProgress(file.key, { problem: error.message })),
  );
  return made;
}

/** Return the ids of a message's files in order; uploads those that are missing. @param {readonly OutgoingFile[]} files @returns {Promise<string[]>} */
export async function idsOf(files) {
  const ids = [];
  for (const each of files) ids.push(each.uploadId ?? (await uploaded(each)));
  return ids;
}

/** Delete an attached file from this browser. @param {string} key */
export async function detach(key) {
  const left = new Map(uploads.peek());
  left.delete(key);
  uploads.value = left;
  uploading.delete(key);
  await kept.dropFile(key);
}

/**
 * Upload a file. `progress` gets 0 to 1. There is no timeout while data is being sent.
 * @param {Blob} file @param {string} name @param {(progress: number) => void} [progress] @param {AbortSignal} [abort]
 * @returns {Promise<{id: string, name: string, type: string, size: number, url: string}>}
 */
export function upload(file, name, progress, abort) {
  const form = new FormData();
  form.append("file", file, name);
  const request = new XMLHttpRequest(); // fetch does not report upload progress
  return new Promise((resolve, reject) => {
    request.open("POST", address("uploads"));
    if (credentials.project) request.setRequestHeader("project", credentials.project);
    request.upload.onprogress = (event) => progress?.(event.lengthComputable ? event.loaded / event.total : 0);
    request.onload = () => {
      const { status, responseText } = request;
      if (status < 300) resolve(JSON.parse(responseText));
      else reject(problemOf(status, responseText, (header) => request.getResponseHeader(header), "uploads"));
    };
    request.onerror = () => reject(new Offline(t.unanswered));
    request.onabort = () => reject(new DOMException("The upload was stopped.", "AbortError"));
    abort?.addEventListener("abort", () => request.abort());
    request.send(form);
  });
}
