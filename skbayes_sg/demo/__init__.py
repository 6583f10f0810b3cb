"""``python -m skbayes_sg`` demonstrates the package on real data or on your own table."""

from ._command import main

__all__ = ["main"]
