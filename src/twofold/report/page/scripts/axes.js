// @ts-check
// The chart's axes: what they measure, which iterations and values are seen, with which ticks.

import { quantityOf } from "./series.js";
import { choice, shownSeries, switchTo } from "./state.js";
import { style } from "./theme.js";

/** @import { Curve } from "./curves.js" */

const ZOOM = 50; // iterations after a switch

/** Tell whether a drag zooms. On a touch screen it scrolls the page. */
export const draggable = () => !matchMedia("(pointer: coarse)").matches;

/**
 * Return the axes that all panels share.
 * @param {Curve[]} curves
 */
export function axesOf(curves) {
  const range = xRange(curves);
  const percent = curves.every(({ series, task }) => quantityOf(series.group, task) === "accuracy");
  const line = style("--line");
  const common = { gridcolor: style("--grid"), linecolor: line, zeroline: false, fixedrange: !draggable() };
  const ticks = { ticks: "outside", tickcolor: line, ticklen: 4, ...xTicks() };
  return {
    xaxis: { ...common, ...ticks, range, showgrid: false, showline: true },
    yaxis: { ...common, range: yRange(curves, range), ticksuffix: percent ? "%" : "", nticks: 6 },
  };
}

/**
 * Return what the shown series measured on a task.
 * @param {number} task
 */
export function quantity(task) {
  return [...new Set(shownSeries.map(({ group }) => quantityOf(group, task)))].join(" or ");
}

export const xTitle = () => (choice.view ? `iterations after the switch to task ${choice.view}` : "iteration");

/**
 * Return the whole run, or the iterations around a switch up to the next task.
 * @param {Curve[]} curves
 * @returns {[number, number]}
 */
function xRange(curves) {
  const start = switchTo(choice.view);
  const last = Math.max(1, ...curves.map(({ series }) => series.group.ends.at(-1) ?? 1));
  if (start === undefined) return [0, last];
  const next = switchTo(choice.view + 1) ?? last;
  return [start - 2, Math.min(start + ZOOM, next) + 1];
}

function xTicks() {
  const start = switchTo(choice.view);
  if (start === undefined) return { nticks: 7 };
  const steps = [0, 1, 2, 3, 4, 5].map((fifth) => (fifth * ZOOM) / 5);
  return { tickvals: steps.map((step) => start + step), ticktext: steps.map(String) };
}

/**
 * Return a range that fits what is seen.
 * @param {Curve[]} curves
 * @param {[number, number]} range of iterations
 * @returns {[number, number]}
 */
function yRange(curves, [first, last]) {
  let [low, high] = [Infinity, -Infinity];
  for (const curve of curves) {
    const { x, y, error } = curve;
    const start = firstFitted(curve, first);
    for (let k = 0; k < x.length; k++) {
      if (x[k] < first || x[k] > last) continue;
      high = Math.max(high, y[k] + (error?.[k] ?? 0));
      if (x[k] >= start) low = Math.min(low, y[k] - (error?.[k] ?? 0));
    }
  }
  if (low > high) return [0, 100];
  const margin = 0.05 * (high - low) || 1;
  return [low - margin, high + margin];
}

/**
 * Return the first iteration that the lower end of the range must fit. A whole run counts from the end of
 * its task, because it starts at chance.
 * @param {Curve} curve
 * @param {number} first
 */
function firstFitted({ series, task }, first) {
  const { ends } = series.group;
  return choice.view || task === ends.length || ends.length === 1 ? first : ends[Math.max(task, 1) - 1];
}
