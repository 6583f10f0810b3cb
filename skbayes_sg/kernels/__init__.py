"""Data structures and compiled functions that the pieces share."""
