// @ts-check
/** Words and measures that the views of a workflow share. */
import { number } from "../core/texts.js";
import { t } from "./texts.js";
import { t as f } from "./form-texts.js";
import { fieldText } from "./form-model.js";

/** Below this width, in pixels, the form is below the diagram. */
export const NARROW = 1100;

/** Return a duration in words. @param {number} s */
export const lastsText = (s) => (s < 120 ? t.workflows.lasts.seconds(number(s)) : s < 7200 ? t.workflows.lasts.minutes(number(Math.round(s / 60))) : t.workflows.lasts.hours(number(Math.round(s / 360) / 10)));

/** Return the name of a type of action. @param {any} type */
export const typeName = (type) => t.workflows.actions[/** @type {"message"} */ (type)] ?? (fieldText(type) || f.workflow.noType);
