// @ts-check
/** The views that most customers don't need at first, in one module, so that the panel opens with little. */
export { Fields } from "./fields.js";
export { Rating } from "./rating.js";
export { WorkflowStep } from "./step.js";
