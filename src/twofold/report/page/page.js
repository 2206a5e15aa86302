// The page's program: what is chosen, its chart and tables, downloads, commands, watching.
// All numbers come from `contents`, which Python made. All names go into the page as text.
"use strict";

const byId = (id) => document.getElementById(id);
let contents = JSON.parse(byId("contents").textContent);

const ALL = "*"; // of a setting: whatever its value
const ZOOM = 50; // iterations after a switch
const LEAST = 1; // points to either side that a chart of effects shows: it is not to magnify nothing
const USUAL = ["er", "joint"]; // objectives that are shown at first, as in the paper's figure,
const MANY = 8; // and at most so many methods
const DASHES = ["solid", "dash", "dot", "dashdot"];
const WORDS = { lr: "learning rate", batch_size: "batch size", iterations: "iterations a task" };
const words = (name) => WORDS[name] ?? name.replaceAll("_", " ");
const counted = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

/** An element with properties and children, which are elements or text. */
function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children.filter((child) => child !== null));
  return element;
}
const code = (textContent) => make("code", { textContent });
/** A paragraph; what stands between backticks is set as code. */
const note = (text) =>
  make("p", { className: "note" }, ...text.split("`").map((part, k) => (k % 2 ? code(part) : part)));

// ---------------------------------------------------------------- what is chosen

/* settings: a value or ALL for each setting that one picks by
   methods: labels, or null for the usual ones
   tasks: whose accuracy; show: "mean" or "seeds"
   view: 0 for the whole run, or the task that a switch leads to */
const FIRST = { settings: {}, methods: null, tasks: [1], show: "mean", view: 0 };
let chosen = FIRST;
let series = []; // what fits the settings: { cell, label, how, dash }
let shown = []; // those of the chosen methods
let switches = []; // of the shown runs: [task, iterations done before it]

// One of each at a time: curves of several have nothing in common.
const single = (name) => ["benchmark", "mode", "iterations"].includes(name);

function fits(cell, name) {
  const value = chosen.settings[name];
  return value === ALL || value === String(cell.settings[name]);
}

/** The values of a setting that there are, given those picked before it; the most runs first. */
function valuesOf(name) {
  const before = contents.picked.slice(0, contents.picked.indexOf(name));
  const counts = new Map();
  for (const cell of contents.cells.filter((one) => before.every((other) => fits(one, other)))) {
    const value = String(cell.settings[name]);
    counts.set(value, (counts.get(value) ?? 0) + cell.runs.length);
  }
  return [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a));
}

/** Make what is chosen possible, whatever the address says and whatever there is. */
function settle() {
  for (const name of contents.picked) {
    const values = valuesOf(name);
    const wanted = chosen.settings[name];
    const possible = values.includes(wanted) || (wanted === ALL && !single(name));
    chosen.settings[name] = possible ? wanted : values[0];
  }
  series = labelled(contents.cells.filter((cell) => contents.picked.every((name) => fits(cell, name))));
  const known = (label) => series.some((one) => one.label === label);
  if (chosen.methods?.length && !chosen.methods.some(known)) chosen.methods = null;
  const labels = chosen.methods ?? usualLabels();
  shown = series.filter((one) => labels.includes(one.label));
  const lengths = [...shown, ...series].map((one) => one.cell.ends).sort((a, b) => b.length - a.length);
  const ends = lengths[0];
  switches = ends.slice(0, -1).map((end, k) => [k + 2, end]);
  chosen.tasks = chosen.tasks.filter((task) => task <= ends.length);
  if (!chosen.tasks.length) chosen.tasks = [1];
  if (chosen.view > ends.length || chosen.view === 1) chosen.view = 0;
}

function usualLabels() {
  const usual = series.filter((one) => USUAL.includes(one.cell.objective));
  const plainest = [...(usual.length ? usual : series)];
  plainest.sort((a, b) => a.cell.method.length - b.cell.method.length);
  return plainest.slice(0, MANY).map((one) => one.label);
}

/** Cells with labels and looks that tell them apart, by objective; plain SGD first. */
function labelled(cells) {
  const times = new Map();
  const nth = (text) => {
    times.set(text, (times.get(text) ?? -1) + 1);
    return times.get(text);
  };
  const made = cells.map((cell) => {
    const { colour, dash } = cell.look;
    let suffix = difference(cell, cells);
    const again = nth(`label ${cell.method}${suffix}`);
    if (again) suffix += ` (${again + 1})`;
    // Methods that differ in settings alone have one colour, but not one line.
    const place = DASHES.indexOf(dash) + nth(`look ${cell.objective} ${colour} ${dash}`);
    const line = DASHES[place % DASHES.length];
    return { cell, label: cell.method + suffix, how: cell.routine + suffix, dash: line };
  });
  const order = (one) => [one.cell.objective, one.cell.routine !== "sgd", one.label];
  return made.sort((a, b) => order(a).map((part, k) => compare(part, order(b)[k])).find(Boolean) ?? 0);
}

/** The settings that tell a cell from others of the same method: `, eval every 10`. */
function difference(cell, cells) {
  const all = (one) => ({ ...one.settings, ...one.further });
  const differs = (other, name) => JSON.stringify(all(other)[name]) !== JSON.stringify(all(cell)[name]);
  const alike = cells.filter((other) => other.method === cell.method);
  const names = Object.keys(all(cell)).filter((name) => alike.some((other) => differs(other, name)));
  return names.map((name) => `, ${words(name)} ${all(cell)[name]}`).join("");
}

function writeAddress() {
  const address = new URLSearchParams();
  for (const name of contents.picked) {
    if (valuesOf(name).length > 1) address.set(name, chosen.settings[name]);
  }
  const labels = chosen.methods ?? [];
  for (const label of chosen.methods?.length === 0 ? [""] : labels) address.append("method", label);
  address.set("tasks", chosen.tasks.join(" "));
  address.set("show", chosen.show);
  if (chosen.view) address.set("view", chosen.view);
  history.replaceState(null, "", `#${address}`);
}

function readAddress() {
  const address = new URLSearchParams(location.hash.slice(1));
  const numbersIn = (text) => text.split(" ").map(Number).filter((n) => Number.isInteger(n) && n > 0);
  chosen = { ...FIRST, settings: {} };
  for (const name of contents.picked) if (address.has(name)) chosen.settings[name] = address.get(name);
  if (address.has("method")) chosen.methods = address.getAll("method").filter(Boolean);
  if (address.has("tasks")) chosen.tasks = [...new Set(numbersIn(address.get("tasks")))].sort((a, b) => a - b);
  if (address.get("show") === "seeds") chosen.show = "seeds";
  chosen.view = numbersIn(address.get("view") ?? "")[0] ?? 0;
}

function change(what) {
  chosen = { ...chosen, ...what };
  settle();
  writeAddress();
  draw();
}

let looks = 0; // what one has zoomed into by hand is kept until the next

/** Look at a switch, or at the whole run. */
function look(view) {
  looks += 1;
  change({ view });
}

// ---------------------------------------------------------------- controls

function drawControls() {
  const focused = document.activeElement?.id;
  byId("picks").replaceChildren(...contents.picked.map(pick).filter(Boolean));
  const boxes = series.map((one, k) => chip("checkbox", `method-${k}`, one.label, shown.includes(one),
    { onchange: () => toggleMethod(one.label) }, sample(one)));
  if (series.length > 3) boxes.push(quick("all", series.map((one) => one.label)), quick("none", []));
  fill("methods", boxes);
  const tasks = [1, ...switches.map(([task]) => task)];
  fill("tasks", tasks.map((task) => chip("checkbox", `task-${task}`, `${task}`, chosen.tasks.includes(task),
    { onchange: () => toggleTask(task) })));
  const ways = { mean: "mean ± standard error", seeds: "single seeds" };
  fill("show", Object.entries(ways).map(([show, text]) => chip("radio", `show-${show}`, text, chosen.show === show,
    { name: "show", onchange: () => change({ show }) })));
  const views = [[0, "whole run"], ...switches.map(([task]) => [task, `switch to task ${task}`])];
  fill("view", views.map(([view, text]) => chip("radio", `view-${view}`, text, chosen.view === view,
    { name: "view", onclick: () => look(view) }))); // a click on what is chosen undoes a zoom by hand
  if (focused) byId(focused)?.focus({ preventScroll: true });
}

function fill(id, children) {
  const fieldset = byId(id);
  fieldset.replaceChildren(fieldset.querySelector("legend"), make("div", { className: "chips" }, ...children));
}

/** A choice of a setting's values, where there are several. */
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

function chip(type, id, text, checked, properties, picture = null) {
  const input = make("input", { type, id, checked, ...properties });
  return make("label", { className: "chip" }, input, make("span", {}, picture, text));
}

function quick(text, methods) {
  const onclick = () => change({ methods });
  return make("button", { type: "button", id: `methods-${text}`, className: "text", textContent: text, onclick });
}

/** A short line as the chart draws it. */
function sample(one) {
  const element = (tag, attributes, ...children) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  };
  const dashes = { dash: "5 3", dot: "1.5 2.5", dashdot: "5 2 1.5 2" }[one.dash] ?? "none";
  const ends = { x1: 1, x2: 21, y1: 5, y2: 5 };
  const line = element("line", { ...ends, stroke: colour(one), "stroke-width": 2.5, "stroke-dasharray": dashes });
  return element("svg", { width: 22, height: 10, "aria-hidden": true }, line);
}

function toggleMethod(label) {
  const labels = shown.map((one) => one.label);
  change({ methods: labels.includes(label) ? labels.filter((other) => other !== label) : [...labels, label] });
}

function toggleTask(task) {
  const rest = chosen.tasks.filter((other) => other !== task);
  const tasks = rest.length < chosen.tasks.length ? rest : [...rest, task].sort((a, b) => a - b);
  change({ tasks: tasks.length ? tasks : [task] }); // one there must be
}

// ---------------------------------------------------------------- the chart

const dark = matchMedia("(prefers-color-scheme: dark)");
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** A routine's colour. On a dark ground black becomes white, and the others lighter. */
function colour({ cell }, opacity = 1) {
  let rgb = [1, 3, 5].map((at) => parseInt(cell.look.colour.slice(at, at + 2), 16));
  const lighter = (part) => Math.round(part + 0.3 * (255 - part));
  if (dark.matches) rgb = Math.max(...rgb) ? rgb.map(lighter) : [236, 235, 230];
  return `rgba(${rgb.join(",")},${opacity})`;
}

const unpacked = new Map();

/** The numbers that Python packed into a text; unpacked once. */
function numbers(text, type) {
  if (!unpacked.has(text)) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    unpacked.set(text, new type(bytes.buffer));
  }
  return unpacked.get(text);
}

/** What is drawn: a curve for each shown method and chosen task, or for each of its seeds. */
function curves() {
  return shown.flatMap((one) => {
    const sources = chosen.show === "mean" ? [{ seed: null, curves: one.cell.mean }] : one.cell.runs;
    const tasks = chosen.tasks.filter((task) => task <= one.cell.ends.length);
    return tasks.flatMap((task) => sources.map(({ seed, curves: packed }) => {
      const { x, y, error } = packed[task - 1];
      return { one, task, seed, x: numbers(x, Int32Array), y: numbers(y, Float32Array),
        error: error ? numbers(error, Float32Array) : null };
    }));
  });
}

/** Plotly reads some HTML and templates in texts; names must not be read so. */
const literal = (text) => String(text).replace(/[&<>%]/g, (letter) => `&#${letter.charCodeAt(0)};`);
const named = (one, seed) => one.label + (seed === null ? "" : `, seed ${seed}`);
const axisId = (letter, k) => (k ? letter + (k + 1) : letter);

const roomFor = (width) => (width < 620 ? 1 : width < 1000 ? 2 : 3); // panels beside one another
let room = 0;

/** Panels: below one another for tasks, beside one another for objectives, as far as there is room. */
function drawChart() {
  const objectives = [...new Set(shown.map((one) => one.cell.objective))];
  const panels = chosen.tasks.flatMap((task) => objectives.map((objective) => ({ task, objective })));
  room = roomFor(byId("frame").clientWidth);
  const across = Math.max(1, Math.min(room, objectives.length));
  const drawn = curves();
  const traces = drawn.flatMap((each) => {
    const k = panels.findIndex((p) => p.task === each.task && p.objective === each.one.cell.objective);
    return lines(each, { xaxis: axisId("x", k), yaxis: axisId("y", k) });
  });
  const names = new Set();
  for (const trace of traces.filter((one) => one.showlegend)) {
    trace.showlegend = !names.has(trace.name); // each once
    names.add(trace.name);
  }
  traces.sort((a, b) => Boolean(b.fill) - Boolean(a.fill)); // bands below lines
  const config = { displayModeBar: false, responsive: true, showTips: false, doubleClick: false };
  Plotly.react("chart", traces, layout(panels, across, drawn), config);
  byId("chart").removeAllListeners("plotly_doubleclick"); // by itself it goes back to the first view of all
  byId("chart").on("plotly_doubleclick", () => look(chosen.view));
}

new ResizeObserver(([{ contentRect }]) => {
  if (!room || roomFor(contentRect.width) === room) return;
  drawChart();
  document.querySelectorAll(".effects").forEach(drawEffects);
}).observe(byId("frame"));

function lines({ one, task, seed, x, y, error }, axes) {
  const name = literal(one.how);
  const common = { type: "scatter", legendgroup: name, name, ...axes };
  // Routines agree until one projects: a thinner line does not hide those that were drawn before.
  const place = shown.filter((other) => other.cell.objective === one.cell.objective).indexOf(one);
  const width = seed === null ? Math.max(2.2 - 0.3 * place, 1.2) : 1.1;
  const line = {
    ...common, x, y, showlegend: true, mode: x.length < 100 ? "lines+markers" : "lines", marker: { size: 4 },
    line: { color: colour(one, seed === null ? 1 : 0.75), width, dash: one.dash }, meta: literal(named(one, seed)),
    hovertemplate: `%{meta}<br>task ${task}, iteration %{x}: %{y:.1f}%<extra></extra>`,
  };
  if (!error) return [line];
  line.customdata = error;
  line.hovertemplate = line.hovertemplate.replace("%{y:.1f}", "%{y:.1f} ± %{customdata:.1f}");
  const [above, below] = [1, -1].map((side) => [...y].map((value, k) => value + side * error[k]));
  const band = {
    ...common, x: [...x, ...[...x].reverse()], y: [...above, ...below.reverse()], mode: "lines", line: { width: 0 },
    fill: "toself", fillcolor: colour(one, dark.matches ? 0.28 : 0.2), hoverinfo: "skip", showlegend: false,
  };
  return [band, line];
}

/** What all charts have of the page's looks. */
function ground() {
  const font = { family: getComputedStyle(document.body).fontFamily, size: 12, color: style("--soft") };
  return { paper_bgcolor: style("--ground"), plot_bgcolor: style("--ground"), font };
}

function layout(panels, across, drawn) {
  const [ink, soft, line, grid] = ["--ink", "--soft", "--line", "--grid"].map(style);
  const rows = Math.max(1, Math.ceil(panels.length / across));
  const movable = !matchMedia("(pointer: coarse)").matches; // a finger that drags is to scroll the page
  const made = {
    ...ground(), height: 110 + 250 * rows, margin: { l: 52, r: 16, t: 64, b: 48 }, annotations: [], shapes: [],
    uirevision: JSON.stringify([looks, chosen.settings, chosen.tasks]), hovermode: "closest",
    hoverlabel: { bgcolor: style("--raised"), bordercolor: line, font: { color: ink } },
    dragmode: movable ? "zoom" : false,
    grid: { rows, columns: across, pattern: "independent", xgap: 0.08, ygap: 0.25 }, showlegend: true,
    legend: {
      orientation: "h", x: 0, y: 1 + 30 / (250 * rows), yanchor: "bottom", itemclick: false, itemdoubleclick: false,
      font: { color: ink, size: 13 }, title: { text: caption(), side: "top", font: { color: soft, size: 13 } },
    },
  };
  if (!panels.length) {
    const nothing = { text: "No method is chosen.", showarrow: false, xref: "paper", yref: "paper", x: 0.5, y: 0.5 };
    return { ...made, annotations: [nothing], xaxis: { visible: false }, yaxis: { visible: false } };
  }
  const range = xRange(drawn);
  const axis = { gridcolor: grid, linecolor: line, zeroline: false, fixedrange: !movable };
  const ticks = { ticks: "outside", tickcolor: line, ticklen: 4, ...xTicks() };
  const xaxis = { ...axis, ...ticks, range, showgrid: false, showline: true };
  const yaxis = { ...axis, range: yRange(drawn, range), ticksuffix: "%", nticks: 6 };
  panels.forEach(({ task, objective }, k) => {
    const [x, y] = [axisId("x", k), axisId("y", k)];
    const lowest = k + across >= panels.length;
    const title = lowest ? { text: xTitle(), standoff: 8 } : undefined;
    made[x.replace("x", "xaxis")] = { ...xaxis, matches: k ? "x" : undefined, showticklabels: lowest, title };
    made[y.replace("y", "yaxis")] = { ...yaxis, matches: k ? "y" : undefined, showticklabels: k % across === 0 };
    made.annotations.push({
      text: `<b>${literal(objective)}</b>  accuracy on task ${task}`, font: { color: ink, size: 13 }, showarrow: false,
      xref: `${x} domain`, yref: `${y} domain`, x: 0, y: 1, xanchor: "left", yanchor: "bottom", yshift: 4,
    });
    for (const [, end] of switches) {
      made.shapes.push({ ...upright(end), xref: x, yref: `${y} domain`, layer: "below" });
    }
  });
  return made;
}

/** A dashed line across a panel. */
function upright(x) {
  return { type: "line", x0: x, x1: x, y0: 0, y1: 1, line: { color: style("--switch"), width: 1, dash: "dash" } };
}

/** The settings, for whoever sees the picture alone. */
function caption() {
  const { benchmark, mode, profile, lr, batch_size: batch } = chosen.settings;
  const rest = Object.entries({ profile, lr, batch }).filter(([, value]) => value !== ALL);
  const parts = [[benchmark, mode], rest.map((pair) => pair.join(" "))].map((part) => literal(part.join(" · ")));
  return parts.filter(Boolean).join(room === 1 ? "<br>" : " · ");
}

const viewed = () => switches.find(([task]) => task === chosen.view)?.[1];
const xTitle = () => (chosen.view ? `iterations after the switch to task ${chosen.view}` : "iteration");

function xRange(drawn) {
  const start = viewed();
  const last = Math.max(1, ...drawn.map(({ one }) => one.cell.ends.at(-1)));
  if (start === undefined) return [0, last];
  const next = switches.find(([task]) => task === chosen.view + 1)?.[1] ?? last;
  return [start - 2, Math.min(start + ZOOM, next) + 1]; // not into the next task
}

function xTicks() {
  const start = viewed();
  if (start === undefined) return { nticks: 7 };
  const steps = [0, 1, 2, 3, 4, 5].map((tenth) => (tenth * ZOOM) / 5);
  return { tickvals: steps.map((n) => start + n), ticktext: steps.map(String) };
}

/** Fits what is seen; of a whole run what comes after the task was learned: it began by chance. */
function yRange(drawn, [first, last]) {
  let [low, high] = [Infinity, -Infinity];
  for (const { one, task, x, y, error } of drawn) {
    const never = task === one.cell.ends.length; // nothing comes after it
    const from = chosen.view || never ? first : one.cell.ends[task - 1];
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
  const views = [0, ...switches.map(([task]) => task)];
  look(views[(views.indexOf(chosen.view) + by + views.length) % views.length]);
}

const KEYS = {
  ArrowRight: () => step(1),
  ArrowLeft: () => step(-1),
  Home: () => look(0),
  s: () => change({ show: chosen.show === "mean" ? "seeds" : "mean" }),
};
byId("frame").addEventListener("keydown", (event) => {
  const act = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  act();
});

// ---------------------------------------------------------------- tables under the chart

/** As Python writes it in sentences and tables: halves go to the even digit, and not always up. */
function fixed(value, decimals) {
  const text = value.toFixed(decimals);
  // A half of the last digit is a binary fraction of just so many places, or it is not exactly one.
  const half = Math.abs((value * 2 ** (decimals + 1)) % 2) === 1;
  const odd = Number(text.at(-1)) % 2 === 1;
  return half && odd ? (value * (1 - Number.EPSILON)).toFixed(decimals) : text;
}

/** `12.3 ± 0.4` of a mean; a number of one run has no error. */
function withError(value, decimals) {
  if (typeof value === "number") return fixed(value, decimals);
  return fixed(value.mean, decimals) + (value.error === null ? "" : ` ± ${fixed(value.error, decimals)}`);
}

/** The means of a shown method, or what each of its seeds has. */
const sourcesOf = (one) => (chosen.show === "mean" ? [{ ...one.cell, seed: null }] : one.cell.runs);

/** The gaps that are seen: one for each method, or seed, and task and switch. */
function gapRows() {
  return shown.flatMap((one) => sourcesOf(one).flatMap(({ seed, command, gaps }) => gaps
    .map((gap) => ({ one, seed, command, gap, into: one.cell.ends.indexOf(gap.switch) + 2 }))
    .filter(({ gap, into }) => chosen.tasks.includes(gap.task) && (!chosen.view || chosen.view === into))));
}

function drawGaps() {
  const rows = gapRows();
  if (!rows.length) {
    byId("gaps").replaceChildren(note("No switch follows the chosen tasks in what is shown."));
    return;
  }
  const seeds = chosen.show === "seeds";
  const measured = ["depth (points)", "lowest after", "recovered after"];
  const heads = ["method", ...(seeds ? ["seed"] : []), "task", "switch to", ...measured];
  const body = rows.map(({ one, seed, command, gap, into }) => {
    const about = `The gap of task ${gap.task} at the switch to task ${into}: ${named(one, seed)}`;
    const number = (text) => ({ text, command, about });
    const zoom = { text: `task ${into}`, act: () => { look(into); byId("frame").focus(); } };
    return [one.label + (one.cell.complete ? "" : " *"), ...(seeds ? [`${seed}`] : []), `${gap.task}`, zoom,
      number(withError(gap.depth, 1)), number(withError(gap.lowest_at, 0)), number(recovered(gap.recovery, one))];
  });
  const { gap_depth: depth, recovery } = contents.measures;
  const points = counted(contents.tolerance, "point");
  const over = seeds ? "." : "; mean ± standard error over seeds, of recovery over those that recovered.";
  const notes = ["Depth is how far the accuracy on an old task falls below what it was at the switch, before the " +
    "next one. After so many iterations it is lowest, and after so many it is again within " +
    `${points} of what it was at the switch${over}`];
  if (rows.some(({ one }) => !one.cell.complete)) {
    notes.push(`* Not judged after every iteration: depth is ${depth.thinned}, recovery ${recovery.thinned}.`);
  }
  byId("gaps").replaceChildren(table(heads, body, "Gaps"), ...notes.map(note));
}

function recovered(recovery, { cell }) {
  if (recovery === null) return "not recovered";
  if (typeof recovery === "number" || recovery.count === cell.runs.length) return withError(recovery, 0);
  return `${withError(recovery, 0)} (${recovery.count} of ${cell.runs.length} seeds)`;
}

function drawMeasures() {
  if (!byId("measures").parentElement.open) return;
  const entries = Object.entries(contents.measures);
  const rows = shown.flatMap((one) => sourcesOf(one).map(({ seed, command, measures }) => {
    const number = ([key, { title, unit }]) => {
      if (measures[key] === null) return "–";
      const text = withError(measures[key], unit === "iterations" ? 0 : 1);
      return { text, command, about: `${title}: ${named(one, seed)}` };
    };
    return [named(one, seed), ...entries.map(number)];
  }));
  const meanings = entries.flatMap(([, { title, explanation }]) =>
    [make("dt", { textContent: title }), make("dd", { textContent: explanation })]);
  const heads = ["method", ...entries.map(([, { title }]) => title)];
  byId("measures").replaceChildren(table(heads, rows, "Measures"), make("dl", {}, ...meanings));
}

/** A table of texts and buttons; the first cell of a row names it. */
function table(heads, rows, label) {
  const head = make("tr", {}, ...heads.map((textContent) => make("th", { scope: "col", textContent })));
  const cell = (content, k) =>
    make(k ? "td" : "th", k ? {} : { scope: "row" }, typeof content === "string" ? content : button(content));
  const body = rows.map((row) => make("tr", {}, ...row.map(cell)));
  return boxed(make("table", {}, make("thead", {}, head), make("tbody", {}, ...body)), label);
}

/** A number that leads to its command; or what else there is to do. */
function button({ text, command, about, act }) {
  const onclick = act ?? (() => showCommand(command, about));
  return make("button", { type: "button", className: act ? "link" : "number", textContent: text, onclick });
}

const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/** A table in a box that scrolls. Tab goes to one number of it, arrow keys go on from there. */
function boxed(element, label) {
  const grid = [...element.rows].map((row) => [...row.querySelectorAll("button")]).filter((row) => row.length);
  for (const one of grid.flat()) one.tabIndex = -1;
  if (grid.length) grid[0][0].tabIndex = 0;
  element.addEventListener("keydown", (event) => {
    const from = grid.findIndex((row) => row.includes(event.target));
    if (from < 0 || !(event.key in MOVES)) return;
    event.preventDefault();
    const [down, right] = MOVES[event.key];
    const row = grid[from + down] ?? grid[from];
    const next = row[Math.min(grid[from].indexOf(event.target) + right, row.length - 1)];
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

const bodyOf = (section) => document.querySelector(`#${section} > div`);

function drawHoldings() {
  const { cells, begun, commands, store, version } = contents;
  const distinct = (of) => new Set(cells.map(of)).size;
  const runs = counted(cells.reduce((sum, cell) => sum + cell.runs.length, 0), "run");
  byId("store").textContent = store;
  document.title = `${store}: twofold report`;
  byId("holdings").replaceChildren(button({ text: runs, command: commands.runs, about: "All runs" }),
    ` of ${counted(distinct((cell) => cell.method), "method")} on `,
    counted(distinct((cell) => cell.settings.benchmark), "benchmark"), begun ? `; ${begun} more not finished` : "");
  byId("made").replaceChildren(`Made by twofold ${version}: `, code(commands.report));
}

function drawVerdicts() {
  const { claims, reached, notes } = contents.verdicts;
  const groups = Object.entries(claims).map(([hypothesis, claim]) => {
    const own = reached.filter((verdict) => verdict.hypothesis === hypothesis);
    if (!own.length) return null;
    return make("div", {}, make("h3", { textContent: `${hypothesis}: ${claim}` }),
      make("div", { className: "effects", verdicts: own }),
      make("ul", { className: "verdicts" }, ...own.map(verdictItem)));
  });
  bodyOf("verdicts").replaceChildren(...groups.filter(Boolean), ...notes.map(note));
  document.querySelectorAll(".effects").forEach(drawEffects);
}

const methodOf = (verdict) => `${verdict.objective}+${verdict.routine}`;
const placeOf = (verdict) => [verdict.benchmark, verdict.mode, verdict.profile].join(", ");

/** `+0.3`, `−2.0`; what rounds to nothing has no sign. */
function signed(value) {
  const text = fixed(Math.abs(value), 1);
  return (text === "0.0" ? "" : value > 0 ? "+" : "−") + text;
}

function verdictItem(verdict) {
  const { lr, batch_size, effect, interval, p_corrected: p, commands, metric, sentence } = verdict;
  const about = `${metric.toUpperCase()} of ${methodOf(verdict)} against ${verdict.objective}: ${placeOf(verdict)}`;
  const number = (text) => button({ text, command: commands.filter(Boolean).join("\n") || null, about });
  const facts = make("p", { className: "facts" }, make("b", { textContent: methodOf(verdict) }),
    ` ${placeOf(verdict)}, lr ${lr}, batch ${batch_size}: `, number(`${signed(effect)} points`));
  if (interval) facts.append(", ", number(interval.map(signed).join(" to ")));
  if (p !== null) facts.append(", ", number(p < 0.001 ? "p < 0.001" : `p = ${fixed(p, 3)}`));
  return make("li", {}, facts, make("p", { textContent: sentence }));
}

/** The effects with their intervals, one below the other. */
function drawEffects(place) {
  const own = [...place.verdicts].reverse(); // Plotly counts from below
  const rows = own.map((_, k) => k);
  const everywhere = new Set(own.map(placeOf)).size > 1;
  const names = own.map((one) => literal(methodOf(one) + (everywhere ? `, ${placeOf(one)}` : "")));
  const withRoutine = (routine) => contents.cells.find((cell) => cell.routine === routine);
  const colours = own.map(({ routine }) => colour({ cell: withRoutine(routine) }));
  const bars = rows.filter((k) => own[k].interval).map((k) => {
    const [x0, x1] = own[k].interval;
    return { type: "line", x0, x1, y0: k, y1: k, line: { color: colours[k], width: 2 } };
  });
  const ends = own.flatMap(({ effect, interval }) => [-LEAST, LEAST, effect, ...(interval ?? [])]);
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const more = 0.08 * (high - low);
  const axis = { gridcolor: style("--grid"), zeroline: false };
  const marker = { color: colours, size: 8, symbol: own.map(({ interval }) => (interval ? "circle" : "circle-open")) };
  const narrow = place.clientWidth < 480; // names above the bars, not beside them
  const hollow = bars.length < own.length ? `${narrow ? "<br>" : " "}(hollow: no interval)` : "";
  const below = 44 + (narrow && hollow ? 16 : 0);
  const height = 20 + below + (narrow ? 40 : 26) * own.length;
  place.style.height = `${height}px`; // Plotly forgets its own when it fits a chart to a resized window
  const effects = { type: "scatter", mode: "markers", x: own.map(({ effect }) => effect), y: rows, marker };
  Plotly.react(place, [effects], {
    ...ground(), showlegend: false, margin: { l: 10, r: 16, t: 8, b: below }, height,
    shapes: [{ ...upright(0), yref: "paper" }, ...bars],
    xaxis: { ...axis, range: [low - more, high + more],
      title: { text: `points more than plain SGD${hollow}`, standoff: 8 } },
    yaxis: { ...axis, range: [-0.7, own.length - 0.3], tickvals: rows, ticktext: names, automargin: true,
      showgrid: false, tickfont: { color: style("--ink") }, showticklabels: !narrow },
    annotations: narrow ? rows.map((k) => ({ text: names[k], font: { color: style("--ink") }, showarrow: false,
      xref: "paper", x: 0, xanchor: "left", y: k, yanchor: "bottom", yshift: 4 })) : [],
  }, { staticPlot: true, responsive: true });
}

function drawTables() {
  const made = contents.tables.map(({ name, title, profile, html }) => {
    const place = make("div");
    place.innerHTML = html; // whoever made it has escaped all names
    for (const cell of place.querySelectorAll("td[data-command]")) {
      const about = cell.closest("table").caption?.textContent ?? title;
      const inner = button({ text: "", command: cell.dataset.command, about });
      inner.append(...cell.childNodes);
      cell.replaceChildren(inner);
      cell.removeAttribute("title");
    }
    for (const one of place.querySelectorAll("table")) {
      const here = make("span");
      one.replaceWith(here);
      here.replaceWith(boxed(one, title));
    }
    return folded(name + (profile === "paper" ? "" : `, profile ${profile}`), place, name === "main");
  });
  bodyOf("tables").replaceChildren(...made, folded("everything in this store", everything(), !made.length));
}

const unfolded = new Map(); // by title: whether somebody wanted it open

function folded(title, content, usually) {
  const summary = make("summary", { textContent: title });
  const details = make("details", { open: unfolded.get(title) ?? usually }, summary, content);
  summary.onclick = () => unfolded.set(title, !details.open); // it opens after that
  return details;
}

/** All methods, in the settings they were run with. */
function everything() {
  const heads = ["method", ...contents.picked.map(words), "seeds", "MIN", "AVG"];
  const rows = contents.cells.map((cell) => {
    const alike = (other) => contents.picked.every((name) => other.settings[name] === cell.settings[name]);
    const label = cell.method + difference(cell, contents.cells.filter(alike));
    const number = (key, sign) => {
      if (cell.measures[key] === null) return "–";
      const about = `${contents.measures[key].title}: ${label}`;
      return { text: sign + withError(cell.measures[key], 1), command: cell.command, about };
    };
    return [label, ...contents.picked.map((name) => String(cell.settings[name])), `${cell.runs.length}`,
      number("min", cell.complete ? "" : "≤ "), number("avg", "")];
  });
  return table(heads, rows, "Everything in this store");
}

// ---------------------------------------------------------------- commands

function showCommand(command, about) {
  byId("command-about").textContent = about;
  byId("command-text").textContent = command ?? "No command makes it: its benchmark or method was made in Python.";
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

const exact = (value) => Number(value.toPrecision(7)); // as many digits as were recorded

function csv(rows) {
  const quoted = (value) => (/[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  return rows.map((row) => row.map((value) => quoted(String(value))).join(",") + "\r\n").join("");
}

const whoseHeads = () => ["series", ...contents.picked, "method", "seed", "task"];
const whose = ({ label, cell }, seed, task) => [label, ...contents.picked.map((name) => cell.settings[name]),
  cell.method, seed ?? `mean of ${cell.runs.length}`, task];

/** The points that are seen. */
function curvesCsv() {
  const [first, last] = byId("chart").layout.xaxis.range ?? [0, 0];
  const rows = [[...whoseHeads(), "iteration", "accuracy", "standard_error"]];
  for (const { one, seed, task, x, y, error } of curves()) {
    for (let k = 0; k < x.length; k++) {
      if (x[k] < first || x[k] > last) continue;
      rows.push([...whose(one, seed, task), x[k], exact(y[k]), error ? exact(error[k]) : ""]);
    }
  }
  return csv(rows);
}

function gapsCsv() {
  const names = ["depth", "lowest_at", "recovery"];
  const pair = (value) => {
    if (value === null) return ["", ""];
    if (typeof value === "number") return [exact(value), ""];
    return [exact(value.mean), value.error === null ? "" : exact(value.error)];
  };
  const heads = names.flatMap((name) => [name, `${name}_error`]);
  const rows = [[...whoseHeads(), "switch", ...heads, "recovered", "command"]];
  for (const { one, seed, gap, command } of gapRows()) {
    const count = gap.recovery === null ? 0 : gap.recovery.count ?? 1;
    const values = names.flatMap((name) => pair(gap[name]));
    rows.push([...whose(one, seed, gap.task), gap.switch, ...values, count, command ?? ""]);
  }
  return csv(rows);
}

function save(text, filename) {
  const href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  make("a", { href, download: filename }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60000);
}

function savePicture(format, filename) {
  const { clientWidth: width, clientHeight: height } = byId("chart");
  Plotly.downloadImage("chart", { format, filename, width, height, scale: format === "png" ? 2 : 1 });
}

byId("downloads").addEventListener("click", (event) => {
  const kind = event.target.dataset.download;
  const { benchmark, mode } = chosen.settings;
  const view = chosen.view ? ["switch", chosen.view] : [];
  const parts = [benchmark, mode, "task", ...chosen.tasks, chosen.show, ...view];
  const name = parts.join("-").replace(/[^A-Za-z0-9.-]+/g, "_");
  if (kind === "curves") save(curvesCsv(), `${name}.csv`);
  else if (kind === "gaps") save(gapsCsv(), `${name}-gaps.csv`);
  else if (kind) savePicture(kind, name);
});

// ---------------------------------------------------------------- all of it

function drawStatus() {
  const seeds = shown.map((one) => one.cell.runs.length);
  const [fewest, most] = [Math.min(...seeds), Math.max(...seeds)];
  const over = fewest < most ? `${fewest} to ${counted(most, "seed")}` : counted(most, "seed");
  const way = chosen.show === "mean" ? `mean over ${over}` : "single seeds";
  const view = chosen.view ? `the switch to task ${chosen.view}` : "the whole run";
  const tasks = `${chosen.tasks.length > 1 ? "tasks" : "task"} ${chosen.tasks.join(", ")}`;
  const said = `${counted(shown.length, "method")}, accuracy on ${tasks}, ${way}, ${view}.`;
  byId("status").textContent = shown.length ? said : "No method is chosen.";
  byId("frame").setAttribute("aria-label", `Chart: ${byId("status").textContent}`);
}

function draw() {
  drawControls();
  drawStatus();
  drawChart();
  drawGaps();
  drawMeasures();
}

/** All there is, with what is chosen as it was. */
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
  looks += 1;
  readAddress();
  drawAll();
}

byId("measures").parentElement.addEventListener("toggle", drawMeasures);
dark.addEventListener("change", drawAll);
addEventListener("hashchange", start);
document.querySelector("nav").addEventListener("click", (event) => {
  if (!event.target.hash) return;
  event.preventDefault(); // the address is for what is chosen
  const section = document.querySelector(event.target.hash);
  section.scrollIntoView();
  section.focus({ preventScroll: true });
});
start();

// ---------------------------------------------------------------- watching

let tag = document.documentElement.dataset.tag; // of these contents; there is none in a file

async function watch() {
  try {
    const answer = await fetch("contents.json", { headers: { "If-None-Match": `"${tag}"` }, cache: "no-store" });
    if (answer.status === 200) {
      contents = await answer.json();
      tag = answer.headers.get("ETag").replaceAll('"', "");
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
