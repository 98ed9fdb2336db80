"""Golden answers of every kind of model, on slices of the official files."""
