// The source of http/deskwire/http/pages/desk/vendor/ciphers.js, bundled by `make vendor`.
export { xchacha20poly1305 } from "@noble/ciphers/chacha.js";
