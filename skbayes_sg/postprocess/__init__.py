"""Better estimates from given draws and their scores."""

from .zero_variance import (
    ZeroVarianceMean,
    zero_variance,
    zero_variance_basis,
    zero_variance_weights,
)

__all__ = ["ZeroVarianceMean", "zero_variance", "zero_variance_basis", "zero_variance_weights"]
