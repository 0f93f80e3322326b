/** The errors of this SDK. All extend `DeskwireError`; a refusal of the service is an `APIError` of its status. */

/** A place in the request that the service refused. */
export interface InputError {
  /** `body`, `query` or `header`. */
  in?: string;
  /** A JSON pointer into the body, or to the parameter, such as `/contact/userId`. */
  pointer?: string;
  code?: string;
  message?: string;
  [field: string]: unknown;
}

/** Base of all errors of this SDK. */
export class DeskwireError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The call cannot be sent, because an argument is missing or unusable. No request was made. */
export class ArgumentError extends DeskwireError {}

/** No response arrived. The service may have carried out the call. */
export class ConnectionError extends DeskwireError {}

/** No response arrived within `timeoutMs`. */
export class TimeoutError extends ConnectionError {}

/** The service refused the call. */
export class APIError extends DeskwireError {
  /** The HTTP status. */
  readonly status: number;
  /** The stable code of the problem, such as `conversation_not_found`; null if a proxy answered. */
  readonly code: string | null;
  /** The explanation, for people. */
  readonly detail: string;
  /** Each refused field or parameter; the service lists the first 50. */
  readonly errors: readonly InputError[];
  /** The id of the request in the service's log. */
  readonly requestId: string | null;
  /** The address of the problem's explanation. */
  readonly type: string | null;
  /** Seconds after which the service accepts the call again, or null. */
  readonly retryAfterS: number | null;
  /** The whole problem document, with fields that this version of the SDK does not know. */
  readonly body: unknown;

  constructor(status: number, headers: Headers, text: string) {
    const body = parsed(text);
    const code = optionalText(body["code"]);
    const detail = optionalText(body["detail"]) ?? optionalText(body["title"]) ?? (text.slice(0, 200) || "no body");
    const errors = Array.isArray(body["errors"]) ? (body["errors"] as InputError[]) : [];
    super(`${status}${code === null ? "" : ` ${code}`}: ${detail}${listed(errors)}`);
    this.status = status;
    this.code = code;
    this.detail = detail;
    this.errors = errors;
    this.requestId = optionalText(body["requestId"]) ?? headers.get("X-Request-Id");
    this.type = optionalText(body["type"]);
    this.retryAfterS = retryAfter(headers);
    this.body = Object.keys(body).length ? body : text;
  }

  /** Return the error of a response: a subclass if its status has one. */
  static of(status: number, headers: Headers, text: string): APIError {
    return new (CLASSES.get(status) ?? (status >= 500 ? ServerError : APIError))(status, headers, text);
  }
}

/** 400: the request is malformed. */
export class BadRequestError extends APIError {}
/** 401: the credential is missing, wrong, expired or revoked. */
export class UnauthenticatedError extends APIError {}
/** 403: the credential lacks a permission. */
export class PermissionDeniedError extends APIError {}
/** 404: the object does not exist, or no longer. */
export class NotFoundError extends APIError {}
/** 409: the state of the object does not allow the call. */
export class ConflictError extends APIError {}
/** 410: it existed, for example an event that is no longer stored (`window_passed`). */
export class GoneError extends APIError {}
/** 412: the object has changed since the version that `ifMatch` names. */
export class PreconditionFailedError extends APIError {}
/** 413: the body is larger than the call accepts. */
export class TooLargeError extends APIError {}
/** 422: fields of the body have wrong values; `errors` lists them. */
export class ValidationError extends APIError {}
/** 429: too many calls; the retries are used up. */
export class RateLimitedError extends APIError {}
/** 5xx: the service could not answer properly; the retries are used up. */
export class ServerError extends APIError {}
/** 503: the service cannot carry out the call now; the retries are used up. */
export class ServiceUnavailableError extends ServerError {}

const CLASSES = new Map<number, typeof APIError>([
  [400, BadRequestError],
  [401, UnauthenticatedError],
  [403, PermissionDeniedError],
  [404, NotFoundError],
  [409, ConflictError],
  [410, GoneError],
  [412, PreconditionFailedError],
  [413, TooLargeError],
  [422, ValidationError],
  [429, RateLimitedError],
  [503, ServiceUnavailableError],
]);

/** True if the same call may succeed later: no response, 429, or 5xx. */
export function isOutage(error: unknown): boolean {
  if (error instanceof APIError) return error.status === 429 || error.status >= 500;
  return error instanceof ConnectionError;
}

/** Return the seconds of `Retry-After`, given as a number or as a date; null without one. */
export function retryAfter(headers: Headers): number | null {
  const value = headers.get("Retry-After");
  if (value === null) return null;
  if (/^\d+$/.test(value.trim())) return Number(value);
  const at = Date.parse(value);
  return Number.isNaN(at) ? null : Math.max(0, (at - Date.now()) / 1000);
}

function parsed(text: string): Record<string, unknown> {
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === "object" && body !== null ? (body as Record<string, unknown>) : {};
  } catch {
    return {}; // a proxy's page
  }
}

function optionalText(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

function listed(errors: readonly InputError[]): string {
  if (!errors.length) return "";
  const first = errors.slice(0, 3).map((each) => `${each.pointer ?? "?"} ${each.message ?? each.code ?? ""}`.trim());
  return ` (${first.join("; ")}${errors.length > 3 ? `; and ${errors.length - 3} more` : ""})`;
}
