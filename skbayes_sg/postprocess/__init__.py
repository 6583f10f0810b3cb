"""Better estimates from given draws and their scores."""

from .zero_variance import (
    ZeroVarianceMean,
    held_out_values,
    zero_variance,
    zero_variance_basis,
    zero_variance_weights,
)

__all__ = ["ZeroVarianceMean", "held_out_values", "zero_variance", "zero_variance_basis"]
__all__ += ["zero_variance_weights"]
