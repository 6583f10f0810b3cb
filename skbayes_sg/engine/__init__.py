"""The loops, and what they see of a posterior. The only folder with Numba types."""
