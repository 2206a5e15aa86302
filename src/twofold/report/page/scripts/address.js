// @ts-check
// The choice in the page's address, so that a link comes back to it.

import { contents } from "./contents.js";
import { valuesOf } from "./settings.js";

/** @import { Settings } from "./settings.js" */

/**
 * @typedef {object} Choice what the user has chosen to see
 * @property {Settings} settings
 * @property {string[] | null} methods their labels, or null for the usual ones
 * @property {number[]} tasks whose accuracy is shown; 0 for the mean over tasks
 * @property {"mean" | "seeds"} show
 * @property {boolean} together whether all objectives share a panel
 * @property {number} view 0 for the whole run, or the task that a switch leads to
 */

const MEAN = "mean"; // over tasks, in the address

/** @param {Choice} choice */
export function writeAddress({ settings, methods, tasks, show, together, view }) {
  const address = new URLSearchParams();
  for (const name of contents.picked) {
    if (valuesOf(name, settings).length > 1) address.set(name, settings[name]);
  }
  const labels = methods?.length === 0 ? [""] : methods ?? [];
  for (const label of labels) address.append("method", label);
  address.set("tasks", tasks.map((task) => task || MEAN).join(" "));
  address.set("show", show);
  if (together) address.set("panels", "one");
  if (view) address.set("view", String(view));
  history.replaceState(null, "", `#${address}`);
}

/**
 * Return the choice in the address. It may ask for what does not exist.
 * @returns {Choice}
 */
export function readAddress() {
  const address = new URLSearchParams(location.hash.slice(1));
  const words = (address.get("tasks") ?? "1").split(" ");
  const tasks = [...new Set(numbersIn(words.join(" "))), ...(words.includes(MEAN) ? [0] : [])];
  return {
    settings: settingsIn(address),
    methods: address.has("method") ? address.getAll("method").filter(Boolean) : null,
    tasks: tasks.sort((a, b) => a - b),
    show: address.get("show") === "seeds" ? "seeds" : "mean",
    together: address.get("panels") === "one",
    view: numbersIn(address.get("view") ?? "")[0] ?? 0,
  };
}

/**
 * @param {URLSearchParams} address
 * @returns {Settings}
 */
function settingsIn(address) {
  const names = contents.picked.filter((name) => address.has(name));
  return Object.fromEntries(names.map((name) => [name, address.get(name) ?? ""]));
}

/** @param {string} text */
function numbersIn(text) {
  return text.split(" ").map(Number).filter((number) => Number.isInteger(number) && number > 0);
}
