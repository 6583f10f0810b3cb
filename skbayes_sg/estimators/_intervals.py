"""Central intervals of predictions, from quantiles."""

from typing import Any

import numpy as np

from .._base.typing import MatrixLike
from .._base.validation import central

__all__ = ["CentralIntervals"]


class CentralIntervals:
    """Adds `predict_interval` to a regressor that has `predict_quantiles`."""

    predict_quantiles: Any

    def predict_interval(
        self, X: MatrixLike, confidence_level: float = 0.9
    ) -> tuple[np.ndarray, np.ndarray]:
        """Central posterior predictive interval of y.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        confidence_level : float in (0, 1), default=0.9
            Posterior predictive probability that y lies inside.

        Returns
        -------
        lower, upper : ndarray of shape (n_rows,)
        """
        ends = central("confidence_level", confidence_level)
        lower, upper = self.predict_quantiles(X, ends).T
        return lower, upper
