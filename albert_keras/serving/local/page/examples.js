// The initial texts of the fields.

export const MASKED = "The old man sat down by the [MASK] and looked out at the [MASK].";

export const SEGMENTS = [
  "She opened the door and looked into the dark hall.",
  "Nobody was there, so she closed it again.",
];

export const PASSAGE =
  "The ferry Aurora left the harbour of Bergen at six in the morning with forty passengers on " +
  "board. Because of thick fog the captain, Ingrid Solberg, sailed slowly along the coast, and " +
  "it took nine hours to reach the island of Utsira.";
export const QUESTION = "Who was the captain of the ferry?";

export const CHOICE = {
  context: PASSAGE,
  question: "The ferry sailed slowly because of _ .",
  options: ["its forty passengers", "thick fog", "a broken engine", "the early hour"],
};

export const NAMES = "Angela Merkel met the president of Siemens in Berlin on Tuesday .";

export const SENTENCE = "The captain unloaded his barge before the storm reached the harbour.";

const PAIR = [
  "The ferry left the harbour before sunrise.",
  "Before the sun rose, the ferry had already left.",
];

const QUESTIONS = ["How do I learn to swim as an adult?", "Can adults learn how to swim?"];

// Name of the task -> a text, or a pair of texts.
const OF_TASKS = {
  cola: ["The book was read by the whole class."],
  "sst-2": ["A warm, funny and thoroughly enjoyable film."],
  qqp: QUESTIONS,
  "sts-b": ["A man is playing a guitar.", "Somebody plays an instrument."],
  mnli: ["The ferry left an hour late.", "The ferry left on time."],
  ax: ["The ferry left an hour late.", "The ferry left on time."],
  qnli: ["When did the ferry leave?", "The ferry left the harbour at six in the morning."],
  rte: ["The ferry reached the island after nine hours.", "The ferry arrived at the island."],
  wnli: [
    "The suitcase did not fit into the car because it was too big.",
    "The suitcase was too big.",
  ],
};

/** Returns the example of a model that classifies or scores: one text, or two. */
export function textsFor(model) {
  const ofTask = OF_TASKS[model.task?.name];
  if (model.takesPair) return ofTask?.length === 2 ? ofTask : PAIR;
  return ofTask?.length === 1 ? ofTask : [SENTENCE];
}
