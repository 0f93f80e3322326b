// The declarations for integrators, customer.d.ts, are those of the modules.
import type { createCustomer as Declared, Problem as DeclaredProblem } from "../../../http/deskwire/http/pages/widget/customer.js";
import { createCustomer } from "../../../http/deskwire/http/pages/widget/core/client.js";
import { Problem } from "../../../http/deskwire/http/pages/widget/core/api.js";

createCustomer satisfies typeof Declared;
Problem satisfies new (...args: any[]) => DeclaredProblem;
