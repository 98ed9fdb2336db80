// The answer to a question, marked in its passage.

import { element, make, scrollToMark } from "./elements.js";
import { suggest } from "./panel.js";
import { partAt, wellFormed } from "./unicode.js";

const NO_SPAN = -1e6; // lower scores mean that no span is possible
const question = element("question-answering-question");
const context = element("question-answering-context");

export const view = {
  id: "question-answering",
  isOffered: (model) => "question_answering" in model.signatures,
  title: () => "Question answering",

  setUp({ samples }) {
    suggest(question, samples.question);
    suggest(context, samples.context);
  },

  ask() {
    const row = { question: question.value, context: context.value };
    return { signature: "question_answering", row };
  },

  show(output, row, { say, answer }) {
    const passage = wellFormed(row.context);
    if (output.start < 0) {
      say("No answer in this passage.");
      answer.append(make("p", { className: "passage", textContent: passage }));
    } else {
      say(output.answer);
      const [before, found, after] = partAt(passage, output.start, output.end);
      const mark = make("mark", { textContent: found });
      const shown = make("p", { className: "passage" }, before, mark, after);
      answer.append(shown);
      scrollToMark(shown);
    }
    answer.append(scores(output));
  },
};

function scores(output) {
  const list = make("dl", { className: "scores" });
  const add = (name, value) => {
    const term = make("dt", { textContent: name });
    list.append(make("div", {}, term, make("dd", { textContent: value })));
  };
  if (output.start >= 0) add("Characters", `${output.start} to ${output.end}`);
  const isSpan = output.score > NO_SPAN;
  add("Score of the best span", isSpan ? output.score.toFixed(3) : "no span is possible");
  if (isSpan && output.null_score !== undefined) {
    add("Score of no answer", output.null_score.toFixed(3));
  }
  return list;
}
