// @ts-check
// The chart of accuracy curves: drawing it, fitting it to the window, and its keys.

import { chosenCurves } from "./curves.js";
import { byId } from "./dom.js";
import { chosenPanels, columns, layoutOf } from "./layout.js";
import { change, choice, look, switches } from "./state.js";
import { tracesOf } from "./traces.js";

// Half a second is the usual delay of a double click. Plotly's own, 300 ms, is too short for a page that is busy drawing.
const CONFIG = { displayModeBar: false, showTips: false, doubleClick: false, doubleClickDelay: 500 };

/** @param {number} width */
const roomIn = (width) => (width < 620 ? 1 : width < 1000 ? 2 : 3);

/** Draw panels: one below the other for tasks, side by side for objectives as far as there is room. */
export function drawChart() {
  const chart = byId("chart");
  const room = roomIn(byId("frame").clientWidth);
  const across = Math.max(1, Math.min(room, columns().length));
  const [panels, curves] = [chosenPanels(), chosenCurves()];
  const layout = { ...layoutOf(panels, across, curves, room === 1), width: chart.clientWidth };
  Plotly.react(chart, tracesOf(curves, panels), layout, CONFIG);
  chart.removeAllListeners("plotly_doubleclick"); // Plotly's own returns to the view that was drawn first
  chart.on("plotly_doubleclick", () => look(choice.view));
}

/** Draw the chart again if its width has changed, since its texts are as long as there is room. */
export function fitChart() {
  const { layout, clientWidth } = byId("chart");
  if (layout && layout.width !== clientWidth) drawChart();
}

/** @type {Record<string, () => void>} */
const KEYS = {
  ArrowRight: () => step(1),
  ArrowLeft: () => step(-1),
  Home: () => look(0),
  s: () => change({ show: choice.show === "mean" ? "seeds" : "mean" }),
};

/** Let the chart answer to keys while it is in focus. */
export function listenForKeys() {
  byId("frame").addEventListener("keydown", (event) => {
    const action = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  });
}

/**
 * Go to the next view or back. The first view follows the last.
 * @param {number} by
 */
function step(by) {
  const views = [0, ...switches.map(({ task }) => task)];
  look(views[(views.indexOf(choice.view) + by + views.length) % views.length]);
}
