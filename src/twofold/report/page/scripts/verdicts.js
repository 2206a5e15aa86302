// @ts-check
// The verdicts on each hypothesis: a list of the primary and one of the exploratory comparisons, each
// below a chart of its effects.

import { contents } from "./contents.js";
import { bodyOf, make, note } from "./dom.js";
import { addEffects, clearEffects, drawEffects, methodOf, placeOf } from "./effects.js";
import { fixed, signed } from "./format.js";
import { numberButton } from "./grid.js";

export function drawVerdicts() {
  const { claims, notes } = contents.verdicts;
  clearEffects();
  const families = Object.entries(claims).flatMap(([hypothesis, claim]) => familyOf(hypothesis, claim));
  bodyOf("verdicts").replaceChildren(...families, ...notes.map(note));
  drawEffects();
}

/**
 * Return the verdicts on a hypothesis, or nothing if there are none.
 * @param {string} hypothesis
 * @param {string} claim
 */
function familyOf(hypothesis, claim) {
  const verdicts = contents.verdicts.reached.filter((verdict) => verdict.hypothesis === hypothesis);
  if (!verdicts.length) return [];
  const title = make("h3", { textContent: `${hypothesis}: ${claim}` });
  const primary = verdicts.filter(({ study }) => study);
  const exploratory = verdicts.filter(({ study }) => !study);
  return [make("div", {}, title, ...listOf("Primary", primary), ...listOf("Exploratory", exploratory))];
}

/**
 * Return a heading, a chart and a list, or nothing if there are no verdicts.
 * @param {string} kind
 * @param {Verdict[]} verdicts
 */
function listOf(kind, verdicts) {
  if (!verdicts.length) return [];
  const list = make("ul", { className: "verdicts" }, ...verdicts.map(item));
  return [make("h4", { textContent: `${kind} comparisons` }), addEffects(verdicts), list];
}

/** @param {Verdict} verdict */
function item(verdict) {
  const { lr, batch_size: batch, effect, interval, uncorrected, p_corrected: p, sentence } = verdict;
  const number = (/** @type {string} */ text) =>
    numberButton({ text, command: commandsOf(verdict), about: aboutOf(verdict) });
  const facts = make("p", { className: "facts" }, make("b", { textContent: methodOf(verdict) }),
    ` ${placeOf(verdict)}, lr ${lr}, batch ${batch}: `, number(`${signed(effect)} points`));
  if (uncorrected) facts.append(", ", number(uncorrected.map(signed).join(" to ")), " alone");
  if (interval) facts.append(", ", number(interval.map(signed).join(" to ")), " simultaneously");
  if (p !== null) facts.append(", corrected ", number(p < 0.001 ? "p < 0.001" : `p = ${fixed(p, 3)}`));
  return make("li", {}, facts, make("p", { textContent: sentence }));
}

/** @param {Verdict} verdict */
const commandsOf = ({ commands }) => commands.filter(Boolean).join("\n") || null;

/** @param {Verdict} verdict */
function aboutOf(verdict) {
  const { metric, objective } = verdict;
  return `${metric.toUpperCase()} of ${methodOf(verdict)} against ${objective}: ${placeOf(verdict)}`;
}
