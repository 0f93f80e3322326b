// @ts-check
/** Every sentence of the page. */
export const t = {
  name: "Deskwire",
};
