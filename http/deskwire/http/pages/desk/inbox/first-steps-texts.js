// @ts-check
/** Texts of the check list of a new project. */

export const t = {
  title: "Get started", done: "done", hide: "Hide this list",
  /** @param {number} left @param {number} all */ left: (left, all) => `${all - left} of ${all} done`,
  /** @type {Record<string, {title: string, text: string}>} */
  steps: {
    chat: { title: "Put the chat on your site", text: "Create a channel and add its two lines to your pages. Done when a customer opens the chat." },
    colleague: { title: "Invite a colleague", text: "They get a link and choose their own password." },
    history: { title: "Import your history", text: "Create a server key, and run “deskwire import” with the export of your previous tool." },
    webhook: { title: "Connect your backend", text: "Add a webhook to be notified of every message." },
    secondFactor: { title: "Protect your account", text: "Add an authenticator app or a passkey as a second factor." },
  },
};
