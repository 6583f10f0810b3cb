"""Small made data: the library's posterior and the naive statement of the same posterior."""

from dataclasses import dataclass
from typing import Any

import naive
import numpy as np
import probe
from cases import INTERCEPT_PRIOR, MODELS, PRIORS
from scipy import optimize


@dataclass
class Scene:
    """`target` is what the library has, `posterior` what the formulas say."""

    target: Any
    posterior: naive.Posterior

    def frame(self, theta=None, kind="none", *, dense=True):
        """Coordinates around a point; around `self.point()` if none is given."""
        return probe.frame_at(
            self.target, self.point(1) if theta is None else theta, kind, dense=dense
        )

    def point(self, seed=0):
        """A point where the posterior may be."""
        rng = np.random.default_rng([7, seed])
        return rng.normal(scale=0.7, size=self.posterior.dimension)

    def mode(self):
        """The posterior mode, by the formulas."""
        posterior = self.posterior
        return optimize.minimize(
            lambda t: np.real(posterior.potential(t)), np.zeros(posterior.dimension),
            jac=posterior.gradient, method="BFGS", options={"gtol": 1e-9},
        ).x  # fmt: skip

    def points(self):
        """Where derivatives are examined."""
        D = self.posterior.dimension
        far = np.random.default_rng(8).normal(size=D)
        return {
            "prior draw": self.point(),
            "mode": self.mode(),
            "far": 50.0 * far / np.linalg.norm(far),
            "zero": np.zeros(D),
        }


def make_scene(
    model="logistic", prior="normal", *, n_rows=6, n_features=2, intercept=True, weighted=True,
    storage="float64", columns=None, seed=0, n_jobs=None,
):  # fmt: skip
    """Rows of about unit size, with weights between 0.5 and 2 if `weighted`.

    Parameters
    ----------
    columns : array of shape (n_features,), optional
        Scales of the columns.
    """
    case, rng = MODELS[model], np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)) * (1.0 if columns is None else columns)
    if storage == "csr":  # empty columns in some rows, and one empty row
        X[rng.random(X.shape) < 0.3] = 0.0
        X[n_rows // 2] = 0.0
    if storage == "float32":
        X = X.astype(np.float32).astype(np.float64)
    y = case.labels(rng, n_rows)
    weight = rng.uniform(0.5, 2.0, n_rows) if weighted else np.ones(n_rows)
    K, n_extra = case.model.n_linear, case.model.n_extra
    n_others = K * intercept + n_extra
    log_prior = [PRIORS[prior].log_density] * (K * n_features)
    log_prior += [INTERCEPT_PRIOR.log_density] * n_others
    table = probe.prior_table(
        case.model, n_features, intercept, PRIORS[prior].prior, INTERCEPT_PRIOR.prior
    )
    target = probe.make_target(
        case.model, X, y, weight, table, intercept=intercept, storage=storage, n_jobs=n_jobs
    )
    return Scene(target, naive.Posterior(case, X, y, weight, intercept, log_prior))


def close(actual, expected, tolerance, scale=1.0):
    """Assert agreement to ``tolerance * max(1, scale)``, entry by entry."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    worst = np.abs(actual - expected).max(initial=0.0)
    assert worst <= tolerance * max(1.0, scale), f"differs by {worst:.2e} of scale {scale:.2e}"


def pulled_back(frame, g):
    """A gradient in θ as one in the coordinates of the frame, for rows g."""
    return g * frame.F[0] if len(frame.F) == 1 else g @ frame.F


def position(frame, theta):
    """The position of θ in a frame."""
    shift = theta - frame.centre.theta
    return shift / frame.F[0] if len(frame.F) == 1 else np.linalg.solve(frame.F, shift)
