// @ts-check
/** Texts in English, written by `make languages` from languages/en/inbox/merge-texts.ftl. */
import { number } from "../core/texts.js";
import { plural } from "../core/text-forms.js";
export const t = {
title: "Merge into another conversation",
about: (/** @type {string} */ name) => `${name}'s messages from both appear in the one that you choose. No message is sent again, and you can undo it for 30 days.`,
find: "Find a conversation of this customer",
none: "This customer has no other conversation.",
noMatch: "No conversation matches.",
loading: "Loading…",
untitled: "No subject",
last: (/** @type {string | null | undefined} */ words, /** @type {string} */ day) => (!words ? day : `${words} · ${day}`),
merged: (/** @type {string} */ name) => `Merged into “${name}”.`,
what: "Merge conversations",
undo: "Undo",
undoMerge: "Undo the merge",
undone: "The conversations are separate again.",
failed: (/** @type {string} */ why) => `Couldn't merge the conversations: ${why}`,
notUndone: (/** @type {string} */ why) => `Couldn't undo the merge: ${why}`,
banner: (/** @type {string | null | undefined} */ day) => (!day ? "This conversation is merged. New messages from the customer go to the other one." : `This conversation was merged on ${day}. New messages from the customer go to the other one.`),
openOther: "Open the other conversation",
shows: (/** @type {number} */ n) => plural(n, { one: "1 merged conversation", other: `${number(n)} merged conversations` }),
from: (/** @type {string} */ name) => `from “${name}”`,
fromAnother: "from another conversation",
};
