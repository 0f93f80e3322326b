// @ts-check
/** The first of the two lines, as a file, because the demo page allows no inline scripts. */
/** @type {any} */ (window).Deskwire ??= [];
