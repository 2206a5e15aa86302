// The elements of page.html that have an id, by that id. A test compares the ids.

interface PageElements {
  "contents": HTMLScriptElement;
  "store": HTMLElement;
  "holdings": HTMLElement;
  "watch": HTMLElement;
  "curves": HTMLElement;
  "curves-title": HTMLElement;
  "controls": HTMLFormElement;
  "picks": HTMLElement;
  "methods": HTMLFieldSetElement;
  "tasks": HTMLFieldSetElement;
  "panels": HTMLFieldSetElement;
  "show": HTMLFieldSetElement;
  "view": HTMLFieldSetElement;
  "status": HTMLElement;
  "frame": HTMLElement;
  "chart": PlotlyElement;
  "keys": HTMLElement;
  "downloads": HTMLElement;
  "gaps": HTMLElement;
  "measures": HTMLElement;
  "verdicts": HTMLElement;
  "verdicts-title": HTMLElement;
  "tables": HTMLElement;
  "tables-title": HTMLElement;
  "made": HTMLElement;
  "command": HTMLDialogElement;
  "command-title": HTMLElement;
  "command-about": HTMLElement;
  "command-text": HTMLElement;
  "copied": HTMLElement;
  "copy": HTMLButtonElement;
  "close": HTMLButtonElement;
}
