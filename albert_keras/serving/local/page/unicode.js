// Texts as the models count them: in Unicode characters, where JavaScript counts UTF-16 units.

/** Replaces halves of surrogate pairs, which are no text and cannot be sent. */
export function wellFormed(text) {
  return text.replace(/\p{Surrogate}/gu, "\ufffd");
}

/** Parts a text at Unicode characters `start` and `end`: [before, between, after]. */
export function partAt(text, start, end) {
  const characters = Array.from(text);
  const parts = [[0, start], [start, end], [end, characters.length]];
  return parts.map(([from, to]) => characters.slice(from, to).join(""));
}
