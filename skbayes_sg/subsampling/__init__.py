"""WHICH rows a step looks at, and with what coefficients: one file for each scheme."""

from ._base import Subsampling
from .adaptive import Adaptive
from .all_rows import AllRows
from .blocks import Blocks
from .preferential import Preferential
from .uniform import Uniform
from .uniform_without_replacement import UniformWithoutReplacement

SUBSAMPLING = {
    "uniform": Uniform,
    "uniform_without_replacement": UniformWithoutReplacement,
    "blocks": Blocks,
    "preferential": Preferential,
    "adaptive": Adaptive,
}

__all__ = ["Adaptive", "AllRows", "Blocks", "Preferential", "Subsampling", "Uniform"]
__all__ += ["UniformWithoutReplacement"]
