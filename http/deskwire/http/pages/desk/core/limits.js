// @ts-check
/** Limits of a message. They are the same as in the service. */

export const MESSAGE_TEXT_MAX = 20_000;
export const ATTACHMENTS_MAX = 10;
/** Users and teams that a note can mention. */
export const MENTIONS_MAX = 20;
