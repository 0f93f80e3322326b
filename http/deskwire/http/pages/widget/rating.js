// @ts-check
/** The rating of a closed conversation, in five steps with a comment, and the channel's survey. */
import { html, useLayoutEffect, useRef, useState } from "../desk/vendor/preact.js";
import { Survey } from "./survey.js";
import { problemText, t } from "./texts.js";
/** @import { Conversation, Customer } from "./customer.js" */

/** Steps of the rating. The service keeps 0 to 10, so that a step is two. */
const STEPS = [1, 2, 3, 4, 5];
const WIDTH = 10 / STEPS.length;

/** @param {{customer: Customer, of: Conversation, survey: string | null}} props */
export function Rating({ customer, of, survey }) {
  const [given, setGiven] = useState(of.rating === null ? 0 : Math.ceil(of.rating / WIDTH));
  const [done, setDone] = useState(of.rating !== null);
  const [problem, setProblem] = useState("");
  const place = useRef(/** @type {any} */ (null));
  useLayoutEffect(() => place.current.scrollIntoView({ block: "end" }), [given, done]);
  const rate = async (/** @type {number} */ stars, comment = "") => {
    try {
      await customer.rate(of.id, stars * WIDTH, comment);
      setGiven(stars);
      setProblem("");
      if (comment) setDone(true);
    } catch (error) {
      setProblem(problemText(/** @type {any} */ (error)));
    }
  };
  const submit = (/** @type {any} */ event) => {
    event.preventDefault();
    void rate(given, event.currentTarget.comment.value.trim());
  };
  return html`<div class="rating" ref=${place}>
    <fieldset><legend>${t.rate}</legend><div class="stars">${STEPS.map((each) => html`<label class=${each <= given ? "star on" : "star"}><input type="radio" name="rating" class="hidden" checked=${each === given} onChange=${() => rate(each)} /><span class="hidden">${t.stars(String(each))}</span><svg viewBox="0 0 24 24" aria-hidden="true"><path d="m12 3 2.700 5.800 6.300.800-4.600 4.300 1.200 6.200L12 17l-5.600 3.100 1.200-6.200L3 9.600l6.300-.800z" /></svg></label>`)}</div></fieldset>
    <p role="status">${done && given ? t.thanks : ""}</p>
    ${given > 0 && !done && html`<form onSubmit=${submit}><label>${t.comment}<textarea name="comment" rows="2" maxlength="2000" required dir="auto"></textarea></label><button class="plain">${t.submit}</button></form>`}
    <p role="alert" class="bad">${problem}</p>
    ${survey && html`<${SurveyButton} customer=${customer} id=${survey} />`}
  </div>`;
}

/** The survey, when the customer asks for it. @param {{customer: Customer, id: string}} props */
function SurveyButton({ customer, id }) {
  const [open, setOpen] = useState(false);
  return open ? html`<${Survey} customer=${customer} id=${id} />` : html`<button type="button" class="plain" onClick=${() => setOpen(true)}>${t.survey}</button>`;
}
