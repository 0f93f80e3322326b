// @ts-check
/** Text folding for comparison, equal to the service's `core.folding`: ignores case, width, accents and invisible characters. */

/** Accents, vowel points, elongation, variation selectors and fillers, as ranges of a character class. A test compares them with the service's. */
const DROPPED = new RegExp(`[\\p{Cf}${[
  "\\u0300-\\u036f\\u0483-\\u0487\\u0591-\\u05bd\\u05bf\\u05c1\\u05c2\\u05c4\\u05c5\\u05c7\\u0610-\\u061a\\u0640\\u064b-\\u065f\\u0670\\u06d6-\\u06dc\\u06df-\\u06e4",
  "\\u06e7\\u06e8\\u06ea-\\u06ed\\u0730-\\u074a\\u07eb-\\u07f3\\u07fa\\u07fd\\u0816-\\u0819\\u081b-\\u0823\\u0825-\\u0827\\u0829-\\u082d\\u0859-\\u085b",
  "\\u0898-\\u089f\\u08ca-\\u08e1\\u08e3-\\u08ff\\u0951-\\u0954\\u09fe\\u0f18\\u0f19\\u0f35\\u0f37\\u0f39\\u0f82\\u0f83\\u0f86\\u0f87\\u0fc6\\u108d\\u115f\\u1160",
  "\\u135d-\\u135f\\u17b4\\u17b5\\u17dd\\u180b-\\u180d\\u180f\\u18a9\\u1939-\\u193b\\u1a17\\u1a18\\u1a75-\\u1a7c\\u1a7f\\u1ab0-\\u1abd\\u1abf-\\u1ace\\u1b6b-\\u1b73",
  "\\u1cd0-\\u1cd2\\u1cd5-\\u1ce0\\u1ced\\u1cf4\\u1cf8\\u1cf9\\u1dc0-\\u1dff\\u20d0\\u20d1\\u20d4-\\u20d7\\u20db\\u20dc\\u20e1\\u20e7-\\u20e9\\u20ec-\\u20f0\\u2800",
  "\\u2cef-\\u2cf1\\u2de0-\\u2dff\\u302a-\\u302f\\u3164\\ua66f\\ua674-\\ua67d\\ua69e\\ua69f\\ua6f0\\ua6f1\\ua8e0-\\ua8f1\\ua92b-\\ua92d\\uaab0\\uaab2-\\uaab4\\uaab7",
  "\\uaab8\\uaabe\\uaabf\\uaac1\\ufb1e\\ufe00-\\ufe0f\\ufe20-\\ufe2f\\uffa0\\u{101fd}\\u{102e0}\\u{10376}-\\u{1037a}\\u{10a0d}\\u{10a0f}\\u{10a38}\\u{10a3a}",
  "\\u{10ae5}\\u{10ae6}\\u{10d24}-\\u{10d27}\\u{10eab}\\u{10eac}\\u{10f46}-\\u{10f50}\\u{10f82}-\\u{10f85}\\u{11100}-\\u{11102}\\u{11366}-\\u{1136c}",
  "\\u{11370}-\\u{11374}\\u{1145e}\\u{16b30}-\\u{16b36}\\u{1d165}\\u{1d166}\\u{1d16d}-\\u{1d172}\\u{1d17b}-\\u{1d182}\\u{1d185}-\\u{1d18b}",
  "\\u{1d1aa}-\\u{1d1ad}\\u{1d242}-\\u{1d244}\\u{1e000}-\\u{1e006}\\u{1e008}-\\u{1e018}\\u{1e01b}-\\u{1e021}\\u{1e023}\\u{1e024}\\u{1e026}-\\u{1e02a}",
  "\\u{1e130}-\\u{1e136}\\u{1e2ae}\\u{1e2ec}-\\u{1e2ef}\\u{1e8d0}-\\u{1e8d6}\\u{1e944}-\\u{1e949}\\u{e0100}-\\u{e01ef}",
].join("")}]`, "gu");

/** Characters without a decomposition, and their usual replacements. */
const ALIKE = /** @type {Record<string, string>} */ ({
  ø: "o", ł: "l", đ: "d", ħ: "h", ı: "i", æ: "ae", œ: "oe", ð: "d", þ: "th", ς: "σ",
  "\u2010": "-", "\u2011": "-", "\u2012": "-", "\u2013": "-", "\u2014": "-", "\u2015": "-", "\u2212": "-",
  "\u2018": "'", "\u2019": "'", "\u02bc": "'", "\u02b9": "'",
});
const TYPED = new RegExp(`[${Object.keys(ALIKE).join("")}]`, "gu");

/** @param {string} text */
const bare = (text) => text.normalize("NFKD").replace(DROPPED, "");

/** Return a text in its folded form, for comparison. @param {string} text */
export const fold = (text) => bare(bare(text).toLowerCase().toUpperCase().toLowerCase()).replace(TYPED, (each) => ALIKE[each] ?? each);

/** Return the comparison key of a tag or name, like the service's `fold_name`. @param {string} name */
export const foldName = (name) => fold(name).split(/\s+/).filter(Boolean).join(" ") || name;
