// @ts-check
// The study tables, which Python rendered, and a table of everything in the store.

import { contents } from "./contents.js";
import { bodyOf, make } from "./dom.js";
import { withError, words } from "./format.js";
import { boxed, grid, numberButton } from "./grid.js";
import { difference } from "./series.js";

/** @type {Map<string, boolean>} */
const unfolded = new Map(); // by title: whether the user opened or closed it

export function drawTables() {
  const tables = contents.tables.map((table) => {
    const title = table.name + (table.profile === "paper" ? "" : `, profile ${table.profile}`);
    return folded(title, studyTable(table), table.name === "main");
  });
  bodyOf("tables").replaceChildren(...tables, folded("everything in this store", everything(), !tables.length));
}

/**
 * Return content that unfolds. It stays as the user left it.
 * @param {string} title
 * @param {Node} content
 * @param {boolean} usually whether it is open at first
 */
function folded(title, content, usually) {
  const summary = make("summary", { textContent: title });
  const details = make("details", { open: unfolded.get(title) ?? usually }, summary, content);
  summary.onclick = () => unfolded.set(title, !details.open); // it opens or closes after this
  return details;
}

/** @param {StudyTable} table */
function studyTable({ title, html }) {
  const place = make("div");
  place.innerHTML = html; // Python has escaped all names in it
  place.querySelectorAll("td").forEach((td) => addCommand(td, title));
  for (const table of place.querySelectorAll("table")) {
    const marker = make("span");
    table.replaceWith(marker);
    marker.replaceWith(boxed(table, title));
  }
  return place;
}

/**
 * Let the number in a table lead to its command, if it has one.
 * @param {HTMLTableCellElement} td
 * @param {string} title
 */
function addCommand(td, title) {
  const { command } = td.dataset;
  if (command === undefined) return;
  const about = td.closest("table")?.caption?.textContent ?? title;
  const button = numberButton({ text: "", command, about });
  button.append(...td.childNodes);
  td.replaceChildren(button);
  td.removeAttribute("title");
}

/** Return a table of all methods with their settings. */
function everything() {
  const heads = ["method", "MIN", "AVG", "seeds", ...contents.picked.map(words)];
  return grid(heads, contents.groups.map(rowOf), "Everything in this store");
}

/** @param {Group} group */
function rowOf(group) {
  const { settings, runs, knowsMin } = group;
  const values = contents.picked.map((name) => String(settings[name]));
  const label = group.method + difference(group, contents.groups.filter((other) => sameSettings(group, other)));
  return [label, numberOf(group, label, "min", knowsMin ? "" : "≤ "), numberOf(group, label, "avg", ""),
    `${runs.length}`, ...values];
}

/**
 * @param {Group} group
 * @param {Group} other
 */
function sameSettings(group, other) {
  return contents.picked.every((name) => other.settings[name] === group.settings[name]);
}

/**
 * @param {Group} group
 * @param {string} label
 * @param {"min" | "avg"} key
 * @param {string} sign
 */
function numberOf({ measures, command }, label, key, sign) {
  const value = measures[key];
  if (value === null) return "–";
  return { text: sign + withError(value, 1), command, about: `${contents.measures[key].title}: ${label}` };
}
