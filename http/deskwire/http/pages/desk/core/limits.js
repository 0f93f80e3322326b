// @ts-check
/** Limits of a message, as the service has them. */

export const MESSAGE_TEXT_MAX = 20_000;
export const ATTACHMENTS_MAX = 10;
