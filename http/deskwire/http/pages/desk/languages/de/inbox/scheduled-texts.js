// @ts-check
/** Texts in German, written by `make languages` from languages/de/inbox/scheduled-texts.ftl. */
import { number } from "../core/texts.js";
import { plural } from "../core/text-forms.js";
/** @type {typeof import("../../../inbox/scheduled-texts.js").t} */
export const t = {
title: "Später senden",
inAnHour: "In einer Stunde",
tomorrow: "Morgen früh",
monday: "Montag früh",
date: "Datum und Uhrzeit",
schedule: "Planen",
zone: (zone) => `Zeiten gelten in Ihrer Zeitzone, ${zone}.`,
inPast: "Dieser Zeitpunkt liegt in der Vergangenheit.",
tooFar: "Wählen Sie einen Zeitpunkt innerhalb eines Jahres.",
unlessReplied: (name) => (!name ? "Nicht senden, wenn der Kunde zuerst schreibt" : `Nicht senden, wenn ${name} zuerst schreibt`),
unlessRepliedText: "Dann kommt sie mit dem Grund zu Ihnen zurück.",
at: (at, zone) => `Geplant für ${at} (${zone})`,
sending: "Wird gesendet …",
onlyUnless: "Wird nicht gesendet, wenn der Kunde zuerst schreibt.",
closed: "Wird nicht gesendet, solange die Konversation geschlossen ist.",
label: "Geplante Antwort",
now: "Jetzt senden",
edit: "Bearbeiten",
cancel: "Abbrechen",
cancelled: "Abgebrochen. Die Antwort wird nicht gesendet.",
undo: "Rückgängig",
notScheduled: (why) => `Konnte nicht erneut geplant werden: ${why}`,
page: "Geplant",
none: "Nichts geplant",
noneText: "Schreiben Sie eine Antwort und wählen Sie neben „Senden“ die Option „Später senden“.",
refused: "Nicht gesendet",
next: "Wird gesendet",
loading: "Ihre geplanten Antworten werden geladen",
failed: "Ihre geplanten Antworten konnten nicht geladen werden",
to: (name) => `An ${name}`,
note: "Notiz",
files: (n) => plural(n, { one: `${number(n)} Datei`, other: `${number(n)} Dateien` }),
};
