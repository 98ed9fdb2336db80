// Texts in Unicode characters, as the models count them; JavaScript counts UTF-16 units.

/** Replaces lone surrogates, which are not valid text and cannot be sent. */
export function wellFormed(text) {
  return text.replace(/\p{Surrogate}/gu, "\ufffd");
}

/** Splits a text at Unicode characters `start` and `end`: [before, between, after]. */
export function partAt(text, start, end) {
  const characters = Array.from(text);
  const parts = [[0, start], [start, end], [end, characters.length]];
  return parts.map(([from, to]) => characters.slice(from, to).join(""));
}
