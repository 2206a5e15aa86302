// @ts-check
// The page's contents: all its numbers, which Python wrote.

import { byId } from "./dom.js";

export let contents = /** @type {Contents} */ (JSON.parse(byId("contents").text));

/** @param {Contents} newer */
export function replaceContents(newer) {
  contents = newer;
  integers.clear();
  floats.clear();
}

/** @type {Map<string, Int32Array>} */
const integers = new Map();
/** @type {Map<string, Float32Array>} */
const floats = new Map();

/**
 * Return the integers that Python packed into a text. They are unpacked once.
 * @param {string} text
 */
export function integersIn(text) {
  const array = integers.get(text) ?? new Int32Array(bytesIn(text));
  integers.set(text, array);
  return array;
}

/**
 * Return the floats that Python packed into a text. They are unpacked once.
 * @param {string} text
 */
export function floatsIn(text) {
  const array = floats.get(text) ?? new Float32Array(bytesIn(text));
  floats.set(text, array);
  return array;
}

/** @param {string} text */
function bytesIn(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer;
}
