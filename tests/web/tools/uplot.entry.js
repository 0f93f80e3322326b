// What `make vendor` makes http/deskwire/http/pages/desk/vendor/uplot.js of.
export { default } from "uplot";
