// @ts-check
/** Texts in German, written by `make languages` from languages/de/inbox/split-texts.ftl. */
import { number } from "../core/texts.js";
import { plural } from "../core/text-forms.js";
/** @type {typeof import("../../../inbox/split-texts.js").t} */
export const t = {
here: "Neue Konversation ab hier …",
title: "Neue Konversation ab dieser Nachricht",
about: (name) => `${name} sieht eine neue Konversation, die mit diesen Nachrichten beginnt. Sie bleiben auch in dieser, und nichts wird noch einmal gesendet. „Rückgängig“ führt die beiden zusammen.`,
message: "Nachricht",
noText: "Eine Nachricht ohne Text",
subject: "Betreff",
which: "Nachrichten",
only: "Nur diese Nachricht",
onlyNote: (name) => `Mit einer Notiz allein kann keine Konversation beginnen, die ${name} sieht.`,
later: (n) => plural(n, { one: "Diese und die spätere (1 Nachricht)", other: `Diese und die späteren (${number(n)} Nachrichten)` }),
leftOut: (n) => plural(n, { one: "1 der späteren Nachrichten ist schon in einer anderen neuen Konversation und wird ausgelassen.", other: `${number(n)} der späteren Nachrichten sind schon in einer anderen neuen Konversation und werden ausgelassen.` }),
tooMany: (max, n) => `Nur die ersten ${number(max)} von ${number(n)} Nachrichten: Mit mehr kann eine Konversation nicht beginnen.`,
notesOnly: (name) => `Wählen Sie mindestens eine Nachricht, die ${name} sieht.`,
start: "Konversation beginnen",
started: (n) => plural(n, { one: "Neue Konversation mit 1 Nachricht.", other: `Neue Konversation mit ${number(n)} Nachrichten.` }),
what: "Neue Konversation",
undo: "Rückgängig",
undone: "Die neue Konversation ist mit dieser zusammengeführt.",
notUndone: (why) => `Die Konversationen konnten nicht wieder zusammengeführt werden: ${why}`,
noMessage: "In dieser Konversation ist keine Nachricht, mit der eine neue beginnen könnte.",
also: (name) => `Auch in „${name}“`,
alsoInAnother: "Auch in einer anderen Konversation",
from: (name) => `Begonnen aus „${name}“`,
fromAnother: "Begonnen aus einer anderen Konversation",
};
