// The tokens of a text, coloured by id.

import { make, partsOfPiece, tint } from "./elements.js";
import { JoinedTexts } from "./joined_texts.js";

const SPECIAL = new Set(["[CLS]", "[SEP]", "[MASK]", "<unk>", "<pad>"]);
const texts = new JoinedTexts("tokens");

export const view = {
  id: "tokens",
  isOffered: (model) => "explain_tokens" in model.signatures,
  title: () => "Tokens",
  setUp: (model) => texts.setUp(model),

  ask() {
    return { signature: "explain_tokens", row: { text: texts.text } };
  },

  show(output, row, { say, answer }) {
    const count = output.pieces.filter((piece) => piece).length;
    const special = output.pieces.filter((piece) => SPECIAL.has(piece)).length;
    say(`${count} tokens, ${special} of them special`);
    const items = output.pieces.slice(0, count).map((piece, at) => {
      const id = output.ids[at];
      const className = SPECIAL.has(piece) ? "special" : tint(id);
      const name = make("span", { className: "word" }, ...partsOfPiece(piece));
      const number = make("span", { className: "note", textContent: String(id) });
      return make("li", { className }, name, " ", number);
    });
    answer.append(make("ol", { className: "chips pieces" }, ...items));
    const typed = [...SPECIAL].filter((name) => row.text.includes(name));
    if (typed.length) {
      const text =
        `${typed.join(", ")} in a text is split like any other text: a text never becomes a ` +
        "special token. [MASK] is a mask in the view “Fill mask” and its signature only.";
      answer.append(make("p", { className: "hint", textContent: text }));
    }
  },
};
