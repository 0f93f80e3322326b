// @ts-check
/** Texts of saved views. */

export const t = {
  title: "Saved views", actions: "Actions for this view",
  save: "Save as a view…", saveAsNew: "Save as a new view…", saveView: "Save view", saveChanges: "Save changes", discard: "Discard changes", changed: "Changed",
  edit: "Rename or share…", copyLink: "Copy link to this view", moveUp: "Move this view up", moveDown: "Move this view down", delete: "Delete this view…",
  newTitle: "Save this filter as a view", editTitle: "Rename or share the view", name: "Name", namePlaceholder: "Refunds waiting over a day",
  visibleTo: "Visible to", me: "Only you", project: "Everyone in this project", team: (/** @type {string} */ name) => `The team ${name}`,
  sharedHint: "“You” in a shared view is the colleague who looks at it.",
  filter: "Shows", everything: "All conversations", filterRefused: (/** @type {string} */ why) => `The filter can't be saved: ${why}`,
  created: (/** @type {string} */ name) => `Saved as “${name}”`, saved: (/** @type {string} */ name) => `“${name}” saved`,
  movedUp: (/** @type {string} */ name) => `“${name}” moved up`, movedDown: (/** @type {string} */ name) => `“${name}” moved down`,
  failed: (/** @type {string} */ why) => `Couldn't change the view: ${why}`,
  linkCopied: "Link copied", linkNotCopied: "Couldn't copy the link. Copy it from the address bar.",
  deleteTitle: (/** @type {string} */ name) => `Delete the view “${name}”?`, deleteIt: "Delete view",
  loses: { me: "The view and its place in your navigation", team: "The view, for everyone in its team", project: "The view, for everyone in this project" },
  stays: ["All of its conversations"], deleted: (/** @type {string} */ name) => `“${name}” deleted`,
  unknown: "This view isn't available", unknownText: "It was deleted, or it isn't shared with you.", goToMine: "Go to Mine",
};
