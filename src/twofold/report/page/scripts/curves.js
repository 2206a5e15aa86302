// @ts-check
// The curves of the choice, as numbers.

import { floatsIn, integersIn } from "./contents.js";
import { sourcesOf } from "./series.js";
import { choice, shownSeries } from "./state.js";

/** @import { Series, Source } from "./series.js" */

/**
 * @typedef {object} Curve
 * @property {Series} series
 * @property {number} task
 * @property {number | null} seed null for a mean
 * @property {Int32Array} x iterations
 * @property {Float32Array} y accuracies
 * @property {Float32Array | null} error
 */

/** Return a curve per shown series and chosen task, or one per seed of them. */
export function chosenCurves() {
  return shownSeries.flatMap((series) => {
    const tasks = choice.tasks.filter((task) => task <= series.group.ends.length);
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
function curveOf(series, task, { seed, curves }) {
  const { x, y, error } = curves[task - 1];
  return { series, task, seed, x: integersIn(x), y: floatsIn(y), error: error ? floatsIn(error) : null };
}
