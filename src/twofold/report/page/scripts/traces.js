// @ts-check
// The chart's lines, and the bands of standard errors around them.

import { byId } from "./dom.js";
import { literal, shortened, taskName } from "./format.js";
import { named, quantityOf } from "./series.js";
import { choice, shownSeries } from "./state.js";
import { colour, dark } from "./theme.js";

/** @import { Curve } from "./curves.js" */
/** @import { Panel } from "./layout.js" */
/** @import { Series } from "./series.js" */

const SPARSE = 100; // a line of fewer points has markers

/**
 * Return the traces of all curves in their panels. Bands are below lines.
 * @param {Curve[]} curves
 * @param {Panel[]} panels
 */
export function tracesOf(curves, panels) {
  const places = curves.map((curve) => ({ curve, panel: panelOf(curve, panels) }));
  const bands = places.flatMap(({ curve, panel }) => bandOf(curve, panel));
  const lines = places.map(({ curve, panel }) => lineOf(curve, panel));
  return [...bands, ...namedOnce(lines)];
}

/**
 * @param {Curve} curve
 * @param {Panel[]} panels
 */
function panelOf({ series, task }, panels) {
  const fits = (/** @type {Panel} */ panel) =>
    panel.task === task && [null, series.group.objective].includes(panel.objective);
  return /** @type {Panel} */ (panels.find(fits));
}

/**
 * Return lines of which each name is in the legend once.
 * @param {PlotlyTrace[]} lines
 */
function namedOnce(lines) {
  const names = lines.map(({ name }) => name);
  return lines.map((line, k) => ({ ...line, showlegend: names.indexOf(line.name) === k }));
}

/**
 * Return the name of a look in the legend: the methods that have it, each in a panel of its own.
 * @param {Series} series
 */
export function legendText({ group, dash }) {
  const alike = shownSeries.filter((other) => other.group.look.colour === group.look.colour && other.dash === dash);
  const most = Math.floor((byId("frame").clientWidth - 125) / 8); // letters beside a line
  return shortened([...new Set(alike.map(({ label }) => label))].join(", "), most);
}

/**
 * @param {Curve} curve
 * @param {Panel} panel
 */
function commonOf({ series }, panel) {
  const name = literal(legendText(series));
  return { type: /** @type {const} */ ("scatter"), legendgroup: name, name, xaxis: panel.x, yaxis: panel.y };
}

/**
 * @param {Curve} curve
 * @param {Panel} panel
 * @returns {PlotlyTrace}
 */
function lineOf(curve, panel) {
  const { series, task, seed, x, y, error } = curve;
  const unit = quantityOf(series.group, task) === "accuracy" ? "%" : "";
  const value = error ? "%{y:.1f} ± %{customdata:.1f}" : "%{y:.1f}";
  return {
    ...commonOf(curve, panel), x, y, mode: x.length < SPARSE ? "lines+markers" : "lines", marker: { size: 4 },
    line: { color: colour(series.group, seed === null ? 1 : 0.75), width: widthOf(curve), dash: series.dash },
    meta: literal(named(series, seed)), ...(error ? { customdata: error } : {}),
    hovertemplate: `%{meta}<br>${taskName(task)}, iteration %{x}: ${value}${unit}<extra></extra>`,
  };
}

/**
 * Return a line's width. Routines agree until one projects, and a thinner line does not hide earlier ones.
 * @param {Curve} curve
 */
function widthOf({ series, seed }) {
  if (seed !== null) return 1.1;
  const rivals = shownSeries.filter(({ group }) => choice.together || group.objective === series.group.objective);
  return Math.max(2.2 - 0.3 * rivals.indexOf(series), 1.2);
}

/**
 * Return the band of a mean's standard error, or nothing if there is no error.
 * @param {Curve} curve
 * @param {Panel} panel
 * @returns {PlotlyTrace[]}
 */
function bandOf(curve, panel) {
  const { series, x, y, error } = curve;
  if (!error) return [];
  const above = [...y].map((value, k) => value + error[k]);
  const below = [...y].map((value, k) => value - error[k]);
  return [{
    ...commonOf(curve, panel), x: [...x, ...[...x].reverse()], y: [...above, ...below.reverse()],
    mode: "lines", line: { width: 0 }, fill: "toself", fillcolor: colour(series.group, dark.matches ? 0.28 : 0.2),
    hoverinfo: "skip", showlegend: false,
  }];
}
