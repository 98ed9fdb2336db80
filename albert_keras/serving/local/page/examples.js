// The initial texts of the fields. The server sends texts in the language of the model as its
// `samples`; tasks of GLUE have English ones of their own.

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
export function textsFor({ samples, task, takesPair }) {
  const ofTask = OF_TASKS[task?.name];
  const usual = takesPair ? [samples.first, samples.second] : [samples.first];
  return ofTask?.length === usual.length ? ofTask : usual;
}
