"""WHAT is sampled: one file a likelihood."""

from ._base import Model
from .logistic import Logistic
from .softmax import Softmax

__all__ = ["Logistic", "Model", "Softmax"]
