// @ts-check
// The curves of the choice, as numbers.

import { floatsIn, integersIn } from "./contents.js";
import { sourcesOf } from "./series.js";
import { choice, shownSeries } from "./state.js";

/** @import { Series, Source } from "./series.js" */

/**
 * @typedef {object} Curve
 * @property {Series} series
 * @property {number} task 0 for the mean over tasks
 * @property {number | null} seed null for a mean
 * @property {Int32Array} x iterations
 * @property {Float32Array} y accuracies
 * @property {Float32Array | null} error
 */

/** Return a curve per shown series and chosen task, or one per seed of them. */
export function chosenCurves() {
  return shownSeries.flatMap((series) => {
    const { ends, average } = series.group;
    const tasks = choice.tasks.filter((task) => (task ? task <= ends.length : average));
    const sources = sourcesOf(series, choice.show);
    return tasks.flatMap((task) => sources.map((source) => curveOf(series, task, source)));
  });
}

/**
 * @param {Series} series
 * @param {number} task
 * @param {Source} source
 * @returns {Curve}
 */
function curveOf(series, task, { seed, curves, average }) {
  const { x, y, error } = /** @type {PackedCurve} */ (task ? curves[task - 1] : average);
  return { series, task, seed, x: integersIn(x), y: floatsIn(y), error: error ? floatsIn(error) : null };
}
