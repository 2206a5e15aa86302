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

/** @typedef {{ text: string, action: (button: HTMLButtonElement) => void }} ActionLink */

/** @typedef {string | NumberLink | ActionLink} Entry */

/** @type {Record<string, [number, number]>} */
const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/** @param {NumberLink} link */
export function numberButton({ text, command, about }) {
  const onclick = () => showCommand(command, about);
  return make("button", { type: "button", className: "number", textContent: text, onclick });
}

/** @param {ActionLink} link */
function actionButton({ text, action }) {
  const button = make("button", { type: "button", className: "link", textContent: text });
  button.onclick = () => action(button);
  return button;
}

/**
 * Return a table in a box. The first entry of a row is its heading. Columns of texts that are equal in all rows
 * are stated once, above the box.
 * @param {string[]} heads
 * @param {Entry[][]} rows
 * @param {string} label
 */
export function grid(heads, rows, label) {
  const common = heads.map((_, k) => k).filter((k) => k && rows.length > 1 && allEqual(rows.map((row) => row[k])));
  const kept = (/** @type {unknown} */ _, /** @type {number} */ k) => !common.includes(k);
  const head = make("tr", {}, ...heads.filter(kept).map((textContent) => make("th", { scope: "col", textContent })));
  const body = rows.map((row) => bodyRow(row.filter(kept)));
  const table = make("table", {}, make("thead", {}, head), make("tbody", {}, ...body));
  const stated = common.map((k) => `${heads[k]} ${rows[0][k]}`).join(", ");
  return make("div", {}, stated ? make("p", { className: "note common" }, `In all rows: ${stated}.`) : null,
    boxed(table, label));
}

/** @param {Entry[]} entries */
const allEqual = (entries) => typeof entries[0] === "string" && entries.every((entry) => entry === entries[0]);

/** @param {Entry[]} row */
function bodyRow([name, ...entries]) {
  const heading = make("span", { className: "name" }, ...(typeof name === "string" ? pieces(name) : [content(name)]));
  return make("tr", {}, make("th", { scope: "row" }, heading),
    ...entries.map((entry) => make("td", {}, content(entry))));
}

/**
 * Return a name that breaks between its parts if it is too long for a line.
 * @param {string} name
 */
function pieces(name) {
  return name.split(/(?<=[+,(=_-])/).flatMap((piece, k) => (k ? [make("wbr"), piece] : [piece]));
}

/** @param {Entry} entry */
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
