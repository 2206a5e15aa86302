// @ts-check
// The chart's layout: panels, legend, titles and the lines of task switches.

import { axesOf, draggable, quantity, xTitle } from "./axes.js";
import { literal } from "./format.js";
import { ALL } from "./settings.js";
import { choice, looks, shownSeries, switches } from "./state.js";
import { ground, style, upright } from "./theme.js";

/** @import { Curve } from "./curves.js" */

/**
 * @typedef {object} Panel
 * @property {number} task
 * @property {string} objective
 * @property {string} x its axes, as Plotly names them: x, x2, x3
 * @property {string} y
 */

const HEIGHT = 250; // pixels of a row of panels

/** Return a panel per chosen task and objective. */
export function chosenPanels() {
  const pairs = choice.tasks.flatMap((task) => objectives().map((objective) => ({ task, objective })));
  return pairs.map((pair, k) => ({ ...pair, x: axisId("x", k), y: axisId("y", k) }));
}

/** Return the objectives of the shown series. */
export const objectives = () => [...new Set(shownSeries.map(({ group }) => group.objective))];

/**
 * @param {string} letter
 * @param {number} k
 */
const axisId = (letter, k) => (k ? `${letter}${k + 1}` : letter);

/**
 * @param {Panel[]} panels
 * @param {number} across panels in a row
 * @param {Curve[]} curves
 * @param {boolean} narrow
 * @returns {PlotlyLayout}
 */
export function layoutOf(panels, across, curves, narrow) {
  const rows = Math.max(1, Math.ceil(panels.length / across));
  const frame = {
    ...ground(), height: 110 + HEIGHT * rows, margin: { l: 52, r: 16, t: 64, b: 48 },
    // A zoom by hand is kept while this stays the same.
    uirevision: JSON.stringify([looks, choice.settings, choice.tasks]), hovermode: "closest",
    hoverlabel: { bgcolor: style("--raised"), bordercolor: style("--line"), font: { color: style("--ink") } },
    dragmode: draggable() ? "zoom" : false,
    grid: { rows, columns: across, pattern: "independent", xgap: 0.08, ygap: 0.25 },
    showlegend: true, legend: legend(rows, narrow),
  };
  return panels.length ? { ...frame, ...filled(panels, across, curves) } : { ...frame, ...empty() };
}

/**
 * @param {number} rows
 * @param {boolean} narrow
 */
function legend(rows, narrow) {
  return {
    orientation: "h", x: 0, y: 1 + 30 / (HEIGHT * rows), yanchor: "bottom", itemclick: false, itemdoubleclick: false,
    font: { color: style("--ink"), size: 13 },
    title: { text: caption(narrow), side: "top", font: { color: style("--soft"), size: 13 } },
  };
}

/**
 * Return the settings, for readers who see only the picture.
 * @param {boolean} narrow
 */
function caption(narrow) {
  const { benchmark, mode, profile, lr, batch_size: batch } = choice.settings;
  const rest = Object.entries({ profile, lr, batch }).filter(([, value]) => value !== ALL);
  const parts = [[benchmark, mode], rest.map((pair) => pair.join(" "))].map((part) => literal(part.join(" · ")));
  return parts.filter(Boolean).join(narrow ? "<br>" : " · ");
}

function empty() {
  const text = { text: "No method is chosen.", showarrow: false, xref: "paper", yref: "paper", x: 0.5, y: 0.5 };
  return { annotations: [text], shapes: [], xaxis: { visible: false }, yaxis: { visible: false } };
}

/**
 * @param {Panel[]} panels
 * @param {number} across
 * @param {Curve[]} curves
 * @returns {PlotlyLayout}
 */
function filled(panels, across, curves) {
  /** @type {PlotlyLayout} */
  const layout = { annotations: panels.map(panelTitle), shapes: panels.flatMap(switchLines) };
  const { xaxis, yaxis } = axesOf(curves);
  panels.forEach(({ x, y }, k) => {
    const lowest = k + across >= panels.length;
    const title = lowest ? { text: xTitle(), standoff: 8 } : undefined;
    layout[x.replace("x", "xaxis")] = { ...xaxis, matches: k ? "x" : undefined, showticklabels: lowest, title };
    layout[y.replace("y", "yaxis")] = { ...yaxis, matches: k ? "y" : undefined, showticklabels: k % across === 0 };
  });
  return layout;
}

/** @param {Panel} panel */
function panelTitle({ task, objective, x, y }) {
  return {
    text: `<b>${literal(objective)}</b>  ${literal(quantity(task))} on task ${task}`, font: { color: style("--ink"), size: 13 },
    showarrow: false, xref: `${x} domain`, yref: `${y} domain`,
    x: 0, y: 1, xanchor: "left", yanchor: "bottom", yshift: 4,
  };
}

/**
 * @param {Panel} panel
 * @returns {PlotlyShape[]}
 */
function switchLines({ x, y }) {
  return switches.map(({ at }) => ({ ...upright(at), xref: x, yref: `${y} domain`, layer: "below" }));
}
