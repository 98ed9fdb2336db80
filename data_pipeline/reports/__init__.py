"""What people look at: a corpus before it is built, and the records made of it."""
