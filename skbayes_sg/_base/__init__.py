"""The foundations: compilation, validation, threads, callbacks and weights."""
