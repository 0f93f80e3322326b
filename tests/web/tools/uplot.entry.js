// The source of http/deskwire/http/pages/desk/vendor/uplot.js, bundled by `make vendor`.
export { default } from "uplot";
