"""Multilevel SGLD (Nagapetyan et al. 2017): posterior expectations to a stated accuracy.

`MultilevelSGLD` is what there is to set; the method `expect` of the estimators uses it. One file an
idea: coupled steps (`double_step`), which rows coarse paths see (`couplings`), levels
(`hierarchy`), Giles' rule (`giles`, `adaptive`), randomised truncation (`truncation`).
"""

from .method import MultilevelSGLD
from .result import Expectation

__all__ = ["Expectation", "MultilevelSGLD"]
