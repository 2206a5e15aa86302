// @ts-check
// The page's header and footer, and the line that says what the chart shows.

import { quantity } from "./axes.js";
import { contents } from "./contents.js";
import { byId, code } from "./dom.js";
import { counted } from "./format.js";
import { numberButton } from "./grid.js";
import { choice, shownSeries } from "./state.js";

/** Write what the store holds, and the command that wrote the page. */
export function drawHoldings() {
  const { groups, begun, commands, store, version } = contents;
  const runs = counted(groups.reduce((sum, group) => sum + group.runs.length, 0), "run");
  const methods = counted(new Set(groups.map(({ method }) => method)).size, "method");
  const benchmarks = counted(new Set(groups.map(({ settings }) => settings.benchmark)).size, "benchmark");
  byId("store").textContent = store;
  document.title = `${store}: twofold report`;
  byId("holdings").replaceChildren(numberButton({ text: runs, command: commands.runs, about: "All runs" }),
    ` of ${methods} on ${benchmarks}`, begun ? `; ${begun} more not finished` : "");
  byId("made").replaceChildren(`Written by twofold ${version}: `, code(commands.report));
}

/** Write what the chart shows. */
export function drawStatus() {
  const text = shownSeries.length ? statusText() : "No method is chosen.";
  byId("status").textContent = text;
  byId("frame").setAttribute("aria-label", `Chart: ${text}`);
}

function statusText() {
  const { show, tasks, view } = choice;
  const way = show === "mean" ? `mean over ${seedsText()}` : "single seeds";
  const range = view ? `the switch to task ${view}` : "the whole run";
  const single = tasks.filter(Boolean);
  const places = single.length ? [`on ${single.length > 1 ? "tasks" : "task"} ${single.join(", ")}`] : [];
  const names = [...places, ...(tasks.includes(0) ? ["as the mean over tasks begun"] : [])].join(" and ");
  const measured = [...new Set(tasks.map(quantity))].join(" or ");
  return `${counted(shownSeries.length, "method")}, ${measured} ${names}, ${way}, ${range}.`;
}

function seedsText() {
  const counts = shownSeries.map(({ group }) => group.runs.length);
  const [fewest, most] = [Math.min(...counts), Math.max(...counts)];
  return (fewest < most ? `${fewest} to ` : "") + counted(most, "seed");
}
