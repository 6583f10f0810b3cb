"""Draws with names."""

from .posterior import Posterior
from .summary import Summary

__all__ = ["Posterior", "Summary"]
