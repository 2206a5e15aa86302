// @ts-check
// The charts of effects: the difference of each routine from plain SGD, with its interval.

import { contents } from "./contents.js";
import { make } from "./dom.js";
import { literal, shortened } from "./format.js";
import { colour, ground, style, upright } from "./theme.js";

const LEAST = 1; // points to each side that a chart shows, so that it does not magnify tiny effects
const NARROW = 480; // pixels: in a narrower chart names stand above the bars, not beside them

/** @type {{ place: HTMLElement, verdicts: Verdict[], width: number }[]} */
let charts = [];

export function clearEffects() {
  charts = [];
}

/**
 * Return the place of a new chart. `fitEffects` draws it once it is on the page.
 * @param {Verdict[]} verdicts
 */
export function addEffects(verdicts) {
  const place = make("div", { className: "effects" });
  charts.push({ place, verdicts: [...verdicts].reverse(), width: 0 }); // Plotly counts from below
  return place;
}

/** Draw the charts that are new or have changed their width. */
export function fitEffects() {
  for (const chart of charts) {
    const { place, verdicts, width } = chart;
    if (place.clientWidth === width) continue;
    chart.width = place.clientWidth;
    drawChartOf(place, verdicts, chart.width);
  }
}

/** @param {Verdict} verdict */
export const methodOf = ({ objective, routine }) => `${objective}+${routine}`;

/** @param {Verdict} verdict */
export const placeOf = ({ benchmark, mode, profile }) => [benchmark, mode, profile].join(", ");

/**
 * @param {HTMLElement} place
 * @param {Verdict[]} verdicts
 * @param {number} width
 */
function drawChartOf(place, verdicts, width) {
  const colours = verdicts.map(colourOf);
  const layout = { ...layoutOfEffects(verdicts, colours, width < NARROW), width };
  Plotly.react(place, [markers(verdicts, colours)], layout, { staticPlot: true });
}

/** @param {Verdict} verdict */
function colourOf({ objective, routine }) {
  const same = (/** @type {Group} */ group) => group.objective === objective && group.routine === routine;
  return colour(/** @type {Group} */ (contents.groups.find(same)));
}

/**
 * Return a marker per effect. Effects without an interval are hollow.
 * @param {Verdict[]} verdicts
 * @param {string[]} colours
 * @returns {PlotlyTrace}
 */
function markers(verdicts, colours) {
  const symbol = verdicts.map(({ interval }) => (interval ? "circle" : "circle-open"));
  return {
    type: "scatter", mode: "markers", x: verdicts.map(({ effect }) => effect), y: verdicts.map((_, k) => k),
    marker: { color: colours, size: 8, symbol },
  };
}

/**
 * @param {Verdict[]} verdicts
 * @param {string[]} colours
 * @param {boolean} narrow
 */
function layoutOfEffects(verdicts, colours, narrow) {
  const names = namesOf(verdicts, 40);
  const rows = names.map((_, k) => k);
  const hollow = verdicts.every(({ interval }) => interval) ? "" : `${narrow ? "<br>" : " "}(hollow: no interval)`;
  const below = 44 + (narrow && hollow ? 16 : 0);
  const axis = { gridcolor: style("--grid"), zeroline: false };
  return {
    ...ground(), showlegend: false, margin: { l: 10, r: 16, t: 8, b: below },
    height: 20 + below + (narrow ? 40 : 26) * rows.length,
    shapes: [{ ...upright(0), yref: "paper" }, ...verdicts.flatMap((verdict, k) => barOf(verdict, k, colours[k]))],
    xaxis: { ...axis, range: rangeOf(verdicts), title: { text: `points more than plain SGD${hollow}`, standoff: 8 } },
    yaxis: {
      ...axis, range: /** @type {[number, number]} */ ([-0.7, rows.length - 0.3]), tickvals: rows, ticktext: names,
      automargin: true, showgrid: false, tickfont: { color: style("--ink") }, showticklabels: !narrow,
    },
    annotations: narrow ? names.map(nameAbove) : [],
  };
}

/**
 * Return the methods, with what differs of their places.
 * @param {Verdict[]} verdicts
 * @param {number} most letters of a method
 */
function namesOf(verdicts, most) {
  /** @type {("benchmark" | "mode" | "profile")[]} */
  const parts = ["benchmark", "mode", "profile"];
  const differing = parts.filter((part) => new Set(verdicts.map((verdict) => verdict[part])).size > 1);
  return verdicts.map((verdict) =>
    literal([shortened(methodOf(verdict), most), ...differing.map((part) => verdict[part])].join(", ")));
}

/**
 * Return the line of an interval, or nothing if there is none.
 * @param {Verdict} verdict
 * @param {number} k
 * @param {string} color
 * @returns {PlotlyShape[]}
 */
function barOf({ interval }, k, color) {
  if (!interval) return [];
  const [x0, x1] = interval;
  return [{ type: "line", x0, x1, y0: k, y1: k, line: { color, width: 2 } }];
}

/**
 * @param {Verdict[]} verdicts
 * @returns {[number, number]}
 */
function rangeOf(verdicts) {
  const ends = verdicts.flatMap(({ effect, interval }) => [-LEAST, LEAST, effect, ...(interval ?? [])]);
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const margin = 0.08 * (high - low);
  return [low - margin, high + margin];
}

/**
 * @param {string} text
 * @param {number} k
 */
function nameAbove(text, k) {
  return {
    text, font: { color: style("--ink") }, showarrow: false,
    xref: "paper", x: 0, xanchor: "left", y: k, yanchor: "bottom", yshift: 4,
  };
}
