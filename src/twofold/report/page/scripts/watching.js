// @ts-check
// Watching a study: asking the server for newer contents. A page in a file has no server.

import { replaceContents } from "./contents.js";
import { byId } from "./dom.js";

const PAUSE = 2000; // milliseconds
const HIDDEN_PAUSE = 20000; // while nobody sees the page

let tag = document.documentElement.dataset.tag; // of the contents; empty in a file

/**
 * Call an action whenever the server has newer contents.
 * @param {() => void} action
 */
export function watch(action) {
  if (!tag) return;
  byId("watch").hidden = false;
  ask(action);
}

/** @param {() => void} action */
async function ask(action) {
  try {
    const answer = await fetch("contents.json", { headers: { "If-None-Match": `"${tag}"` }, cache: "no-store" });
    if (answer.status === 200) {
      replaceContents(await answer.json());
      tag = answer.headers.get("ETag")?.replaceAll('"', "");
      action();
    }
    byId("watch").textContent = "Watching: finished runs appear here.";
  } catch {
    byId("watch").textContent = "The server does not answer: the page shows its last state.";
  }
  setTimeout(() => ask(action), document.hidden ? HIDDEN_PAUSE : PAUSE);
}
