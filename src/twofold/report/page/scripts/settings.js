// @ts-check
// Settings: which values there are, and which groups have them.

import { contents } from "./contents.js";

/** @typedef {Record<string, string>} Settings a value, or ALL, per setting with a picker */

export const ALL = "*"; // any value of a setting

/**
 * Tell whether a setting needs one value at a time, because curves of several have nothing in common.
 * @param {string} name
 */
export const single = (name) => ["benchmark", "mode", "iterations"].includes(name);

/**
 * Return the groups whose settings of these names are the chosen ones.
 * @param {Settings} settings
 * @param {string[]} names
 */
export function cellsWith(settings, names) {
  const fits = (/** @type {Group} */ group, /** @type {string} */ name) =>
    settings[name] === ALL || settings[name] === String(group.settings[name]);
  return contents.groups.filter((group) => names.every((name) => fits(group, name)));
}

/**
 * Return the values of a setting that exist with the settings before it. Those with the most runs come first.
 * @param {string} name
 * @param {Settings} settings
 */
export function valuesOf(name, settings) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const group of cellsWith(settings, contents.picked.slice(0, contents.picked.indexOf(name)))) {
    const value = String(group.settings[name]);
    counts.set(value, (counts.get(value) ?? 0) + group.runs.length);
  }
  return [...counts].sort(([, a], [, b]) => b - a).map(([value]) => value);
}

/**
 * Return settings that some group has: the wanted ones as far as possible.
 * @param {Settings} wanted
 */
export function possibleSettings(wanted) {
  /** @type {Settings} */
  const settings = {};
  for (const name of contents.picked) {
    const values = valuesOf(name, settings);
    const possible = values.includes(wanted[name]) || (wanted[name] === ALL && !single(name));
    settings[name] = possible ? wanted[name] : values[0];
  }
  return settings;
}
