"""The posterior of the weights of a network, judged by its predictions."""

from typing import Any

import numpy as np

from ..diagnostics import convergence
from ..diagnostics.judgements import Judgement, of_finite, verdict_of
from ..diagnostics.verdict import Verdict
from ..posterior import Posterior, Summary
from .agreement import LIMIT, SHARE
from .scale_scores import SIGMAS

__all__ = ["NetworkPosterior"]

# Limits of the share of a variance that gradient noise adds, of the distance of the kinetic
# temperature from 1, and of the number of returns as a share of the steps.
INFLATION, TEMPERATURE, RETURNS = 0.2, 0.15, 0.01
KICKS = 0.5  # limit of the size δ²q of the kicks of batches
SHIFT = 0.3  # limit of the error of log τ, in posterior standard deviations, besides chance
LEAST_SHARE = 0.05  # least effective sample size of predictions, as a share of the draws
AGREE = "Predictions average over chains that disagree. Raise max_doublings or n_warmup."
NOISE = "Raise batch_size, lower step_size, or leave both to 'auto'."
HEAT = (
    "Use sampler='auto', which takes the noise of batches out; a smaller step_size, or a larger "
    "batch_size; or sampler='hmc' on few rows."
)
STEPS = "Set step_size to half of step_size_**2, or use sampler='hmc'."
MIXING = "Raise thin or n_draws."
UNITS = "Use two units or more, or activation='tanh'."
SCALES = "The chains have not forgotten where their scales began. Raise thin."


class NetworkPosterior(Posterior):
    """Draws of the weights of a network, with its predictions at some rows of the fit.

    The weights are not identified: hidden units can be permuted, and their signs exchanged. Two
    chains that agree about every prediction can have weights with nothing in common, and means,
    standard deviations and R-hat of single weights do not mean what they mean for other models.
    `check` and `summary` therefore examine predictions at rows of the fit.

    Parameters
    ----------
    flat : array of shape (n_chains, n_draws, n_parameters)
        The draws.
    shapes : dict of str to tuple
        The variables: "coefs_0", "intercepts_0", ... in the shapes of scikit-learn's networks, for
        columns that are standardised; "noise_std" where the noise is one parameter; "prior_scale",
        and "column_scale" where columns have one.
    predictions : array of shape (n_chains, n_draws, n_predictions)
        Class probabilities, or mean and log sd of the standardised response, at rows of the fit.
    origin : dict
        How the draws were made: step size and thinning.
    evidence : dict
        The measurements of the fit that `check` judges.

    Attributes
    ----------
    predictions : ndarray of shape (n_chains, n_draws, n_predictions)
        As above.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skbayes_sg import BayesianMLPRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = BayesianMLPRegressor(random_state=0, n_chains=2).fit(X, y)
    >>> model.posterior_["coefs_0"].shape
    (2, 100, 10, 32)
    >>> bool(model.posterior_.check())
    True
    """

    def __init__(
        self,
        flat: np.ndarray,
        shapes: dict[str, tuple[int, ...]],
        predictions: np.ndarray,
        origin: dict[str, Any] | None = None,
        evidence: dict[str, Any] | None = None,
    ) -> None:
        labels = [label for name, shape in shapes.items() for label in _labels(name, shape)]
        super().__init__(flat, shapes, labels, origin, evidence=evidence)
        self.predictions = predictions

    def check(self) -> Verdict:
        """Whether the draws can be trusted, and if not, why and what to do.

        Predictions at rows of the fit are judged: nine in ten must have an R-hat of at most 1.1,
        and an effective sample size of at least 5 % of the draws. R-hat is blind to gradient noise.
        Judged are therefore also the share of a variance that this is predicted to add, at most
        0.2, or the size of the kicks of batches, at most 0.5 (see
        `skbayes_sg.networks.stochastic`), and the kinetic temperature, within 0.15 of 1. R-hat is
        blind to all that chains have in common. Judged is therefore also whether the scales of the
        prior are those of the posterior, within 0.3 standard deviations plus five standard errors
        (see `skbayes_sg.networks.scale_scores`; not judged on batches of rows). The number of times
        that chains had to be moved back must be at most 1 % of the steps. Finally, no hidden layer
        may have a single relu unit: where that is off, there is no gradient that leads to the other
        side, and all chains may have begun on the same one.

        Returns
        -------
        Verdict
            It can be used as a condition, and shows one screen of text or a table in notebooks.
        """
        return verdict_of(self._judged())

    def _judged(self):
        """Yield a `Judgement` of each quantity that `check` judges."""
        known, total = self.evidence, self.n_chains * self.n_draws
        yield from of_finite("predictions", self.predictions)
        rhat, heat = known["function_rhat"], known["kinetic_temperature"]
        moving = self.predictions[..., np.ptp(self.predictions, axis=(0, 1)) > 0.0]
        sizes = convergence.ess_bulk(moving)
        known_sizes = sizes.size > 0 and np.isfinite(sizes).all()  # a single draw has none
        ess = float(np.quantile(sizes, 1.0 - SHARE)) if known_sizes else np.nan
        if "noise_left" in known:
            share = known["noise_left"]
            text, bound = f"adds {share:.1%} to a variance", f"{INFLATION:.0%}"
            yield Judgement("gradient noise", text, share, INFLATION, bound, NOISE)
        if "size_of_kicks" in known:
            kick, name = known["size_of_kicks"], "kicks of batches"
            text = f"{kick:.2f} of the variance of a momentum"
            yield Judgement(name, text, kick, KICKS, KICKS, NOISE)
        if "single_relu" in known:  # R-hat is blind to it where all chains began on one side
            text = "chains do not cross from one of its two sides to the other"
            yield Judgement("a layer of one relu unit", text, 1.0, 0.0, "two units", UNITS)
        text = f"{rhat:.3f}, or less for nine in ten predictions"
        yield Judgement("R-hat of predictions", text, rhat, LIMIT, LIMIT, AGREE)
        text = f"{ess:.0f} of {total} draws, or more for nine in ten predictions"
        few, bound = total / max(ess, 1e-9), f"{LEAST_SHARE * total:.0f}"
        name = "effective sample size of predictions"
        yield Judgement(name, text, few, 1.0 / LEAST_SHARE, bound, MIXING)
        text, bound = f"{heat:.3f}, which should be 1", f"a difference of {TEMPERATURE}"
        yield Judgement("kinetic temperature", text, abs(heat - 1.0), TEMPERATURE, bound, HEAT)
        if "scale_shift" in known:
            shift, name = known["scale_shift"], "scales of the prior"
            limit = SHIFT + SIGMAS * known["scale_shift_mcse"]
            text, bound = f"off by {shift:.2f} posterior sd", f"{limit:.2f}"
            yield Judgement(name, text, shift, limit, bound, SCALES)
        share = known["n_returns"] / known["n_steps"]
        text = f"{known['n_returns']:.0f} in {known['n_steps']:.0f} steps"
        bound = f"{RETURNS * known['n_steps']:.0f}"
        yield Judgement("returns after energy jumps", text, share, RETURNS, bound, STEPS)

    def summary(self, mass: float = 0.9) -> Summary:
        """A table of the predictions at rows of the fit: see `Posterior.summary`.

        Parameters
        ----------
        mass : float in (0, 1), default=0.9
            Probability inside the interval.

        Returns
        -------
        Summary
            It prints as text or as a table in notebooks; ``.to_frame()`` converts it for pandas.
        """
        n = self.predictions.shape[-1]
        labels = [f"prediction[{k}]" for k in range(n)]
        of = Posterior(self.predictions, {"prediction": (n,)}, labels, self.origin)
        return of.summary(mass)


def _labels(name, shape):
    if not shape:
        return [name]
    return [f"{name}[{', '.join(map(str, place))}]" for place in np.ndindex(shape)]
