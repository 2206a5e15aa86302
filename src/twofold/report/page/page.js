// The page's program: what is chosen, the chart and tables of it, downloads, commands, watching.
// All numbers come from `contents`, which Python made; all names are put into the page as text.
"use strict";

const byId = (id) => document.getElementById(id);
let contents = JSON.parse(byId("contents").textContent);

const ALL = "*"; // of a setting: whatever its value
const ZOOM = 50; // iterations after a switch
const USUAL = ["er", "joint"]; // objectives that are shown at first, as in the paper's figure,
const MANY = 8; // and at most so many methods
const DASHES = ["solid", "dash", "dot", "dashdot"];
const WORDS = { lr: "learning rate", batch_size: "batch size", iterations: "iterations a task" };
const words = (name) => WORDS[name] ?? name.replaceAll("_", " ");

/** An element with properties and children, which are elements or text. */
function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children.filter((child) => child !== null));
  return element;
}

// ---------------------------------------------------------------- what is chosen

/* `settings`: a value or ALL for each setting one picks by; `methods`: labels, or null for the usual
   ones; `tasks`: whose accuracy; `show`: mean or seeds; `view`: 0, or the task that a switch leads to. */
const FIRST = { settings: {}, methods: null, tasks: [1], show: "mean", view: 0 };
let chosen = FIRST;

/** The values of a setting that there are, given the settings picked before it; most runs first. */
function valuesOf(name) {
  const before = contents.picked.slice(0, contents.picked.indexOf(name));
  const counts = new Map();
  for (const cell of contents.cells) {
    if (before.every((other) => fits(cell, other))) {
      const value = String(cell.settings[name]);
      counts.set(value, (counts.get(value) ?? 0) + cell.runs.length);
    }
  }
  return [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a));
}

function fits(cell, name) {
  const value = chosen.settings[name];
  return value === ALL || value === String(cell.settings[name]);
}

// Only one of each at a time: their curves have nothing in common.
const single = (name) => ["benchmark", "mode", "iterations"].includes(name);

/** Make what is chosen possible, whatever the address said and whatever there is. */
function settle() {
  for (const name of contents.picked) {
    const values = valuesOf(name);
    const wanted = chosen.settings[name];
    const possible = values.includes(wanted) || (wanted === ALL && !single(name));
    chosen.settings[name] = possible ? wanted : values[0];
  }
  const labels = series().map((one) => one.label);
  if (chosen.methods?.length && !chosen.methods.some((label) => labels.includes(label))) chosen.methods = null;
  const last = Math.max(1, ...series().map((one) => one.cell.ends.length));
  chosen.tasks = chosen.tasks.filter((task) => task <= last);
  if (!chosen.tasks.length) chosen.tasks = [1];
  if (chosen.view > last) chosen.view = 0;
}

/** The cells that fit the settings, each with a label that no other has. */
function series() {
  const cells = contents.cells.filter((cell) => contents.picked.every((name) => fits(cell, name)));
  const found = cells.map((cell) => ({ cell, suffix: difference(cell, cells) }));
  const used = new Map();
  for (const one of found) {
    const label = one.cell.method + one.suffix;
    const count = (used.get(label) ?? 0) + 1;
    used.set(label, count);
    if (count > 1) one.suffix += ` (${count})`;
    one.label = one.cell.method + one.suffix;
    one.how = one.cell.routine + one.suffix;
  }
  const looks = new Map(); // methods that differ in settings alone have one colour, but not one line
  for (const one of found) {
    const { colour, dash } = one.cell.look;
    const look = `${one.cell.objective} ${colour} ${dash}`;
    const count = looks.get(look) ?? 0;
    looks.set(look, count + 1);
    one.dash = DASHES[(DASHES.indexOf(dash) + count) % DASHES.length];
  }
  return found.sort((a, b) => compare(a.cell.objective, b.cell.objective) ||
    (b.cell.routine === "sgd") - (a.cell.routine === "sgd") || compare(a.label, b.label));
}

const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

/** The settings that tell a cell from others with the same method: `, eval every 10`. */
function difference(cell, cells) {
  const alike = cells.filter((other) => other.method === cell.method);
  const all = (one) => ({ ...one.settings, ...one.further });
  const names = Object.keys(all(cell)).filter((name) =>
    alike.some((other) => JSON.stringify(all(other)[name]) !== JSON.stringify(all(cell)[name])));
  return names.map((name) => `, ${words(name)} ${all(cell)[name]}`).join("");
}

/** The series that are shown: those chosen, or else the plainest of the paper's objectives. */
function shown() {
  const all = series();
  if (chosen.methods) return all.filter((one) => chosen.methods.includes(one.label));
  const usual = all.filter((one) => USUAL.includes(one.cell.objective));
  const plainest = (usual.length ? usual : all).sort((a, b) => a.label.length - b.label.length).slice(0, MANY);
  return series().filter((one) => plainest.some((other) => other.label === one.label));
}

/** When the shown runs switch: [[task, iterations done before it], ...]. */
function switches() {
  const longest = shown().map((one) => one.cell.ends).sort((a, b) => b.length - a.length)[0] ?? [];
  return longest.slice(0, -1).map((end, k) => [k + 2, end]);
}

function writeAddress() {
  const address = new URLSearchParams();
  for (const name of contents.picked) {
    if (valuesOf(name).length > 1) address.set(name, chosen.settings[name]);
  }
  for (const label of chosen.methods?.length === 0 ? [""] : chosen.methods ?? []) address.append("method", label);
  address.set("tasks", chosen.tasks.join(" "));
  address.set("show", chosen.show);
  if (chosen.view) address.set("view", chosen.view);
  history.replaceState(null, "", `#${address}`);
}

function readAddress() {
  const address = new URLSearchParams(location.hash.slice(1));
  chosen = { ...FIRST, settings: {} };
  for (const name of contents.picked) if (address.has(name)) chosen.settings[name] = address.get(name);
  if (address.has("method")) chosen.methods = address.getAll("method").filter(Boolean);
  const numbers = (text) => (text ?? "").split(" ").map(Number).filter((n) => Number.isInteger(n) && n > 0);
  if (address.has("tasks")) chosen.tasks = [...new Set(numbers(address.get("tasks")))].sort((a, b) => a - b);
  if (["mean", "seeds"].includes(address.get("show"))) chosen.show = address.get("show");
  chosen.view = numbers(address.get("view"))[0] ?? 0;
}

// ---------------------------------------------------------------- controls

function drawControls() {
  const focused = document.activeElement?.id;
  byId("picks").replaceChildren(...contents.picked.map(pick).filter(Boolean));
  const all = series();
  const visible = shown().map((one) => one.label);
  const boxes = all.map((one, k) => chip("checkbox", "method", `method-${k}`, one.label,
    visible.includes(one.label), () => toggleMethod(one.label), sample(one)));
  const quick = (text, labels) => make("button", { type: "button", className: "text", textContent: text,
    onclick: () => change({ methods: labels }) });
  if (all.length > 3) boxes.push(quick("all", all.map((one) => one.label)), quick("none", []));
  fill("methods", boxes);
  const last = Math.max(0, ...all.map((one) => one.cell.ends.length));
  fill("tasks", Array.from({ length: last }, (_, k) => chip("checkbox", "task", `task-${k + 1}`, `${k + 1}`,
    chosen.tasks.includes(k + 1), () => toggleTask(k + 1))));
  const ways = { mean: "mean ± standard error", seeds: "single seeds" };
  fill("show", Object.entries(ways).map(([way, text]) => chip("radio", "show", `show-${way}`, text,
    chosen.show === way, () => change({ show: way }))));
  const views = [[0, "whole run"], ...switches().map(([task]) => [task, `switch to task ${task}`])];
  fill("view", views.map(([view, text]) => chip("radio", "view", `view-${view}`, text,
    chosen.view === view, () => change({ view }))));
  if (focused) byId(focused)?.focus({ preventScroll: true });
}

function fill(id, children) {
  const fieldset = byId(id);
  fieldset.replaceChildren(fieldset.querySelector("legend"), make("div", { className: "chips" }, ...children));
}

function pick(name) {
  const values = valuesOf(name);
  if (values.length < 2 && !["benchmark", "mode"].includes(name)) return null;
  const options = values.map((value) => make("option", { value, textContent: value }));
  if (!single(name)) options.push(make("option", { value: ALL, textContent: "all" }));
  const select = make("select", { id: `pick-${name}` }, ...options);
  select.value = chosen.settings[name];
  select.onchange = () => change({ settings: { ...chosen.settings, [name]: select.value } });
  return make("label", { className: "pick" }, make("span", { textContent: words(name) }), select);
}

function chip(type, name, id, text, checked, act, picture = null) {
  const input = make("input", { type, name, id, checked, onchange: act });
  return make("label", { className: "chip" }, input, make("span", {}, picture, text));
}

/** A short line as the chart draws it. */
function sample(one) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  const line = document.createElementNS(space, "line");
  const dashes = { dash: "5 3", dot: "1.5 2.5", dashdot: "5 2 1.5 2" };
  const values = { x1: 1, x2: 21, y1: 5, y2: 5, stroke: colour(one), "stroke-width": 2.5,
    "stroke-dasharray": dashes[one.dash] ?? "none" };
  for (const [key, value] of Object.entries(values)) line.setAttribute(key, value);
  for (const [key, value] of Object.entries({ width: 22, height: 10, "aria-hidden": true })) svg.setAttribute(key, value);
  svg.append(line);
  return svg;
}

function toggleMethod(label) {
  const labels = shown().map((one) => one.label);
  change({ methods: labels.includes(label) ? labels.filter((other) => other !== label) : [...labels, label] });
}

function toggleTask(task) {
  const rest = chosen.tasks.filter((other) => other !== task);
  const tasks = rest.length < chosen.tasks.length ? rest : [...rest, task].sort((a, b) => a - b);
  change({ tasks: tasks.length ? tasks : [task] });
}

function change(what) {
  chosen = { ...chosen, ...what };
  settle();
  writeAddress();
  draw();
}

// ---------------------------------------------------------------- the chart

const dark = matchMedia("(prefers-color-scheme: dark)");
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** A routine's colour; on a dark ground black becomes white, and what is dark lighter. */
function colour(one, opacity = 1) {
  let rgb = [1, 3, 5].map((at) => parseInt(one.cell.look.colour.slice(at, at + 2), 16));
  if (dark.matches) rgb = Math.max(...rgb) ? rgb.map((part) => Math.round(part + 0.3 * (255 - part))) : [236, 235, 230];
  return `rgba(${rgb.join(",")},${opacity})`;
}

/** Numbers that Python packed; unpacked once. */
const unpacked = new Map();
function numbers(text, type) {
  if (!unpacked.has(text)) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    unpacked.set(text, new type(bytes.buffer));
  }
  return unpacked.get(text);
}
function curve(packed) {
  return { x: numbers(packed.x, Int32Array), y: numbers(packed.y, Float32Array),
    error: packed.error ? numbers(packed.error, Float32Array) : null };
}

/** What is drawn: a curve for each shown method and task, or for each of its seeds. */
function curves() {
  return shown().flatMap((one) => chosen.tasks.filter((task) => task <= one.cell.ends.length).flatMap((task) =>
    chosen.show === "mean"
      ? [{ one, task, seed: null, command: one.cell.command, ...curve(one.cell.mean[task - 1]) }]
      : one.cell.runs.map((run) => ({ one, task, seed: run.seed, command: run.command, ...curve(run.curves[task - 1]) }))));
}

/** Plotly reads some HTML in texts: names must not be read so. */
const literal = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

function drawChart() {
  const drawn = curves();
  const panels = chosen.tasks.flatMap((task) =>
    [...new Set(shown().map((one) => one.cell.objective))].map((objective) => ({ task, objective })));
  const width = byId("frame").clientWidth;
  const narrow = width < 620;
  const across = Math.min(narrow ? 1 : width < 1000 ? 2 : 3, new Set(panels.map((p) => p.objective)).size || 1);
  const rows = Math.max(1, Math.ceil(panels.length / across));
  const axis = (letter, k) => (k ? letter + (k + 1) : letter);
  const traces = drawn.flatMap((each) => {
    const k = panels.findIndex((p) => p.task === each.task && p.objective === each.one.cell.objective);
    return lines(each, { xaxis: axis("x", k), yaxis: axis("y", k) });
  });
  const named = new Set(); // in the legend, each name once
  for (const trace of traces.filter((t) => t.showlegend)) {
    trace.showlegend = !named.has(trace.name);
    named.add(trace.name);
  }
  traces.sort((a, b) => (a.fill ? 0 : 1) - (b.fill ? 0 : 1)); // bands below lines
  Plotly.react("chart", traces, layout(panels, across, rows, drawn, axis, narrow), {
    displayModeBar: false, displaylogo: false, responsive: true, doubleClick: "reset",
    showLink: false, plotlyServerURL: "", showTips: false,
  });
}

function lines(each, axes) {
  const { one, x, y, error, seed } = each;
  const name = literal(one.how);
  const common = { type: "scatter", legendgroup: name, name, ...axes };
  const sparse = x.length < 100;
  const line = { ...common, x, y, mode: sparse ? "lines+markers" : "lines", showlegend: true,
    line: { color: colour(one, seed === null ? 1 : 0.75), width: seed === null ? 1.6 : 1, dash: one.dash },
    marker: { size: 4 }, meta: literal(one.label + (seed === null ? "" : `, seed ${seed}`)),
    hovertemplate: `%{meta}<br>task ${each.task}, iteration %{x}: %{y:.1f}%<extra></extra>` };
  if (!error) return [line];
  line.customdata = error;
  line.hovertemplate = line.hovertemplate.replace("%{y:.1f}%", "%{y:.1f} ± %{customdata:.1f}%");
  const low = y.map((value, k) => value - error[k]);
  const high = y.map((value, k) => value + error[k]);
  const band = { ...common, x: [...x, ...[...x].reverse()], y: [...high, ...[...low].reverse()], mode: "lines",
    fill: "toself", fillcolor: colour(one, dark.matches ? 0.28 : 0.2), line: { width: 0 }, hoverinfo: "skip", showlegend: false };
  return [band, line];
}

/** What all charts have of the page's looks. */
function ground() {
  return { paper_bgcolor: style("--ground"), plot_bgcolor: style("--ground"), showlegend: true,
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: style("--soft") } };
}

function layout(panels, across, rows, drawn, axis, narrow) {
  const [ink, soft, line, grid] = ["--ink", "--soft", "--line", "--grid"].map(style);
  const at = switches();
  const range = xRange(at, drawn);
  const made = {
    uirevision: JSON.stringify([chosen.settings, chosen.view, chosen.tasks]),
    height: 110 + 250 * rows, margin: { l: 52, r: 16, t: 64, b: 48 },
    ...ground(), hovermode: "closest",
    dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
    legend: { orientation: "h", x: 0, y: 1 + 30 / (250 * rows), yanchor: "bottom", itemclick: false, itemdoubleclick: false,
      font: { color: ink, size: 13 }, title: { text: caption(narrow), side: "top", font: { color: soft, size: 13 } } },
    hoverlabel: { bgcolor: style("--raised"), bordercolor: line, font: { color: ink } },
    grid: { rows, columns: across, pattern: "independent", xgap: 0.08, ygap: 0.28 },
    annotations: [], shapes: [],
  };
  if (!panels.length) {
    const nothing = { text: "No method is chosen.", showarrow: false, xref: "paper", yref: "paper", x: 0.5, y: 0.5 };
    return { ...made, annotations: [nothing], xaxis: { visible: false }, yaxis: { visible: false } };
  }
  panels.forEach((panel, k) => {
    const [x, y] = [axis("x", k), axis("y", k)];
    const lowest = k + across >= panels.length;
    const common = { gridcolor: grid, linecolor: line, zeroline: false, fixedrange: !made.dragmode };
    made[x.replace("x", "xaxis")] = { ...common, range, matches: k ? "x" : undefined, showgrid: false, showline: true,
      ticks: "outside", tickcolor: line, ticklen: 4, showticklabels: lowest, ...xTicks(at),
      title: lowest ? { text: xTitle(), standoff: 8 } : undefined };
    made[y.replace("y", "yaxis")] = { ...common, range: yRange(drawn, range), matches: k ? "y" : undefined,
      showticklabels: k % across === 0, ticksuffix: "%", nticks: 6 };
    made.annotations.push({ text: `<b>${literal(panel.objective)}</b>  accuracy on task ${panel.task}`, showarrow: false,
      xref: `${x} domain`, yref: `${y} domain`, x: 0, y: 1, xanchor: "left", yanchor: "bottom", yshift: 4, font: { color: ink, size: 13 } });
    for (const [, end] of at) {
      made.shapes.push({ type: "line", xref: x, yref: `${y} domain`, x0: end, x1: end, y0: 0, y1: 1, layer: "below",
        line: { color: style("--switch"), width: 1, dash: "dash" } });
    }
  });
  return made;
}

/** The settings, for whoever sees the picture alone. */
function caption(narrow) {
  const { benchmark, mode, profile, lr, batch_size } = chosen.settings;
  const rest = Object.entries({ profile, lr, batch: batch_size }).filter(([, value]) => value !== ALL);
  const lines = [[benchmark, mode], rest.map((pair) => pair.join(" "))].map((parts) => literal(parts.join(" · ")));
  return lines.filter(Boolean).join(narrow ? "<br>" : " · ");
}

function xRange(at, drawn) {
  const position = at.find(([task]) => task === chosen.view);
  if (!position) return [0, Math.max(1, ...drawn.map(({ x }) => x[x.length - 1] ?? 1))];
  return [position[1] - 2, position[1] + ZOOM + 1];
}

function xTicks(at) {
  const position = at.find(([task]) => task === chosen.view);
  if (!position) return { nticks: 7 };
  const steps = [0, 10, 20, 30, 40, 50];
  return { tickvals: steps.map((step) => position[1] + step), ticktext: steps.map(String) };
}

const xTitle = () => (chosen.view ? `iterations after the switch to task ${chosen.view}` : "iteration");

/** Fits what is seen; of the whole run what comes after the first switch, as a first climb is from chance. */
function yRange(drawn, [first, last]) {
  let [low, high] = [Infinity, -Infinity];
  for (const { one, task, x, y, error } of drawn) {
    const learned = one.cell.ends[task - 1];
    const from = chosen.view || task === one.cell.ends.length ? first : Math.max(first, learned);
    for (let k = 0; k < x.length; k++) {
      if (x[k] < from || x[k] > last) continue;
      low = Math.min(low, y[k] - (error?.[k] ?? 0));
      high = Math.max(high, y[k] + (error?.[k] ?? 0));
    }
  }
  if (low > high) return [0, 100];
  const room = 0.05 * (high - low) || 1;
  return [low - room, high + room];
}

/** One view on, or back; from the last on to the first. */
function step(by) {
  const views = [0, ...switches().map(([task]) => task)];
  change({ view: views[(views.indexOf(chosen.view) + by + views.length) % views.length] });
}

const KEYS = {
  ArrowRight: () => step(1),
  ArrowLeft: () => step(-1),
  Home: () => change({ view: 0 }),
  s: () => change({ show: chosen.show === "mean" ? "seeds" : "mean" }),
};
byId("frame").addEventListener("keydown", (event) => {
  if (!(event.key in KEYS) || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  KEYS[event.key]();
});

// ---------------------------------------------------------------- tables under the chart

const rounded = (value, decimals) => value.toFixed(decimals);
/** `12.3 ± 0.4`; a number of one run has no error. */
const withError = (value, decimals) => typeof value === "number" ? rounded(value, decimals)
  : rounded(value.mean, decimals) + (value.error === null ? "" : ` ± ${rounded(value.error, decimals)}`);

/** What the shown gaps are: one row a method, task and switch, or one for each of its seeds. */
function gapRows() {
  const rows = [];
  for (const one of shown()) {
    const sources = chosen.show === "mean" ? [{ ...one.cell, seed: null }] : one.cell.runs;
    for (const source of sources) {
      for (const gap of source.gaps) {
        const into = one.cell.ends.indexOf(gap.switch) + 2;
        if (chosen.tasks.includes(gap.task) && (!chosen.view || chosen.view === into)) {
          rows.push({ one, into, gap, seed: source.seed, command: source.command });
        }
      }
    }
  }
  return rows;
}

function drawGaps() {
  const rows = gapRows();
  const { gap_depth: depth, recovery } = contents.measures;
  const place = byId("gaps");
  if (!rows.length) {
    place.replaceChildren(make("p", { className: "note", textContent: "No switch follows the chosen tasks in what is shown." }));
    return;
  }
  const seeds = chosen.show === "seeds" ? ["seed"] : [];
  const heads = ["method", ...seeds, "task", "switch to", "depth (points)", "lowest after", "recovered after"];
  const body = rows.map(({ one, into, gap, seed, command }) => {
    const number = (text) => ({ text, command, about: one.label + (seed === null ? "" : `, seed ${seed}`) });
    return [one.label + (one.cell.complete ? "" : " *"), ...(seeds.length ? [`${seed}`] : []), `${gap.task}`,
      { text: `task ${into}`, act: () => { change({ view: into }); byId("frame").focus(); } },
      number(withError(gap.depth, 1)), number(withError(gap.lowest_at, 0)), number(recovered(gap.recovery, one.cell.runs.length))];
  });
  const points = contents.tolerance === 1 ? "1 point" : `${contents.tolerance} points`;
  const notes = ["Depth is how far the accuracy on an old task falls below what it was at the switch, before the next one. " +
    `After so many iterations it is lowest, and after so many it is again within ${points} of what it was at the switch` +
    (chosen.show === "mean" ? "; mean ± standard error over seeds, of recovery over those that recovered." : ".")];
  if (rows.some(({ one }) => !one.cell.complete)) {
    notes.push(`* Not judged after every iteration: depth is ${depth.thinned}, recovery ${recovery.thinned}.`);
  }
  place.replaceChildren(table(heads, body, "Gaps"), ...notes.map((textContent) => make("p", { className: "note", textContent })));
}

function recovered(recovery, runs) {
  if (recovery === null) return "not recovered";
  if (typeof recovery === "number" || recovery.count === runs) return withError(recovery, 0);
  return `${withError(recovery, 0)} (${recovery.count} of ${runs} seeds)`;
}

function drawMeasures() {
  const entries = Object.entries(contents.measures);
  const rows = shown().flatMap((one) => {
    const sources = chosen.show === "mean" ? [{ ...one.cell, seed: null }] : one.cell.runs;
    return sources.map((source) => {
      const label = one.label + (source.seed === null ? "" : `, seed ${source.seed}`);
      return [label, ...entries.map(([key, measure]) => {
        const value = source.measures[key];
        const text = value === null ? "–" : withError(value, measure.unit === "iterations" ? 0 : 1);
        return value === null ? text : { text, command: source.command, about: `${measure.title} of ${label}` };
      })];
    });
  });
  const meaning = entries.flatMap(([, { title, explanation }]) =>
    [make("dt", { textContent: title }), make("dd", { textContent: explanation })]);
  byId("measures").replaceChildren(table(["method", ...entries.map(([, m]) => m.title)], rows, "Measures"), make("dl", {}, ...meaning));
}

/** A table of texts, numbers that lead to a command, and buttons; the first cell names its row. */
function table(heads, rows, label) {
  const cell = (content, k) => {
    const inner = typeof content === "string" ? content : button(content);
    return make(k ? "td" : "th", k ? {} : { scope: "row" }, inner);
  };
  const head = make("tr", {}, ...heads.map((textContent) => make("th", { scope: "col", textContent })));
  return boxed(make("table", {}, make("thead", {}, head),
    make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map(cell))))), label);
}

function button({ text, command, about, act }) {
  const made = make("button", { type: "button", className: act ? "link" : "number", textContent: text });
  made.onclick = act ?? (() => showCommand(command, about));
  return made;
}

/** A table in a box that scrolls. Tab goes to one number of it; arrow keys go on from there. */
function boxed(element, label) {
  const grid = [...element.rows].map((row) => [...row.querySelectorAll("button")]).filter((row) => row.length);
  for (const one of grid.flat()) one.tabIndex = -1;
  if (grid.length) grid[0][0].tabIndex = 0;
  element.addEventListener("keydown", (event) => {
    const row = grid.findIndex((buttons) => buttons.includes(event.target));
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (row < 0 || !move) return;
    event.preventDefault();
    const at = grid[row].indexOf(event.target);
    const next = grid[row + move[0]]?.[Math.min(at, grid[row + move[0]].length - 1) + move[1]];
    if (!next) return;
    event.target.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
  const box = make("div", { className: "box", tabIndex: grid.length ? -1 : 0 }, element);
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", label);
  return box;
}

// ---------------------------------------------------------------- what there is, verdicts, tables

const counted = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
const note = (textContent) => make("p", { className: "note", textContent });
const sectionBody = (id) => document.querySelector(`#${id} > div`);

function drawHoldings() {
  const { cells, begun, commands } = contents;
  const distinct = (of) => new Set(cells.map(of)).size;
  const runs = cells.reduce((sum, cell) => sum + cell.runs.length, 0);
  byId("store").textContent = contents.store;
  document.title = `${contents.store}: twofold report`;
  byId("holdings").replaceChildren(button({ text: counted(runs, "run"), command: commands.runs, about: "All runs" }),
    ` of ${counted(distinct((cell) => cell.method), "method")} on ` +
    counted(distinct((cell) => cell.settings.benchmark), "benchmark") + (begun ? `; ${counted(begun, "more run")} not finished` : ""));
  byId("made").replaceChildren(`Made by twofold ${contents.version}: `, make("code", { textContent: commands.report }));
}

/** `+0.3`, `−2.0`; what rounds to nothing has no sign. */
function signed(value) {
  const text = Math.abs(value).toFixed(1);
  return (text === "0.0" ? "" : value > 0 ? "+" : "−") + text;
}

function drawVerdicts() {
  const { claims, reached, unpaired, limits } = contents.verdicts;
  const groups = Object.entries(claims).map(([hypothesis, claim]) => {
    const own = reached.filter((verdict) => verdict.hypothesis === hypothesis);
    if (!own.length) return null;
    return make("div", {}, make("h3", { textContent: `${hypothesis}: ${claim}` }), make("div", { className: "effects", effects: own }),
      make("ul", { className: "verdicts" }, ...own.map(verdictItem)));
  });
  const last = reached.length ? limits : ["A verdict needs runs of a routine, and of plain SGD on the same objective with the same seeds."];
  sectionBody("verdicts").replaceChildren(...groups.filter(Boolean), ...[...unpaired, ...last].map(note));
  drawEffects();
}

/** Effects with their intervals, one below the other. */
function drawEffects() {
  for (const place of document.querySelectorAll(".effects")) {
    const own = [...place.effects].reverse(); // Plotly counts from below
    const places = new Set(own.map((verdict) => `${verdict.benchmark} ${verdict.mode} ${verdict.profile}`));
    const look = (verdict) => contents.cells.find((cell) => cell.routine === verdict.routine && cell.objective === verdict.objective);
    const colours = own.map((verdict) => colour({ cell: look(verdict) }));
    const trace = { type: "scatter", mode: "markers", x: own.map((verdict) => verdict.effect), y: own.map((_, k) => k),
      marker: { color: colours, size: 8 }, hoverinfo: "skip" };
    const bars = own.map((verdict, k) => ({ type: "line", x0: verdict.interval?.[0], x1: verdict.interval?.[1], y0: k, y1: k,
      line: { color: colours[k], width: 2 } })).filter((bar) => bar.x0 !== undefined);
    const zero = { type: "line", x0: 0, x1: 0, yref: "paper", y0: 0, y1: 1, line: { color: style("--switch"), width: 1, dash: "dash" } };
    const ends = own.flatMap((verdict) => [0, verdict.effect, ...(verdict.interval ?? [])]);
    const room = 0.08 * (Math.max(...ends) - Math.min(...ends)) || 1;
    const label = (verdict) => `${verdict.objective}+${verdict.routine}` + (places.size > 1 ? `, ${verdict.benchmark} ${verdict.mode} ${verdict.profile}` : "");
    const axis = { gridcolor: style("--grid"), zeroline: false, fixedrange: true };
    Plotly.react(place, [trace], { ...ground(), showlegend: false, height: 64 + 26 * own.length, margin: { l: 10, r: 16, t: 8, b: 44 }, shapes: [zero, ...bars],
      xaxis: { ...axis, range: [Math.min(...ends) - room, Math.max(...ends) + room],
        title: { text: "points more than with plain SGD, with intervals that hold together", standoff: 8 } },
      yaxis: { ...axis, range: [-0.7, own.length - 0.3], tickvals: own.map((_, k) => k), ticktext: own.map((verdict) => literal(label(verdict))),
        automargin: true, showgrid: false, tickfont: { color: style("--ink") } },
    }, { staticPlot: true, responsive: true });
  }
}

function verdictItem(verdict) {
  const { benchmark, mode, profile, lr, batch_size, interval, p_corrected, commands } = verdict;
  const method = `${verdict.objective}+${verdict.routine}`;
  const number = (text) => button({ text, command: commands.filter(Boolean).join("\n") || null,
    about: `${method} against ${verdict.objective}, ${verdict.metric.toUpperCase()} on ${benchmark}, ${mode}` });
  const facts = make("p", { className: "facts" }, make("b", { textContent: method }), ` ${benchmark}, ${mode}, ${profile}, lr ${lr}, batch ${batch_size}: `,
    number(`${signed(verdict.effect)} points`));
  if (interval) facts.append(", ", number(`${signed(interval[0])} to ${signed(interval[1])}`));
  if (p_corrected !== null) facts.append(", ", number(p_corrected < 0.001 ? "p < 0.001" : `p = ${p_corrected.toFixed(3)}`));
  return make("li", {}, facts, make("p", { textContent: verdict.sentence }));
}

function drawTables() {
  const made = contents.tables.map(({ name, title, profile, html }) => {
    const place = make("div");
    place.innerHTML = html; // its maker has escaped all names
    for (const cell of place.querySelectorAll("[data-command]")) {
      const about = cell.closest("table").caption?.textContent ?? title;
      const inner = button({ text: "", command: cell.dataset.command, about });
      inner.append(...cell.childNodes);
      cell.append(inner);
      cell.removeAttribute("title");
    }
    for (const one of place.querySelectorAll("table")) {
      const marker = document.createComment("");
      one.replaceWith(marker);
      marker.replaceWith(boxed(one, title));
    }
    return folded(name + (profile === "paper" ? "" : `, profile ${profile}`), place, name === "main");
  });
  sectionBody("tables").replaceChildren(...made, folded("Everything in this store", everything(), !made.length));
}

function folded(title, content, open) {
  return make("details", { open }, make("summary", { textContent: title }), content);
}

/** All methods, in the settings they were run with. */
function everything() {
  const rows = contents.cells.map((cell) => {
    const further = difference(cell, contents.cells.filter((other) =>
      contents.picked.every((name) => other.settings[name] === cell.settings[name])));
    const number = (key) => {
      const value = cell.measures[key];
      const { title } = contents.measures[key];
      if (value === null) return "–";
      return { text: (key === "min" && !cell.complete ? "≤ " : "") + withError(value, 1), command: cell.command, about: `${title} of ${cell.method}` };
    };
    return [cell.method + further, ...contents.picked.map((name) => String(cell.settings[name])),
      cell.runs.map((run) => run.seed).join(", "), number("min"), number("avg")];
  });
  return table(["method", ...contents.picked.map(words), "seeds", "MIN", "AVG"], rows, "Everything in this store");
}

// ---------------------------------------------------------------- commands

function showCommand(command, about) {
  byId("command-about").textContent = about;
  byId("command-text").textContent = command ?? "No command makes it: its benchmark was made of tensors, in Python.";
  byId("copy").hidden = !command;
  byId("copied").textContent = "";
  byId("command").showModal();
}

byId("close").onclick = () => byId("command").close();
byId("copy").onclick = async () => {
  const place = byId("command-text");
  getSelection().selectAllChildren(place);
  try {
    await navigator.clipboard.writeText(place.textContent);
    byId("copied").textContent = "Copied.";
  } catch {
    byId("copied").textContent = "Selected: copy it with Ctrl+C.";
  }
};

// ---------------------------------------------------------------- downloads

const quoted = (value) => (/[",\r\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : String(value));
const csv = (rows) => rows.map((row) => row.map(quoted).join(",") + "\r\n").join("");
const exact = (value) => Number(value.toPrecision(7)); // as many digits as were recorded

function settingsOf(one) {
  return contents.picked.map((name) => one.cell.settings[name]);
}

/** The points that are seen, of the curves that are shown. */
function curvesCsv() {
  const [first, last] = byId("chart").layout.xaxis.range;
  const rows = [["series", ...contents.picked, "method", "seed", "task", "iteration", "accuracy", "standard_error"]];
  for (const { one, task, seed, x, y, error } of curves()) {
    const whose = seed ?? `mean of ${one.cell.runs.length}`;
    for (let k = 0; k < x.length; k++) {
      if (x[k] < first || x[k] > last) continue;
      rows.push([one.label, ...settingsOf(one), one.cell.method, whose, task, x[k], exact(y[k]), error ? exact(error[k]) : ""]);
    }
  }
  return csv(rows);
}

function gapsCsv() {
  const spread = (value) => (typeof value === "number" ? [exact(value), ""] : value === null ? ["", ""] : [exact(value.mean), value.error === null ? "" : exact(value.error)]);
  const names = ["depth", "lowest_at", "recovery"];
  const rows = [["series", ...contents.picked, "method", "seed", "task", "switch", ...names.flatMap((n) => [n, `${n}_error`]), "recovered", "command"]];
  for (const { one, gap, seed, command } of gapRows()) {
    const back = gap.recovery === null ? 0 : gap.recovery.count ?? 1;
    rows.push([one.label, ...settingsOf(one), one.cell.method, seed ?? `mean of ${one.cell.runs.length}`, gap.task, gap.switch,
      ...names.flatMap((name) => spread(gap[name])), back, command ?? ""]);
  }
  return csv(rows);
}

function save(text, filename) {
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  make("a", { href: address, download: filename }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

function fileName(ending) {
  const { benchmark, mode } = chosen.settings;
  const view = chosen.view ? `-switch-${chosen.view}` : "";
  return `${benchmark}-${mode}-task-${chosen.tasks.join("-")}-${chosen.show}${view}`.replace(/[^A-Za-z0-9.-]+/g, "_") + ending;
}

byId("downloads").addEventListener("click", (event) => {
  const kind = event.target.dataset.download;
  if (kind === "curves") save(curvesCsv(), fileName(".csv"));
  else if (kind === "gaps") save(gapsCsv(), fileName("-gaps.csv"));
  else if (kind) {
    const { clientWidth: width, clientHeight: height } = byId("chart");
    Plotly.downloadImage("chart", { format: kind, filename: fileName(""), width, height, scale: kind === "png" ? 2 : 1 });
  }
});

// ---------------------------------------------------------------- all of it

function drawStatus() {
  const visible = shown();
  const way = chosen.show === "mean" ? "mean over seeds" : "single seeds";
  const view = chosen.view ? `the first ${ZOOM} iterations after the switch to task ${chosen.view}` : "the whole run";
  byId("status").textContent = visible.length
    ? `${counted(visible.length, "method")}, accuracy on ${chosen.tasks.length > 1 ? "tasks" : "task"} ${chosen.tasks.join(", ")}, ${way}, ${view}.`
    : "No method is chosen.";
  byId("frame").setAttribute("aria-label", `Chart: ${byId("status").textContent}`);
}

function draw() {
  drawControls();
  drawStatus();
  drawChart();
  drawGaps();
  drawMeasures();
}

/** All there is, again, with what is chosen as it was. */
function drawAll() {
  document.body.classList.toggle("empty", !contents.cells.length);
  drawHoldings();
  drawVerdicts();
  drawTables();
  if (!contents.cells.length) return;
  settle();
  draw();
}

function start() {
  readAddress();
  drawAll();
}

const key = (name) => make("kbd", { textContent: name });
byId("keys").append("With the chart in focus: ", key("←"), " ", key("→"), " from switch to switch, ", key("Home"), " the whole run, ", key("S"),
  " seeds or mean. Drag to zoom, double-click to go back.");
dark.addEventListener("change", drawAll);
addEventListener("hashchange", start);
document.querySelector("nav").addEventListener("click", (event) => {
  const section = document.querySelector(event.target.getAttribute("href") ?? "none");
  if (!section) return;
  event.preventDefault(); // the address is for what is chosen
  section.scrollIntoView();
  section.focus({ preventScroll: true });
});
start();

// ---------------------------------------------------------------- watching

let tag = document.documentElement.dataset.tag; // of these contents; none in a file

async function watch() {
  try {
    const answer = await fetch("contents.json", { headers: { "If-None-Match": `"${tag}"` }, cache: "no-store" });
    if (answer.status === 200) {
      tag = answer.headers.get("ETag").replaceAll('"', "");
      contents = await answer.json();
      unpacked.clear();
      drawAll();
    }
    byId("watch").textContent = "Watching: what finishes appears here.";
  } catch {
    byId("watch").textContent = "The server does not answer: this is what there was.";
  }
  setTimeout(watch, document.hidden ? 20000 : 2000);
}

if (tag) {
  byId("watch").hidden = false;
  watch();
}
