export declare function xchacha20poly1305(key: Uint8Array, nonce: Uint8Array, additional?: Uint8Array): { encrypt(plain: Uint8Array): Uint8Array; decrypt(sealed: Uint8Array): Uint8Array };
