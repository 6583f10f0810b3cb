"""Central intervals of predictions, from quantiles."""

from typing import Any

import numpy as np

from .._base.typing import MatrixLike
from .._base.validation import check_probabilities

__all__ = ["CentralIntervals"]


class CentralIntervals:
    """Intervals of a regressor that has `predict_quantiles`."""

    predict_quantiles: Any

    def predict_interval(
        self, X: MatrixLike, confidence_level: float = 0.9
    ) -> tuple[np.ndarray, np.ndarray]:
        """Central posterior predictive interval: y lies inside with this probability.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        confidence_level : float in (0, 1), default=0.9

        Returns
        -------
        lower, upper : ndarray of shape (n_rows,)
        """
        check_probabilities("confidence_level", confidence_level)
        tail = 0.5 - confidence_level / 2
        lower, upper = self.predict_quantiles(X, [tail, 1.0 - tail]).T
        return lower, upper
