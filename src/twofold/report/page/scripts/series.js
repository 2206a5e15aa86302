// @ts-check
// Series: groups with labels and line styles that tell them apart.

import { words } from "./format.js";

/**
 * @typedef {object} Series
 * @property {Group} group
 * @property {string} label the method, with the settings that tell it from others
 * @property {string} dash
 */

/**
 * @typedef {object} Source the numbers of one seed, or the means over seeds
 * @property {number | null} seed null for means
 * @property {string | null} command
 * @property {PackedCurve[]} curves
 * @property {PackedCurve | null} average over tasks
 * @property {Gap[]} gaps
 * @property {Record<string, Value | null>} measures
 */

const DASHES = ["solid", "dash", "dot", "dashdot"];
const USUAL_OBJECTIVES = ["er", "joint"]; // shown at first, as in the paper's figure,
const USUAL_COUNT = 8; // and at most this many methods

/**
 * Return groups as series, by objective, with plain SGD first.
 * @param {Group[]} groups
 * @param {boolean} together whether all objectives share a panel
 */
export function labelled(groups, together) {
  const labels = new Repeats();
  const series = groups.map((group) => seriesOf(group, groups, labels)).sort(inOrder);
  return toldApart(series, together);
}

/**
 * @param {Group} group
 * @param {Group[]} groups
 * @param {Repeats} labels
 * @returns {Series}
 */
function seriesOf(group, groups, labels) {
  const settings = difference(group, groups);
  const repeat = labels.add(group.method + settings);
  return { group, label: group.method + settings + (repeat ? ` (${repeat + 1})` : ""), dash: group.look.dash };
}

/**
 * Return series of which those of one colour in one panel differ in their dashes, as far as there are any.
 * @param {Series[]} series
 * @param {boolean} together
 */
function toldApart(series, together) {
  const taken = new Set();
  return series.map((one) => {
    const panel = `${together ? "" : one.group.objective} ${one.group.look.colour}`;
    const dash = [one.dash, ...DASHES].find((other) => !taken.has(`${panel} ${other}`)) ?? one.dash;
    taken.add(`${panel} ${dash}`);
    return { ...one, dash };
  });
}

/** How often texts have come before. */
class Repeats {
  /** @type {Map<string, number>} */
  counts = new Map();

  /** @param {string} text */
  add(text) {
    const count = this.counts.get(text) ?? 0;
    this.counts.set(text, count + 1);
    return count;
  }
}

/**
 * @param {Series} a
 * @param {Series} b
 */
function inOrder(a, b) {
  return compare(a.group.objective, b.group.objective)
    || Number(a.group.routine !== "sgd") - Number(b.group.routine !== "sgd")
    || compare(a.label, b.label);
}

/**
 * @param {string} a
 * @param {string} b
 */
const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

/**
 * Return the settings that tell a group from others of the same method: `, eval schedule every:10`.
 * @param {Group} group
 * @param {Group[]} groups
 */
export function difference(group, groups) {
  const values = settingsOf(group);
  const rivals = groups.filter((other) => other.method === group.method).map(settingsOf);
  const differs = (/** @type {string} */ name) =>
    rivals.some((rival) => JSON.stringify(rival[name]) !== JSON.stringify(values[name]));
  return Object.keys(values).filter(differs).map((name) => `, ${words(name)} ${values[name]}`).join("");
}

/**
 * @param {Group} group
 * @returns {Record<string, unknown>}
 */
const settingsOf = (group) => ({ ...group.settings, ...group.further });

/**
 * Return the labels that are shown at first: those of the usual objectives, short methods first.
 * @param {Series[]} allSeries
 */
export function usualLabels(allSeries) {
  const usual = allSeries.filter(({ group }) => USUAL_OBJECTIVES.includes(group.objective));
  const candidates = [...(usual.length ? usual : allSeries)];
  candidates.sort((a, b) => a.group.method.length - b.group.method.length);
  return candidates.slice(0, USUAL_COUNT).map(({ label }) => label);
}

/**
 * Return the means of a series, or the numbers of each of its seeds.
 * @param {Series} series
 * @param {"mean" | "seeds"} show
 * @returns {Source[]}
 */
export function sourcesOf({ group }, show) {
  if (show === "seeds") return group.runs;
  const { command, mean, average, gaps, measures } = group;
  return [{ seed: null, command, curves: mean, average, gaps, measures }];
}

/**
 * @param {Series} series
 * @param {number | null} seed
 */
export const named = (series, seed) => series.label + (seed === null ? "" : `, seed ${seed}`);

/**
 * Return what a group measured on a task. All tasks that have a mean measured the same.
 * @param {Group} group
 * @param {number} task
 */
export const quantityOf = (group, task) => group.quantities[Math.max(task, 1) - 1];
