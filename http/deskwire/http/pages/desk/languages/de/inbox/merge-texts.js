// @ts-check
/** Texts in German, written by `make languages` from languages/de/inbox/merge-texts.ftl. */
import { number } from "../core/texts.js";
import { plural } from "../core/text-forms.js";
/** @type {typeof import("../../../inbox/merge-texts.js").t} */
export const t = {
title: "Mit einer anderen Konversation zusammenführen",
about: (name) => `Die Nachrichten von ${name} aus beiden Konversationen erscheinen in der, die Sie wählen. Keine Nachricht wird noch einmal gesendet, und Sie können es 30 Tage lang rückgängig machen.`,
find: "Eine Konversation dieses Kunden suchen",
none: "Dieser Kunde hat keine andere Konversation.",
noMatch: "Keine Konversation entspricht der Suche.",
loading: "Wird geladen …",
untitled: "Kein Betreff",
last: (words, day) => (!words ? day : `${words} · ${day}`),
merged: (name) => `Mit „${name}“ zusammengeführt.`,
what: "Konversationen zusammenführen",
undo: "Rückgängig",
undoMerge: "Zusammenführung rückgängig machen",
undone: "Die Konversationen sind wieder getrennt.",
failed: (why) => `Die Konversationen konnten nicht zusammengeführt werden: ${why}`,
notUndone: (why) => `Die Zusammenführung konnte nicht rückgängig gemacht werden: ${why}`,
banner: (day) => (!day ? "Diese Konversation ist zusammengeführt. Neue Nachrichten des Kunden gehen an die andere." : `Diese Konversation wurde am ${day} zusammengeführt. Neue Nachrichten des Kunden gehen an die andere.`),
openOther: "Die andere Konversation öffnen",
shows: (n) => plural(n, { one: "1 zusammengeführte Konversation", other: `${number(n)} zusammengeführte Konversationen` }),
from: (name) => `aus „${name}“`,
fromAnother: "aus einer anderen Konversation",
};
