// @ts-check
// The verdicts on each hypothesis: a table of the primary and one of the exploratory comparisons, each
// below a chart of its effects. The sentence of a verdict unfolds below its row.

import { contents } from "./contents.js";
import { bodyOf, make, note } from "./dom.js";
import { addEffects, clearEffects, fitEffects, methodOf, placeOf } from "./effects.js";
import { fixed, signed } from "./format.js";
import { grid } from "./grid.js";

/** @import { Entry } from "./grid.js" */

const HEADS = ["method", "effect (points)", "verdict", "interval", "alone", "corrected p", "seeds",
  "benchmark", "mode", "profile", "learning rate", "batch size"];
const MEANINGS = "Effects are differences from plain SGD. Intervals of a family hold together: the primary " +
  "comparisons of a benchmark and mode, or all exploratory ones of a profile; alone, one is narrower. Choose a verdict to read it as a sentence.";

/** @type {Set<string>} */
const unfoldedSentences = new Set();

export function drawVerdicts() {
  const { claims, notes, reached } = contents.verdicts;
  clearEffects();
  const families = Object.entries(claims).flatMap(([hypothesis, claim]) => familyOf(hypothesis, claim));
  bodyOf("verdicts").replaceChildren(...(reached.length ? [note(MEANINGS)] : []), ...families, ...notes.map(note));
  fitEffects();
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
  const parts = [...partOf("Primary", hypothesis, primary), ...partOf("Exploratory", hypothesis, exploratory)];
  return [make("div", {}, title, ...parts)];
}

/**
 * Return a heading, a chart and a table, or nothing if there are no verdicts.
 * @param {string} kind
 * @param {string} hypothesis
 * @param {Verdict[]} verdicts
 */
function partOf(kind, hypothesis, verdicts) {
  if (!verdicts.length) return [];
  const title = `${kind} comparisons of ${verdicts[0].metric.toUpperCase()}`;
  const table = grid(HEADS, verdicts.map(entriesOfVerdict), `${hypothesis}: ${title}`);
  table.className = "verdicts";
  const rows = [...table.querySelectorAll("tbody tr")];
  rows.forEach((row, k) => addSentence(row, verdicts[k].sentence));
  return [make("h4", { textContent: title }), addEffects(verdicts), table];
}

/**
 * @param {Verdict} verdict
 * @returns {Entry[]}
 */
function entriesOfVerdict(verdict) {
  const { effect, interval, uncorrected, p_corrected: p, decision, seeds } = verdict;
  const number = (/** @type {string} */ text) => ({ text, command: commandsOf(verdict), about: aboutOf(verdict) });
  const range = (/** @type {[number, number] | null} */ ends) => (ends ? number(ends.map(signed).join(" to ")) : "–");
  return [
    methodOf(verdict), number(signed(effect)), { text: decision, action: unfold }, range(interval), range(uncorrected),
    p === null ? "–" : number(p < 0.001 ? "< 0.001" : fixed(p, 3)), `${seeds.length}`,
    verdict.benchmark, verdict.mode, verdict.profile, `${verdict.lr}`, `${verdict.batch_size}`,
  ];
}

/**
 * Add a row with a verdict's sentence, which unfolds.
 * @param {Element} row
 * @param {string} sentence
 */
function addSentence(row, sentence) {
  const open = unfoldedSentences.has(sentence);
  const text = make("p", { textContent: sentence });
  row.after(make("tr", { className: "sentence", hidden: !open }, make("td", { colSpan: row.children.length }, text)));
  row.querySelector(".link")?.setAttribute("aria-expanded", String(open));
}

/**
 * Unfold or fold the sentence below a button's row.
 * @param {HTMLButtonElement} button
 */
function unfold(button) {
  const below = /** @type {HTMLElement} */ (button.closest("tr")?.nextElementSibling);
  const sentence = below.textContent ?? "";
  below.hidden = !below.hidden;
  button.setAttribute("aria-expanded", String(!below.hidden));
  if (below.hidden) unfoldedSentences.delete(sentence);
  else unfoldedSentences.add(sentence);
}

/** @param {Verdict} verdict */
const commandsOf = ({ commands }) => commands.filter(Boolean).join("\n") || null;

/** @param {Verdict} verdict */
function aboutOf(verdict) {
  const { metric, objective } = verdict;
  return `${metric.toUpperCase()} of ${methodOf(verdict)} against ${objective}: ${placeOf(verdict)}`;
}
