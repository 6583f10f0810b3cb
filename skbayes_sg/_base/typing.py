"""Names for what public functions take, in their signatures.

Lists, data frames, arrays and sparse matrices have no common type. These names say which is meant.
"""

from typing import Any, TypeAlias

import numpy as np

__all__ = ["ArrayLike", "MatrixLike", "RandomState"]

ArrayLike: TypeAlias = Any
"""scikit-learn's ``array-like``: a list, an array or a column of a data frame."""

MatrixLike: TypeAlias = Any
"""scikit-learn's ``{array-like, sparse matrix}``, or a data frame."""

RandomState: TypeAlias = int | np.random.RandomState | None
"""scikit-learn's `random_state`."""
