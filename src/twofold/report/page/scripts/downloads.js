// @ts-check
// The download buttons: the chart as a picture, curves and gaps as CSV.

import { curvesCsv, gapsCsv } from "./csv.js";
import { byId, make } from "./dom.js";
import { choice } from "./state.js";

/** Let the download buttons work. */
export function listenForDownloads() {
  byId("downloads").addEventListener("click", ({ target }) => {
    const kind = target instanceof HTMLElement ? target.dataset.download : undefined;
    if (kind === "curves") save(curvesCsv(byId("chart").layout.xaxis?.range ?? [0, 0]), `${filename()}.csv`);
    else if (kind === "gaps") save(gapsCsv(), `${filename()}-gaps.csv`);
    else if (kind) savePicture(kind, filename());
  });
}

function filename() {
  const { settings, tasks, show, view } = choice;
  const parts = [settings.benchmark, settings.mode, "task", ...tasks.map((task) => task || "mean"), show, ...(view ? ["switch", view] : [])];
  return parts.join("-").replace(/[^A-Za-z0-9.-]+/g, "_");
}

/**
 * @param {string} text
 * @param {string} name
 */
function save(text, name) {
  const href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  make("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60000);
}

/**
 * @param {string} format
 * @param {string} name
 */
function savePicture(format, name) {
  const chart = byId("chart");
  const { clientWidth: width, clientHeight: height } = chart;
  Plotly.downloadImage(chart, { format, filename: name, width, height, scale: format === "png" ? 2 : 1 });
}
