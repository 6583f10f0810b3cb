"""A posterior in the format of ArviZ, with likelihoods and predictions of given rows."""

from sklearn.utils.validation import check_is_fitted

from .._base import streams
from ..posterior.arviz import to_arviz

__all__ = ["arviz_of"]


def arviz_of(estimator, X, y, log_likelihood, posterior_predictive, random_state):
    """The posterior and further groups in the format of ArviZ; see `BayesianGLM.to_arviz`."""
    check_is_fitted(estimator)
    _check_given(X, y, log_likelihood, posterior_predictive)
    posterior, found = estimator.posterior_, {}
    posterior.require_draws()
    if log_likelihood:
        found["log_likelihood"] = estimator._of_likelihoods(X, y, lambda rows, values: values)
    if posterior_predictive:
        rng = streams.of_predictions(streams.seed_of(random_state))
        found["posterior_predictive"] = estimator._responses(X, rng)
    shape = posterior.n_chains, posterior.n_draws, -1
    groups = {name: {"y": values.T.reshape(shape)} for name, values in found.items()}
    if y is not None:
        groups["observed_data"] = {"y": estimator._numbers_of(y)}
    return to_arviz(posterior, groups)


def _check_given(X, y, log_likelihood, posterior_predictive):
    """`ValueError` if X or y is None where the groups that were asked for need it."""
    if X is None and (log_likelihood or posterior_predictive):
        raise ValueError("log_likelihood and posterior_predictive are those of rows: give X.")
    if y is None and log_likelihood:
        raise ValueError("log_likelihood is that of observed responses: give y.")
