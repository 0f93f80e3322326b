// @ts-check
/** Texts in English, written by `make languages` from languages/en/inbox/split-texts.ftl. */
import { number } from "../core/texts.js";
import { plural } from "../core/text-forms.js";
export const t = {
here: "New conversation from here…",
title: "New conversation from this message",
about: (/** @type {string} */ name) => `${name} sees a new conversation that begins with these messages. They stay in this one, too, and nothing is sent again. Undo merges the two.`,
message: "Message",
noText: "A message without text",
subject: "Subject",
which: "Messages",
only: "Only this message",
onlyNote: (/** @type {string} */ name) => `A note alone can't start a conversation that ${name} sees.`,
later: (/** @type {number} */ n) => plural(n, { one: "This and the later one (1 message)", other: `This and the later ones (${number(n)} messages)` }),
leftOut: (/** @type {number} */ n) => plural(n, { one: "1 of the later messages is in another new conversation already and is left out.", other: `${number(n)} of the later messages are in another new conversation already and are left out.` }),
tooMany: (/** @type {number} */ max, /** @type {number} */ n) => `Only the first ${number(max)} of ${number(n)} messages, because a conversation can start with ${number(max)} at most.`,
notesOnly: (/** @type {string} */ name) => `Choose at least one message that ${name} sees.`,
start: "Start the conversation",
started: (/** @type {number} */ n) => plural(n, { one: "New conversation with 1 message.", other: `New conversation with ${number(n)} messages.` }),
what: "New conversation",
undo: "Undo",
undone: "The new conversation is merged into this one.",
notUndone: (/** @type {string} */ why) => `Couldn't merge the conversations again: ${why}`,
noMessage: "This conversation has no message that a new one could start with.",
also: (/** @type {string} */ name) => `Also in “${name}”`,
alsoInAnother: "Also in another conversation",
from: (/** @type {string} */ name) => `Started from “${name}”`,
fromAnother: "Started from another conversation",
};
