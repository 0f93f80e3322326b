// What `make vendor` makes http/deskwire/http/pages/desk/vendor/ciphers.js of.
export { xchacha20poly1305 } from "@noble/ciphers/chacha.js";
