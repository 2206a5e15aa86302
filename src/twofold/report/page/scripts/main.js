// @ts-check
// The page's program: draws everything, and draws again when something changes.

import { drawChart, fitChart, listenForKeys } from "./chart.js";
import { listenInDialog } from "./command.js";
import { contents } from "./contents.js";
import { drawControls } from "./controls.js";
import { bodyOf, byId, onWidthChange } from "./dom.js";
import { listenForDownloads } from "./downloads.js";
import { fitEffects } from "./effects.js";
import { drawGaps } from "./gaps.js";
import { drawHoldings, drawStatus } from "./header.js";
import { drawMeasures, unfolding } from "./measures.js";
import { onChange, restore, settle } from "./state.js";
import { drawTables } from "./tables.js";
import { dark } from "./theme.js";
import { drawVerdicts } from "./verdicts.js";
import { watch } from "./watching.js";

/** Draw what depends on the choice. */
function drawChoice() {
  drawControls();
  drawStatus();
  drawChart();
  drawGaps();
  drawMeasures();
}

/** Draw everything, with the same choice. */
function drawAll() {
  document.body.classList.toggle("empty", !contents.groups.length);
  drawHoldings();
  drawVerdicts();
  drawTables();
  if (!contents.groups.length) return;
  settle();
  drawChoice();
}

/** Draw everything, with the choice in the address. */
function start() {
  restore();
  drawAll();
}

/** Let links scroll to their sections without changing the address, which holds the choice. */
function listenForLinks() {
  document.querySelector("nav")?.addEventListener("click", (event) => {
    if (!(event.target instanceof HTMLAnchorElement)) return;
    event.preventDefault();
    const section = document.getElementById(event.target.hash.slice(1));
    section?.scrollIntoView();
    section?.focus({ preventScroll: true });
  });
}

onChange(drawChoice);
onWidthChange(byId("frame"), fitChart);
onWidthChange(bodyOf("verdicts"), fitEffects);
listenForKeys();
listenInDialog();
listenForDownloads();
listenForLinks();
unfolding().addEventListener("toggle", drawMeasures);
dark.addEventListener("change", drawAll);
addEventListener("hashchange", start);
start();
watch(drawAll);
