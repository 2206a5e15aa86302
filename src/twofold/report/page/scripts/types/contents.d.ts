// What Python writes into the page: page/contents.py builds it, and a test compares the names.

interface Contents {
  store: string;
  version: string;
  begun: number; // runs that are not finished
  commands: { runs: string; report: string };
  picked: string[]; // names of the settings that have a picker, in its order
  measures: Record<string, MeasureText>;
  tolerance: number; // points below the accuracy at the switch that count as recovered
  groups: Group[];
  verdicts: Verdicts;
  tables: StudyTable[];
}

interface MeasureText {
  title: string;
  unit: string;
  explanation: string;
  thinned: string; // what the measure is if not every iteration was evaluated: "a lower bound"
}

/** The runs that differ only in their seed. */
interface Group {
  settings: Record<string, string | number>;
  further: Record<string, unknown>; // settings without a picker
  method: string;
  objective: string;
  routine: string;
  complete: boolean; // evaluated after every iteration
  knowsMin: boolean; // MIN is exact, and not an upper bound
  command: string | null;
  ends: number[]; // iterations completed at the end of each task
  quantities: string[]; // what was measured on each task: "accuracy"
  mean: PackedCurve[]; // a curve per task
  average: PackedCurve | null; // over the tasks begun; null if they measure different things
  gaps: Gap[];
  measures: Record<string, Value | null>;
  runs: SeedRun[];
  look: { colour: string; dash: string };
}

interface SeedRun {
  seed: number;
  command: string | null;
  curves: PackedCurve[]; // a curve per task
  average: PackedCurve | null; // over the tasks begun
  gaps: Gap[];
  measures: Record<string, Value | null>;
}

/** Numbers of four bytes, little-endian, as base64. */
interface PackedCurve {
  x: string; // iterations, as integers
  y: string; // values, accuracies in percent
  error?: string; // standard errors, if there are several seeds
}

/** What happens to the accuracy on an old task after a switch. */
interface Gap {
  switch: number; // iterations completed before it
  task: number;
  depth: Value;
  lowest_at: Value;
  recovery: Value | null; // null if the accuracy does not recover
}

interface Mean {
  mean: number;
  error: number | null; // null for a single seed
  count: number;
}

/** The number of one run, or the mean over seeds. */
type Value = number | Mean;

interface Verdicts {
  claims: Record<string, string>; // by hypothesis
  reached: Verdict[];
  notes: string[];
}

interface Verdict {
  hypothesis: string;
  metric: string;
  benchmark: string;
  mode: string;
  profile: string;
  objective: string;
  routine: string;
  lr: number;
  batch_size: number;
  study: string; // empty if the comparison is exploratory
  margin: number | null;
  seeds: number[];
  differences: number[];
  family: number;
  effect: number;
  outcome: "effect" | "equivalent" | "undecided";
  interval: [number, number] | null; // simultaneous
  uncorrected: [number, number] | null;
  p: number | null;
  p_corrected: number | null;
  p_equivalent: number | null;
  detectable: number | null;
  seeds_needed: number | null;
  seeds_at_most: number | null;
  evaluated: number | null;
  evidence: "for" | "against" | "";
  sentence: string;
  decision: string; // in a word or two
  commands: [string | null, string | null]; // for plain SGD, and for the routine
}

interface StudyTable {
  name: string;
  title: string;
  profile: string;
  html: string; // all names in it are escaped
}
