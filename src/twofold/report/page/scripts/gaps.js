// @ts-check
// The gaps in numbers, below the chart.

import { contents } from "./contents.js";
import { byId, note } from "./dom.js";
import { counted, withError } from "./format.js";
import { grid } from "./grid.js";
import { named, sourcesOf } from "./series.js";
import { choice, look, shownSeries } from "./state.js";

/** @import { Series } from "./series.js" */

/**
 * @typedef {object} GapRow
 * @property {Series} series
 * @property {number | null} seed null for a mean
 * @property {string | null} command
 * @property {Gap} gap
 * @property {number} into the task that the switch leads to
 */

const AVERAGES = "Numbers are mean ± standard error (from three seeds on) over seeds, for recovery over the seeds that recovered.";

/**
 * Return the gaps of the choice: one per series or seed, task and switch.
 * @returns {GapRow[]}
 */
export function gapRows() {
  const rows = shownSeries.flatMap((series) => sourcesOf(series, choice.show).flatMap(
    ({ seed, command, gaps }) => gaps.map((gap) => (
      { series, seed, command, gap, into: series.group.ends.indexOf(gap.switch) + 2 }))));
  return rows.filter(({ gap, into }) =>
    choice.tasks.includes(gap.task) && (!choice.view || choice.view === into));
}

export function drawGaps() {
  const rows = gapRows();
  if (!rows.length) {
    byId("gaps").replaceChildren(note("There is no gap to show: no switch here comes after a chosen task."));
    return;
  }
  const seed = choice.show === "seeds" ? ["seed"] : [];
  const heads = ["method", ...seed, "task", "switch to", "depth (points)", "lowest after", "recovered after"];
  byId("gaps").replaceChildren(grid(heads, rows.map(entriesOf), "Gaps"), ...notesOn(rows).map(note));
}

/** @param {GapRow} row */
function entriesOf({ series, seed, command, gap, into }) {
  const about = `The gap of task ${gap.task} at the switch to task ${into}: ${named(series, seed)}`;
  const number = (/** @type {string} */ text) => ({ text, command, about });
  return [
    series.label + (series.group.complete ? "" : " *"), ...(seed === null ? [] : [`${seed}`]), `${gap.task}`,
    choice.view ? `task ${into}` : { text: `task ${into}`, action: () => zoomTo(into) },
    number(withError(gap.depth, 1)), number(withError(gap.lowest_at, 0)),
    number(recoveryText(gap.recovery, series.group.runs.length)),
  ];
}

/** @param {number} view */
function zoomTo(view) {
  look(view);
  byId("frame").focus();
}

/**
 * @param {Value | null} recovery
 * @param {number} seeds
 */
function recoveryText(recovery, seeds) {
  if (recovery === null) return "not recovered";
  if (typeof recovery === "number" || recovery.count === seeds) return withError(recovery, 0);
  return `${withError(recovery, 0)} (${recovery.count} of ${seeds} seeds)`;
}

/** @param {GapRow[]} rows */
function notesOn(rows) {
  const { gap_depth: depth, recovery } = contents.measures;
  const averages = choice.show === "mean" ? ` ${AVERAGES}` : "";
  const notes = [
    "Depth is how far the accuracy on an old task falls below its value at the switch, until the next switch. " +
    "“Lowest after” and “recovered after” count iterations from the switch. A task has recovered when its " +
    `accuracy is again within ${counted(contents.tolerance, "point")} of that value.${averages}`,
  ];
  if (rows.some(({ series }) => !series.group.complete)) {
    notes.push(`* Not evaluated after every iteration: depth is ${depth.thinned}, recovery ${recovery.thinned}.`);
  }
  return notes;
}
