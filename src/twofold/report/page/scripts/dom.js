// @ts-check
// Elements of the page: finding them and creating them. Names go into the page as text only.

/**
 * Return the element of page.html with this id.
 * @template {keyof PageElements} Id
 * @param {Id} id
 */
export function byId(id) {
  return /** @type {PageElements[Id]} */ (document.getElementById(id));
}

/**
 * Return the part of a section below its heading.
 * @param {"verdicts" | "tables"} section
 */
export function bodyOf(section) {
  return /** @type {HTMLElement} */ (document.querySelector(`#${section} > div`));
}

/**
 * Call an action whenever the width of an element changes.
 * @param {HTMLElement} element
 * @param {() => void} action
 */
export function onWidthChange(element, action) {
  let width = element.clientWidth;
  const observer = new ResizeObserver(() => {
    if (element.clientWidth === width) return;
    width = element.clientWidth;
    action();
  });
  observer.observe(element);
}

/**
 * Return a new element with properties and children. Children that are null are left out.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Partial<HTMLElementTagNameMap[Tag]>} [properties]
 * @param {...(Node | string | null)} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** @param {string} textContent */
export const code = (textContent) => make("code", { textContent });

/**
 * Return a paragraph. Text between backticks is set as code.
 * @param {string} text
 */
export function note(text) {
  const parts = text.split("`").map((part, k) => (k % 2 ? code(part) : part));
  return make("p", { className: "note" }, ...parts);
}
