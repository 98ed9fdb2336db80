"""A tag for each word of a sentence: entities, parts of speech."""
