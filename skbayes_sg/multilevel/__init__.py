"""Multilevel SGLD (Nagapetyan et al. 2017): posterior expectations to a stated accuracy.

`MultilevelSGLD` has all settings; the method `expect` of the estimators uses it. There is one file
for each idea: coupled steps (`double_step`), rows for coarse paths (`couplings`), levels
(`hierarchy`), Giles' rule (`giles`, `adaptive_levels`) and randomised truncation (`truncation`).
"""

from .method import MultilevelSGLD
from .result import Expectation

__all__ = ["Expectation", "MultilevelSGLD"]
