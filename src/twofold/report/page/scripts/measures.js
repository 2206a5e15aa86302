// @ts-check
// All measures of the shown methods, in a part of the page that unfolds.

import { contents } from "./contents.js";
import { byId, make } from "./dom.js";
import { withError } from "./format.js";
import { grid } from "./grid.js";
import { named, sourcesOf } from "./series.js";
import { choice, shownSeries } from "./state.js";

/** @import { Series, Source } from "./series.js" */

/** The element that unfolds. */
export const unfolding = () => /** @type {HTMLDetailsElement} */ (byId("measures").parentElement);

/** Draw the measures if they are unfolded. */
export function drawMeasures() {
  if (!unfolding().open) return;
  const texts = Object.values(contents.measures);
  const heads = ["method", ...texts.map(({ title }) => title)];
  const rows = shownSeries.flatMap((series) =>
    sourcesOf(series, choice.show).map((source) => measuresOf(series, source)));
  const meanings = texts.flatMap(({ title, explanation }) =>
    [make("dt", { textContent: title }), make("dd", { textContent: explanation })]);
  byId("measures").replaceChildren(grid(heads, rows, "Measures"), make("dl", {}, ...meanings));
}

/**
 * @param {Series} series
 * @param {Source} source
 */
function measuresOf(series, { seed, command, measures }) {
  const name = named(series, seed);
  const entries = Object.entries(contents.measures).map(([key, { title, unit }]) => {
    const value = measures[key];
    if (value === null) return "–";
    return { text: withError(value, unit === "iterations" ? 0 : 1), command, about: `${title}: ${name}` };
  });
  return [name, ...entries];
}
