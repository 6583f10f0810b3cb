"""Comparing fitted models: leave-one-out cross-validation without refits."""

from .comparison import compare
from .leave_one_out import LeaveOneOut, loo

__all__ = ["LeaveOneOut", "compare", "loo"]
