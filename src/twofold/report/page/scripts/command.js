// @ts-check
// The dialog with the command behind a number.

import { byId } from "./dom.js";

const NO_COMMAND = "There is no command for it: its benchmark or method was defined in Python.";

/**
 * @param {string | null} command
 * @param {string} about
 */
export function showCommand(command, about) {
  byId("command-about").textContent = about;
  byId("command-text").textContent = command ?? NO_COMMAND;
  byId("copy").hidden = !command;
  byId("copied").textContent = "";
  byId("command").showModal();
}

/** Let the dialog's buttons work. */
export function listenInDialog() {
  byId("close").onclick = () => byId("command").close();
  byId("copy").onclick = copyCommand;
}

async function copyCommand() {
  const place = byId("command-text");
  getSelection()?.selectAllChildren(place);
  try {
    await navigator.clipboard.writeText(place.textContent ?? "");
    byId("copied").textContent = "Copied.";
  } catch {
    byId("copied").textContent = "Selected: copy it with Ctrl+C.";
  }
}
