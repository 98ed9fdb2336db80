"""Reports for people: on a corpus before it is built, and on the records made from it."""
