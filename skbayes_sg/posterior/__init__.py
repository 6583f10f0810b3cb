"""Draws with names."""

from .posterior import Posterior, Summary

__all__ = ["Posterior", "Summary"]
