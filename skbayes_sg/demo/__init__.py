"""``python -m skbayes_sg``: what the package does, on real data or on a table of your own."""

from ._command import main

__all__ = ["main"]
