// @ts-check
/** Texts in English, written by `make languages` from languages/en/inbox/first-steps-texts.ftl. */
import { number } from "../core/texts.js";
export const t = {
title: "Get started",
done: "done",
hide: "Hide for everyone",
hidden: "Hidden for everyone in this project. You can show the list again in the project's settings.",
shown: "Everyone in this project sees the list again.",
failed: (/** @type {string} */ reason) => `Couldn't change it: ${reason}`,
undo: "Undo",
left: (/** @type {number} */ done, /** @type {number} */ all) => `${number(done)} of ${number(all)} done`,
steps: {
chat: {
title: "Put the chat on your site",
text: "Create a channel and add its two lines to your pages. Done when a customer opens the chat.",
},
colleague: {
title: "Invite a colleague",
text: "They get a link and choose their own password.",
},
history: {
title: "Import your history",
text: "Create a server key, and run “deskwire import” with the export of your previous tool.",
},
webhook: {
title: "Connect your backend",
text: "Add a webhook to be notified of every message.",
},
secondFactor: {
title: "Protect your account",
text: "Add an authenticator app or a passkey as a second factor.",
},
},
};
