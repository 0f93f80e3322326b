// @ts-check
/** The customer's side without a user interface. The types are in customer.d.ts. */
export { createCustomer } from "./core/client.js";
export { Offline, Problem } from "./core/api.js";
