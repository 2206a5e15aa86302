// @ts-check
// What the user has chosen, and the series that follow from it.

import { readAddress, writeAddress } from "./address.js";
import { contents } from "./contents.js";
import { labelled, usualLabels } from "./series.js";
import { cellsWith, possibleSettings } from "./settings.js";

/** @import { Choice } from "./address.js" */
/** @import { Series } from "./series.js" */

/**
 * @typedef {object} Switch
 * @property {number} task the task that it leads to
 * @property {number} at iterations completed before it
 */

export let choice = readAddress();
/** @type {Series[]} */
export let allSeries = []; // those that fit the settings
/** @type {Series[]} */
export let shownSeries = []; // those of the chosen methods
/** @type {Switch[]} */
export let switches = [];
export let looks = 0; // a zoom by hand is kept until the next look

/** @type {() => void} */
let redraw = () => {};

/**
 * Set the action that follows every change of the choice.
 * @param {() => void} action
 */
export function onChange(action) {
  redraw = action;
}

/** @param {Partial<Choice>} part */
export function change(part) {
  choice = { ...choice, ...part };
  settle();
  writeAddress(choice);
  redraw();
}

/**
 * Look at a switch, or at the whole run.
 * @param {number} view
 */
export function look(view) {
  looks += 1;
  change({ view });
}

/** Take the choice from the address. */
export function restore() {
  looks += 1;
  choice = readAddress();
}

/** Make the choice possible, whatever the address asks for and whatever runs there are. */
export function settle() {
  const settings = possibleSettings(choice.settings);
  allSeries = labelled(cellsWith(settings, contents.picked), choice.together);
  const methods = knownMethods(choice.methods);
  const labels = methods ?? usualLabels(allSeries);
  shownSeries = allSeries.filter(({ label }) => labels.includes(label));
  const ends = longestEnds([...shownSeries, ...allSeries]);
  switches = ends.slice(0, -1).map((at, k) => ({ task: k + 2, at }));
  const averaged = shownSeries.some(({ group }) => group.average);
  const tasks = choice.tasks.filter((task) => (task ? task <= ends.length : averaged));
  const view = choice.view > ends.length || choice.view === 1 ? 0 : choice.view;
  choice = { ...choice, settings, methods, tasks: tasks.length ? tasks : [1], view };
}

/**
 * Return the labels, or null for the usual ones if no series has any of them.
 * @param {string[] | null} labels
 */
function knownMethods(labels) {
  if (!labels?.length) return labels;
  return allSeries.some(({ label }) => labels.includes(label)) ? labels : null;
}

/**
 * Return the ends of tasks of the series with the most tasks.
 * @param {Series[]} candidates
 */
function longestEnds(candidates) {
  return candidates.map(({ group }) => group.ends).sort((a, b) => b.length - a.length)[0];
}

/**
 * Return the number of iterations completed before a switch, or undefined if there is no such switch.
 * @param {number} task the task that the switch leads to
 */
export const switchTo = (task) => switches.find((entry) => entry.task === task)?.at;
