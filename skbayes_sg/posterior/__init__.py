"""Posterior draws with names, and what is computed from them."""

from .posterior import Posterior
from .summary import Summary

__all__ = ["Posterior", "Summary"]
