// @ts-check
// Colours and styles that all charts share, in light and dark mode.

const PALE = [236, 235, 230]; // stands for black on a dark ground

export const dark = matchMedia("(prefers-color-scheme: dark)");

/**
 * Return the value of a CSS variable.
 * @param {string} name
 */
export const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/**
 * Return the colour of a group's routine. On a dark ground all colours are lighter.
 * @param {Group} group
 * @param {number} [opacity]
 */
export function colour(group, opacity = 1) {
  const rgb = [1, 3, 5].map((at) => parseInt(group.look.colour.slice(at, at + 2), 16));
  return `rgba(${(dark.matches ? lighter(rgb) : rgb).join(",")},${opacity})`;
}

/** @param {number[]} rgb */
function lighter(rgb) {
  return Math.max(...rgb) ? rgb.map((part) => Math.round(part + 0.3 * (255 - part))) : PALE;
}

/** Return the background and font of a chart. */
export function ground() {
  const font = { family: getComputedStyle(document.body).fontFamily, size: 12, color: style("--soft") };
  return { paper_bgcolor: style("--ground"), plot_bgcolor: style("--ground"), font };
}

/**
 * Return a dashed line from the bottom to the top of a panel.
 * @param {number} x
 * @returns {PlotlyShape}
 */
export function upright(x) {
  return { type: "line", x0: x, x1: x, y0: 0, y1: 1, line: { color: style("--switch"), width: 1, dash: "dash" } };
}
