// @ts-check
// The controls above the chart: pickers of settings, methods, tasks, means or seeds, and the zoom.

import { contents } from "./contents.js";
import { byId, make } from "./dom.js";
import { shortened, words } from "./format.js";
import { ALL, single, valuesOf } from "./settings.js";
import { allSeries, change, choice, look, shownSeries, switches } from "./state.js";
import { colour } from "./theme.js";

/** @import { Series } from "./series.js" */

const ALWAYS_PICKED = ["benchmark", "mode"]; // even if there is one value
const LONG = 60; // letters of a name on a chip
const FEW = 3; // methods that need no buttons `all` and `none`
/** @type {Record<string, string>} */
const STROKES = { dash: "5 3", dot: "1.5 2.5", dashdot: "5 2 1.5 2" };

/** Draw all controls; the one in focus stays in focus. */
export function drawControls() {
  const focus = document.activeElement?.id;
  byId("picks").replaceChildren(...contents.picked.flatMap(picker));
  fill("methods", methodChips());
  fill("tasks", taskChips());
  fill("panels", panelChips());
  byId("panels").hidden = new Set(allSeries.map(({ group }) => group.objective)).size < 2;
  fill("show", showChips());
  fill("view", viewChips());
  if (focus) document.getElementById(focus)?.focus({ preventScroll: true });
}

/**
 * @param {"methods" | "tasks" | "panels" | "show" | "view"} id
 * @param {Node[]} chips
 */
function fill(id, chips) {
  const fieldset = byId(id);
  fieldset.replaceChildren(...fieldset.querySelectorAll("legend"), make("div", { className: "chips" }, ...chips));
}

/**
 * Return the picker of a setting, or nothing if there is nothing to pick.
 * @param {string} name
 */
function picker(name) {
  const values = valuesOf(name, choice.settings);
  if (values.length < 2 && !ALWAYS_PICKED.includes(name)) return [];
  const options = values.map((value) => make("option", { value, textContent: value }));
  if (!single(name)) options.push(make("option", { value: ALL, textContent: "all" }));
  const select = make("select", { id: `pick-${name}` }, ...options);
  select.value = choice.settings[name];
  select.onchange = () => change({ settings: { ...choice.settings, [name]: select.value } });
  return [make("label", { className: "pick" }, make("span", { textContent: words(name) }), select)];
}

function methodChips() {
  /** @type {Node[]} */
  const chips = allSeries.map((series, k) => chip(series.label, sample(series), {
    type: "checkbox", id: `method-${k}`, checked: shownSeries.includes(series),
    onchange: () => toggleMethod(series.label),
  }));
  if (allSeries.length <= FEW) return chips;
  return [...chips, shortcut("all", allSeries.map(({ label }) => label)), shortcut("none", [])];
}

function taskChips() {
  const averaged = switches.length && shownSeries.some(({ group }) => group.average) ? [0] : [];
  return [1, ...switches.map(({ task }) => task), ...averaged].map((task) => chip(task ? `${task}` : "mean", null, {
    type: "checkbox", id: `task-${task}`, checked: choice.tasks.includes(task), onchange: () => toggleTask(task),
  }));
}

function panelChips() {
  return [false, true].map((together) => chip(together ? "all in one" : "one per objective", null, {
    type: "radio", id: `panels-${together ? "one" : "several"}`, checked: choice.together === together, name: "panels",
    onchange: () => change({ together }),
  }));
}

function showChips() {
  /** @type {["mean" | "seeds", string][]} */
  const ways = [["mean", "mean ± standard error"], ["seeds", "single seeds"]];
  return ways.map(([show, text]) => chip(text, null, {
    type: "radio", id: `show-${show}`, checked: choice.show === show, name: "show", onchange: () => change({ show }),
  }));
}

function viewChips() {
  const views = [{ view: 0, text: "whole run" },
    ...switches.map(({ task }) => ({ view: task, text: `switch to task ${task}` }))];
  return views.map(({ view, text }) => chip(text, null, {
    type: "radio", id: `view-${view}`, checked: choice.view === view, name: "view",
    onclick: () => look(view), // not onchange: a click on the current view undoes a zoom by hand
  }));
}

/**
 * Return a checkbox or radio button with its label.
 * @param {string} text
 * @param {Node | null} picture
 * @param {Partial<HTMLInputElement>} properties
 */
function chip(text, picture, properties) {
  const name = make("span", { title: text.length > LONG ? text : "" }, picture, shortened(text, LONG));
  const input = make("input", properties);
  if (text.length > LONG) input.ariaLabel = text;
  return make("label", { className: "chip" }, input, name);
}

/**
 * Return a button that chooses these methods.
 * @param {string} text
 * @param {string[]} methods
 */
function shortcut(text, methods) {
  const onclick = () => change({ methods });
  return make("button", { type: "button", id: `methods-${text}`, className: "text", textContent: text, onclick });
}

/**
 * Return a short line in the style of the chart.
 * @param {Series} series
 */
function sample({ group, dash }) {
  const line = svg("line", {
    x1: 1, x2: 21, y1: 5, y2: 5, stroke: colour(group), "stroke-width": 2.5,
    "stroke-dasharray": STROKES[dash] ?? "none",
  });
  return svg("svg", { width: 22, height: 10, "aria-hidden": true }, line);
}

/**
 * @param {string} tag
 * @param {Record<string, string | number | boolean>} attributes
 * @param {...Node} children
 */
function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** @param {string} label */
function toggleMethod(label) {
  const labels = shownSeries.map((series) => series.label);
  const rest = labels.filter((other) => other !== label);
  change({ methods: rest.length < labels.length ? rest : [...labels, label] });
}

/** @param {number} task */
function toggleTask(task) {
  const rest = choice.tasks.filter((other) => other !== task);
  const tasks = rest.length < choice.tasks.length ? rest : [...rest, task].sort((a, b) => a - b);
  change({ tasks: tasks.length ? tasks : [task] }); // at least one
}
