// @ts-check
/** Texts in German, written by `make languages` from languages/de/inbox/first-steps-texts.ftl. */
import { number } from "../core/texts.js";
/** @type {typeof import("../../../inbox/first-steps-texts.js").t} */
export const t = {
title: "Erste Schritte",
done: "erledigt",
hide: "Für alle ausblenden",
hidden: "Für alle in diesem Projekt ausgeblendet. In den Einstellungen des Projekts blenden Sie die Liste wieder ein.",
shown: "Alle in diesem Projekt sehen die Liste wieder.",
failed: (reason) => `Das ließ sich nicht ändern: ${reason}`,
undo: "Rückgängig",
left: (done, all) => `${number(done)} von ${number(all)} erledigt`,
steps: {
chat: {
title: "Binden Sie den Chat in Ihre Website ein",
text: "Erstellen Sie einen Kanal und fügen Sie seine zwei Zeilen in Ihre Seiten ein. Erledigt, sobald ein Kunde den Chat öffnet.",
},
colleague: {
title: "Laden Sie jemanden aus dem Team ein",
text: "Die Person erhält einen Link und wählt ein eigenes Passwort.",
},
history: {
title: "Importieren Sie Ihre bisherigen Konversationen",
text: "Erstellen Sie einen Serverschlüssel und führen Sie „deskwire import“ mit dem Export Ihres bisherigen Systems aus.",
},
webhook: {
title: "Binden Sie Ihr Backend an",
text: "Fügen Sie einen Webhook hinzu, um über jede Nachricht informiert zu werden.",
},
secondFactor: {
title: "Schützen Sie Ihr Konto",
text: "Fügen Sie eine Authenticator-App oder einen Passkey als zweiten Faktor hinzu.",
},
},
};
