// @ts-check
/** Texts in German, written by `make languages` from languages/de/inbox/list-reason-texts.ftl. */
import { number } from "../core/texts.js";
import { plural } from "../core/text-forms.js";
/** @type {typeof import("../../../inbox/list-reason-texts.js").t} */
export const t = {
in: (view) => `Warum sie in „${view}“ ist`,
notIn: (view) => `Warum sie nicht in „${view}“ ist`,
all: "Die Ansicht enthält jede Konversation, die nicht archiviert ist.",
travel: "Zeitreise",
archived: "Sie ist archiviert.",
status: {
OPEN: "Sie ist offen.",
PENDING: "Sie ist ausstehend.",
CLOSED: "Sie ist geschlossen.",
},
unassigned: "Sie ist nicht zugewiesen.",
assignedToYou: "Sie ist Ihnen zugewiesen.",
assignedTo: (name) => `Sie ist ${name} zugewiesen.`,
ofTeam: (name) => `Sie ist dem Team ${name} zugewiesen.`,
notOfTeam: (name) => `Sie ist nicht dem Team ${name} zugewiesen.`,
unread: (n) => plural(n, { one: `Sie hat ${number(n)} ungelesene Nachricht.`, other: `Sie hat ${number(n)} ungelesene Nachrichten.` }),
allSeen: "Sie hat keine ungelesenen Nachrichten.",
mentioned: "Eine Notiz erwähnt Sie.",
notMentioned: "Keine Notiz erwähnt Sie.",
followed: "Sie folgen ihr.",
notFollowed: "Sie folgen ihr nicht.",
tagged: (tag) => `Sie hat das Schlagwort ${tag}.`,
notTagged: (tag) => `Sie hat das Schlagwort ${tag} nicht.`,
snoozed: (until) => `Sie ist bis ${until} zurückgestellt.`,
notSnoozed: "Sie ist nicht zurückgestellt.",
further: "Sie erfüllt die übrigen Bedingungen des Filters.",
notFurther: "Sie ist nicht unter den Konversationen, die die übrigen Bedingungen des Filters erfüllen.",
visible: "Der Kontakt kann sie sehen.",
hidden: "Der Kontakt kann sie noch nicht sehen.",
waits: (since) => `Ihr Kontakt wartet seit ${since} auf eine Antwort.`,
answered: "Ihr Kontakt wartet nicht auf eine Antwort.",
unneeded: "Es wurde vermerkt, dass keine Antwort nötig ist.",
};
