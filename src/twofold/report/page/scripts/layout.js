// @ts-check
// The chart's layout: panels, legend, titles and the lines of task switches.

import { axesOf, draggable, quantity, xTitle } from "./axes.js";
import { byId } from "./dom.js";
import { literal, shortened, taskName } from "./format.js";
import { ALL } from "./settings.js";
import { choice, looks, shownSeries, switches } from "./state.js";
import { ground, style, upright } from "./theme.js";
import { legendText } from "./traces.js";

/** @import { Curve } from "./curves.js" */

/**
 * @typedef {object} Panel
 * @property {number} task 0 for the mean over tasks
 * @property {string | null} objective null for all of them
 * @property {string} x its axes, as Plotly names them: x, x2, x3
 * @property {string} y
 */

// Pixels: a row of panels, one of a wide panel, what is above a panel, a line of the legend, what is below the
// panels, a letter, and a legend's line with the space around it.
const [HEIGHT, HIGH, TITLE, LINE, BELOW, LETTER, HANDLE] = [240, 320, 30, 22, 48, 7.3, 48];

/** Return a panel per chosen task and objective. */
export function chosenPanels() {
  const pairs = choice.tasks.flatMap((task) => columns().map((objective) => ({ task, objective })));
  return pairs.map((pair, k) => ({ ...pair, x: axisId("x", k), y: axisId("y", k) }));
}

/**
 * Return the objectives that have a panel of their own, or null for all of them in one.
 * @returns {(string | null)[]}
 */
export function columns() {
  const objectives = [...new Set(shownSeries.map(({ group }) => group.objective))];
  return choice.together && objectives.length > 1 ? [null] : objectives;
}

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
  const above = TITLE + LINE * (legendRows() + (narrow ? 2 : 1));
  const all = rows * (across === 1 && !narrow ? HIGH : HEIGHT);
  const frame = {
    ...ground(), height: above + BELOW + all,
    margin: { l: 52, r: 16, t: above, b: BELOW, autoexpand: false },
    // A zoom by hand is kept while this stays the same.
    uirevision: JSON.stringify([looks, choice.settings, choice.tasks, choice.together]), hovermode: "closest",
    hoverlabel: { bgcolor: style("--raised"), bordercolor: style("--line"), font: { color: style("--ink") } },
    dragmode: draggable() ? "zoom" : false,
    grid: { rows, columns: across, pattern: "independent", xgap: 0.08, ygap: 0.25 },
    showlegend: true, legend: legend(all, narrow),
  };
  return panels.length ? { ...frame, ...filled(panels, across, curves) } : { ...frame, ...empty() };
}

/** Return the number of rows that the legend needs, since Plotly gives it no room of its own. */
function legendRows() {
  const room = byId("frame").clientWidth - 80;
  let [rows, used] = [1, 0];
  for (const name of new Set(shownSeries.map(legendText))) {
    const width = HANDLE + LETTER * name.length;
    if (used && used + width > room) [rows, used] = [rows + 1, 0];
    used += width;
  }
  return rows;
}

/**
 * @param {number} height of all panels
 * @param {boolean} narrow
 */
function legend(height, narrow) {
  return {
    orientation: "h", x: 0, y: 1 + TITLE / height, yanchor: "bottom", tracegroupgap: 2,
    itemclick: false, itemdoubleclick: false,
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
  const layout = { annotations: panels.map((panel) => panelTitle(panel, across)), shapes: panels.flatMap(switchLines) };
  const { xaxis, yaxis } = axesOf(curves);
  panels.forEach(({ x, y }, k) => {
    const lowest = k + across >= panels.length;
    const title = lowest ? { text: xTitle(), standoff: 8 } : undefined;
    layout[x.replace("x", "xaxis")] = { ...xaxis, matches: k ? "x" : undefined, showticklabels: lowest, title };
    layout[y.replace("y", "yaxis")] = { ...yaxis, matches: k ? "y" : undefined, showticklabels: k % across === 0 };
  });
  return layout;
}

/**
 * @param {Panel} panel
 * @param {number} across panels in a row
 */
function panelTitle({ task, objective, x, y }, across) {
  const measured = task ? `${quantity(task)} on ${taskName(task)}` : `mean ${quantity(task)} over tasks begun`;
  const room = Math.max(8, Math.floor(byId("frame").clientWidth / across / 8) - measured.length - 4); // letters
  const name = objective === null ? "" : `<b>${literal(shortened(objective, room))}</b>  `;
  return {
    text: name + literal(measured), font: { color: style("--ink"), size: 13 },
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
