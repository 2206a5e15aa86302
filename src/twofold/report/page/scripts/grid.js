// @ts-check
// Tables of texts and buttons, in which the arrow keys move.

import { showCommand } from "./command.js";
import { make } from "./dom.js";

/**
 * @typedef {object} NumberLink a number that leads to its command
 * @property {string} text
 * @property {string | null} command
 * @property {string} about
 */

/** @typedef {{ text: string, action: () => void }} ActionLink */

/** @type {Record<string, [number, number]>} */
const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/** @param {NumberLink} link */
export function numberButton({ text, command, about }) {
  const onclick = () => showCommand(command, about);
  return make("button", { type: "button", className: "number", textContent: text, onclick });
}

/** @param {ActionLink} link */
function actionButton({ text, action }) {
  return make("button", { type: "button", className: "link", textContent: text, onclick: action });
}

/**
 * Return a table in a box. The first entry of a row is its heading.
 * @param {string[]} heads
 * @param {(string | NumberLink | ActionLink)[][]} rows
 * @param {string} label
 */
export function grid(heads, rows, label) {
  const head = make("tr", {}, ...heads.map((textContent) => make("th", { scope: "col", textContent })));
  const body = rows.map(([name, ...entries]) => make("tr", {},
    make("th", { scope: "row" }, content(name)), ...entries.map((entry) => make("td", {}, content(entry)))));
  return boxed(make("table", {}, make("thead", {}, head), make("tbody", {}, ...body)), label);
}

/** @param {string | NumberLink | ActionLink} entry */
function content(entry) {
  if (typeof entry === "string") return entry;
  return "action" in entry ? actionButton(entry) : numberButton(entry);
}

/**
 * Put a table into a box that scrolls. Tab reaches one of its buttons; arrow keys move on from there.
 * @param {HTMLTableElement} table
 * @param {string} label
 */
export function boxed(table, label) {
  const buttons = [...table.rows].map((row) => [...row.querySelectorAll("button")]).filter((row) => row.length);
  for (const button of buttons.flat()) button.tabIndex = -1;
  if (buttons.length) buttons[0][0].tabIndex = 0;
  table.addEventListener("keydown", (event) => moveFocus(event, buttons));
  const box = make("div", { className: "box", tabIndex: buttons.length ? -1 : 0 }, table);
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", label);
  return box;
}

/**
 * @param {KeyboardEvent} event
 * @param {HTMLButtonElement[][]} buttons
 */
function moveFocus(event, buttons) {
  const from = event.target;
  if (!(from instanceof HTMLButtonElement) || !(event.key in MOVES)) return;
  const k = buttons.findIndex((row) => row.includes(from));
  if (k < 0) return;
  event.preventDefault();
  const [down, right] = MOVES[event.key];
  const row = buttons[k + down] ?? buttons[k];
  const next = row[Math.min(buttons[k].indexOf(from) + right, row.length - 1)];
  if (!next) return;
  from.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}
