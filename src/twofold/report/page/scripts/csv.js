// @ts-check
// The numbers on the page as CSV.

import { contents } from "./contents.js";
import { chosenCurves } from "./curves.js";
import { exact } from "./format.js";
import { gapRows } from "./gaps.js";

/** @import { Series } from "./series.js" */

/** @typedef {string | number} Entry */

/** @type {["depth", "lowest_at", "recovery"]} */
const GAP_NUMBERS = ["depth", "lowest_at", "recovery"];

/**
 * Return the points of the curves in a range of iterations.
 * @param {[number, number]} range
 */
export function curvesCsv([first, last]) {
  const rows = [[...originHeads(), "iteration", "accuracy", "standard_error"]];
  for (const { series, seed, task, x, y, error } of chosenCurves()) {
    const origin = originOf(series, seed, task);
    x.forEach((iteration, k) => {
      if (iteration < first || iteration > last) return;
      rows.push([...origin, iteration, exact(y[k]), error ? exact(error[k]) : ""]);
    });
  }
  return csv(rows);
}

/** Return the rows of the table of gaps, with their commands. */
export function gapsCsv() {
  const heads = GAP_NUMBERS.flatMap((name) => [name, `${name}_error`]);
  const rows = gapRows().map(({ series, seed, gap, command }) => {
    const values = GAP_NUMBERS.flatMap((name) => withErrorApart(gap[name]));
    return [...originOf(series, seed, gap.task), gap.switch, ...values, recoveredCount(gap), command ?? ""];
  });
  return csv([[...originHeads(), "switch", ...heads, "recovered", "command"], ...rows]);
}

/** @returns {Entry[]} */
const originHeads = () => ["series", ...contents.picked, "method", "seed", "task"];

/**
 * @param {Series} series
 * @param {number | null} seed
 * @param {number} task
 * @returns {Entry[]}
 */
function originOf({ label, group }, seed, task) {
  const settings = contents.picked.map((name) => group.settings[name]);
  return [label, ...settings, group.method, seed ?? `mean of ${group.runs.length}`, task || "mean"];
}

/**
 * @param {Value | null} value
 * @returns {Entry[]}
 */
function withErrorApart(value) {
  if (value === null) return ["", ""];
  if (typeof value === "number") return [exact(value), ""];
  return [exact(value.mean), value.error === null ? "" : exact(value.error)];
}

/** @param {Gap} gap */
function recoveredCount({ recovery }) {
  if (recovery === null) return 0;
  return typeof recovery === "number" ? 1 : recovery.count;
}

/** @param {Entry[][]} rows */
function csv(rows) {
  return rows.map((row) => row.map((entry) => quoted(String(entry))).join(",") + "\r\n").join("");
}

/** @param {string} text */
const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
