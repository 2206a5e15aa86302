// The part of Plotly that the page uses.

type Numbers = ArrayLike<number>;

/** A line, a band around a line, or markers. */
interface PlotlyTrace {
  type: "scatter";
  x: Numbers;
  y: Numbers;
  mode: "lines" | "markers" | "lines+markers";
  name?: string;
  legendgroup?: string;
  showlegend?: boolean;
  xaxis?: string;
  yaxis?: string;
  line?: { color?: string; width: number; dash?: string };
  marker?: { size: number; color?: string[]; symbol?: string[] };
  fill?: "toself";
  fillcolor?: string;
  meta?: string;
  customdata?: Numbers;
  hoverinfo?: "skip";
  hovertemplate?: string;
}

interface PlotlyShape {
  type: "line";
  x0: number;
  x1: number;
  y0: number;
  y1: number;
  xref?: string;
  yref?: string;
  layer?: "below";
  line: { color: string; width: number; dash?: string };
}

interface PlotlyAxis {
  range?: [number, number];
  [option: string]: unknown;
}

interface PlotlyLayout {
  xaxis?: PlotlyAxis;
  yaxis?: PlotlyAxis;
  shapes?: PlotlyShape[];
  annotations?: object[];
  [option: string]: unknown;
}

/** An element that Plotly has drawn into. */
interface PlotlyElement extends HTMLElement {
  layout: PlotlyLayout;
  on(event: "plotly_doubleclick", action: () => void): void;
  removeAllListeners(event: "plotly_doubleclick"): void;
}

declare const Plotly: {
  react(place: HTMLElement, traces: PlotlyTrace[], layout: PlotlyLayout, config: object): void;
  downloadImage(place: HTMLElement, options: object): void;
};
