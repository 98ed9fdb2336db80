// What the page shows of each signature.
//
// A view is an object with
//   id, title, hint      the last two may be functions of the model
//   signature(model)     the signature that it asks, or undefined if the model has none
//   fields(model)        a list of {name, label, lines}
//   rows(texts, model)   the rows of a request, of the texts by the names of the fields; by default
//                        one row, which is these texts
//   show(outputs, {rows, model, say, field, answer})  says a headline, and puts the rest into the
//                        element `answer`; `field(name)` is the element of a field

import { AskError } from "./ask.js";
import { bars, chips, counted, facts, make, matrix, percent, shown } from "./elements.js";

const MASK = "[MASK]";
const OUTSIDE = "O";
const NO_SPAN = -1e6; // lower scores mean that no span is possible
const MOST_TEXTS = 16;

const fillMask = {
  id: "fill-mask",
  title: "Fill mask",
  hint: "The most probable tokens for each [MASK]. Click one to insert it into the text.",
  signature: ({ signatures }) => signatures.fill_mask && "fill_mask",
  fields: () => [{ name: "text", label: "Text", lines: 3 }],

  rows({ text }) {
    if (!text.includes(MASK)) throw new AskError(`The text must contain ${MASK} at least once.`);
    return [{ text }];
  },

  show([{ pieces, scores, filled_text }], { rows, say, field, answer }) {
    say(filled_text);
    const parts = rows[0].text.split(MASK);
    const chosen = new Map(); // number of a mask -> its word
    const choose = (mask, piece) => {
      chosen.set(mask, piece.replaceAll("▁", ""));
      const text = parts.reduce((text, part, at) => text + (chosen.get(at - 1) ?? MASK) + part);
      field("text").value = text;
      say(text);
    };
    parts.slice(1).forEach((_, mask) => {
      const candidates = pieces[mask]?.filter((piece) => piece) ?? [];
      const list = candidates.map((piece, at) => ({
        label: shown(piece),
        share: scores[mask][at],
        isBest: at === 0,
        choose: () => choose(mask, piece),
      }));
      const title = list.length ? `Mask ${mask + 1}` : `Mask ${mask + 1} was not read`;
      answer.append(make("h3", { textContent: title }), bars(list));
    });
  },
};

const sentenceOrder = {
  id: "sentence-order",
  title: "Sentence order",
  hint: "Whether the first segment precedes the second one in a text, or the two are swapped.",
  signature: ({ signatures }) => signatures.sentence_order && "sentence_order",
  fields: () => [
    { name: "first", label: "First segment", lines: 2 },
    { name: "second", label: "Second segment", lines: 2 },
  ],

  show([{ in_order: share }], { say, answer }) {
    const isInOrder = share >= 0.5;
    say(isInOrder ? `In order: ${percent(share)}` : `Swapped: ${percent(1 - share)}`);
    const rows = [
      { label: "in order", share, isBest: isInOrder },
      { label: "swapped", share: 1 - share, isBest: !isInOrder },
    ];
    answer.append(bars(rows));
  },
};

const classify = {
  id: "classify",
  title: (model) => `${givesScore(model) ? "Score" : "Classify"}${takesPair(model) ? " a pair" : ""}`,
  hint: "The probability of each label, or the score that the model predicts.",
  signature: (model) =>
    (gives(model, "probabilities") || givesScore(model)) && textSignature(model),
  fields: (model) =>
    takesPair(model)
      ? [
          { name: "first", label: "First text", lines: 3 },
          { name: "second", label: "Second text", lines: 3 },
        ]
      : [{ name: "text", label: "Text", lines: 3 }],

  show([output], { say, answer }) {
    const { label, labels, probabilities, thresholds, score, scores } = output;
    if (score !== undefined) {
      say(`Score: ${score.toFixed(3)}`);
    } else if (scores !== undefined) {
      say(`Scores of ${labels.length} labels`);
      answer.append(facts(labels.map((name, at) => [name, scores[at].toFixed(3)])));
    } else {
      const applies = (name, at) =>
        label === undefined ? probabilities[at] >= thresholds[at] : name === label;
      const best = labels.filter(applies).join(", ") || "No label applies";
      say(label === undefined ? best : `${label}: ${percent(output.probability)}`);
      const rows = labels.map((name, at) => ({
        label: name,
        share: probabilities[at],
        isBest: applies(name, at),
      }));
      answer.append(bars(rows));
    }
  },
};

const questionAnswering = {
  id: "question-answering",
  title: "Question answering",
  hint: "Finds the span of the passage that answers the question.",
  signature: ({ signatures }) => signatures.question_answering && "question_answering",
  fields: () => [
    { name: "question", label: "Question", lines: 1 },
    { name: "context", label: "Passage", lines: 7 },
  ],

  show([{ answer: span, start, end, score, null_score }], { rows, say, answer }) {
    const characters = Array.from(rows[0].context.toWellFormed()); // as the model counts them
    const part = (from, to) => characters.slice(from, to).join("");
    say(start < 0 ? "No answer in this passage." : span);
    const marked =
      start < 0
        ? [part(0)]
        : [part(0, start), make("mark", { textContent: part(start, end) }), part(end)];
    answer.append(make("p", { className: "passage" }, ...marked));
    const isSpan = score > NO_SPAN;
    const pairs = [["Score of the best span", isSpan ? score.toFixed(3) : "no span is possible"]];
    if (start >= 0) pairs.unshift(["Characters", `${start} to ${end}`]);
    if (isSpan && null_score !== undefined) {
      pairs.push(["Score of no answer", null_score.toFixed(3)]);
    }
    answer.append(facts(pairs));
  },
};

const multipleChoice = {
  id: "multiple-choice",
  title: "Multiple choice",
  hint:
    "Chooses the option that answers the question about the passage. An _ in the question is a " +
    "blank that the option fills.",
  signature: ({ signatures }) => signatures.multiple_choice && "multiple_choice",
  fields: () => [
    { name: "context", label: "Passage", lines: 5 },
    { name: "question", label: "Question", lines: 1 },
    { name: "options", label: "Options, one per line", lines: 4 },
  ],
  rows: ({ options, ...texts }) => [{ ...texts, options: lines(options, 2) }],

  show([{ choice, option, probabilities }], { rows, say, answer }) {
    say(`${option} (${percent(probabilities[choice])})`);
    const list = rows[0].options.map((label, at) => ({
      label,
      share: probabilities[at],
      isBest: at === choice,
    }));
    answer.append(bars(list));
  },
};

const tags = {
  id: "tags",
  title: "Tags",
  hint:
    "The most probable tag of each word, and its probability. The text is split as the training " +
    "file was.",
  signature: ({ signatures }) => signatures.tags && "tags",
  fields: () => [{ name: "text", label: "Text", lines: 3 }],

  show([{ words, tags, probability }], { say, answer }) {
    const count = words.filter((word) => word).length;
    // B-PER and I-PER have the same colour.
    const types = tags.map((tag) => tag.replace(/^[BIESLU]-/, ""));
    const named = [...new Set(types.filter((type) => type && type !== OUTSIDE))];
    const tagged = types.filter((type) => named.includes(type)).length;
    say(`${counted(count, "word")}, ${tagged} with another tag than ${OUTSIDE}`);
    const list = words.slice(0, count).map((word, at) => ({
      word,
      note: tags[at] ? `${tags[at]} ${percent(probability[at])}` : "not read",
      colour: named.includes(types[at]) ? named.indexOf(types[at]) : undefined,
    }));
    answer.append(chips(list));
  },
};

const similarity = {
  id: "similarity",
  title: "Similarity",
  hint:
    "The cosine between the vectors of each two texts: 1 for the same direction. Without training " +
    "for similarity, cosines of all texts are high: compare them with each other.",
  signature: ({ signatures }) => signatures.embed && "embed",
  fields: () => [{ name: "texts", label: "Texts, one per line", lines: 5 }],
  rows: ({ texts }) => lines(texts, 2).map((text) => ({ text })),

  show(outputs, { rows, say, answer }) {
    const vectors = outputs.map(({ embedding }) => embedding); // each of length 1
    const cosine = (one, other) => one.reduce((sum, value, at) => sum + value * other[at], 0);
    const cosines = vectors.map((one) => vectors.map((other) => cosine(one, other)));
    const pairs = rows.flatMap((_, at) => rows.slice(0, at).map((__, to) => [cosines[to][at], to, at]));
    const [best, one, other] = pairs.reduce((most, pair) => (pair[0] > most[0] ? pair : most));
    say(`Most similar: ${one + 1} and ${other + 1}, cosine ${best.toFixed(3)}`);
    const names = rows.map(({ text }, at) => `${at + 1}  ${text}`);
    answer.append(matrix(names, cosines));
  },
};

export const VIEWS = [
  fillMask,
  sentenceOrder,
  classify,
  questionAnswering,
  multipleChoice,
  tags,
  similarity,
];

function takesPair({ signatures }) {
  return "text_pair" in signatures;
}

function textSignature(model) {
  return takesPair(model) ? "text_pair" : "serving_default";
}

function gives(model, output) {
  const { inputs, outputs } = model.signatures[textSignature(model)] ?? {};
  return Boolean(inputs && !("options" in inputs) && output in outputs);
}

function givesScore(model) {
  const isScore = gives(model, "score") || (gives(model, "scores") && gives(model, "labels"));
  return isScore && !("question_answering" in model.signatures);
}

function lines(text, fewest) {
  const found = text.split("\n").map((line) => line.trim()).filter(Boolean);
  if (found.length >= fewest && found.length <= MOST_TEXTS) return found;
  throw new AskError(`Give ${fewest} to ${MOST_TEXTS} lines. There are ${found.length}.`);
}
