"""WHICH rows a step looks at, and with what coefficients: one file a scheme."""

from ._base import Subsampling
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
}

__all__ = [
    "AllRows",
    "Blocks",
    "Preferential",
    "Subsampling",
    "Uniform",
    "UniformWithoutReplacement",
]
