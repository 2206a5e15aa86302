// @ts-check
// Numbers and names as text.

/** @type {Record<string, string>} */
const WORDS = { lr: "learning rate", batch_size: "batch size", iterations: "iterations per task" };

/**
 * Return a setting's name in words.
 * @param {string} name
 */
export const words = (name) => WORDS[name] ?? name.replaceAll("_", " ");

/**
 * Return a text of at most this many letters. A longer one lacks its middle, since names differ at their ends.
 * @param {string} text
 * @param {number} most
 */
export function shortened(text, most) {
  if (text.length <= most) return text;
  const end = Math.floor((most - 1) / 2);
  return `${text.slice(0, most - 1 - end)}…${text.slice(text.length - end)}`;
}

/**
 * Return `task 2`. Number 0 stands for the mean over tasks.
 * @param {number} task
 */
export const taskName = (task) => (task ? `task ${task}` : "mean over tasks");

/**
 * Return `1 run`, `2 runs`.
 * @param {number} count
 * @param {string} noun
 */
export const counted = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

/**
 * Round as Python does in sentences and tables: halves go to the even digit, not always up.
 * @param {number} value
 * @param {number} decimals
 */
export function fixed(value, decimals) {
  const text = value.toFixed(decimals);
  // A number is exactly half a digit only if it is a binary fraction of this many places.
  const half = Math.abs((value * 2 ** (decimals + 1)) % 2) === 1;
  const odd = Number(text.at(-1)) % 2 === 1;
  return half && odd ? (value * (1 - Number.EPSILON)).toFixed(decimals) : text;
}

/**
 * Return `12.3 ± 0.4` for a mean. Fewer than three runs have no error.
 * @param {Value} value
 * @param {number} decimals
 */
export function withError(value, decimals) {
  if (typeof value === "number") return fixed(value, decimals);
  return fixed(value.mean, decimals) + (value.error === null ? "" : ` ± ${fixed(value.error, decimals)}`);
}

/**
 * Return `+0.3` or `−2.0`. A number that rounds to zero has no sign.
 * @param {number} value
 */
export function signed(value) {
  const text = fixed(Math.abs(value), 1);
  return (text === "0.0" ? "" : value > 0 ? "+" : "−") + text;
}

/**
 * Return as many digits as were recorded.
 * @param {number} value
 */
export const exact = (value) => Number(value.toPrecision(7));

/**
 * Escape a name for Plotly, which reads HTML and templates in texts.
 * @param {string} text
 */
export const literal = (text) => text.replace(/[&<>%]/g, (letter) => `&#${letter.charCodeAt(0)};`);
