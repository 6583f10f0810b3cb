"""The checked parameters of `BayesianPMF`."""

import numpy as np
from sklearn.base import clone

from .._base.validation import Parameters, is_real
from . import HYPERPRIORS, SAMPLERS, Gibbs, Hyperprior, NormalWishart, Sampler, SparseSGLD
from .noise import COMMON, HIERARCHICAL, KNOWN
from .sparse import BATCH_SIZES, SPARSE_GRADIENTS, STEP_SIZES, is_batch_size, is_step_size

__all__ = ["FactorisationRequest"]

# With thin="auto", the passes between two draws visit up to VISITS ratings, repeats included, but
# are at most MOST_THIN, and about MOST_PASSES for all draws of a chain; there is at least one.
VISITS = 80_000
MOST_THIN, MOST_PASSES = 20, 2000
WARMUP_DRAWS = 5  # an automatic warm-up takes at least as many passes as this number of draws


class FactorisationRequest:
    """The checked parameters of an estimator; invalid ones raise `InvalidParameterError`."""

    def __init__(self, estimator):
        p = Parameters(estimator)
        self.rank, self.n_draws = p.integer("rank", 1), p.integer("n_draws", 1)
        self.n_chains, self.thin = p.integer("n_chains", 1), p.integer("thin", 1, auto=True)
        self.n_warmup = p.integer("n_warmup", 0, auto=True)
        self.prior = p.component("prior", HYPERPRIORS, Hyperprior) or NormalWishart()
        self.prior.check()
        self.sampler = _sampler(p)
        self.keep = p.choice("keep", ["all", "predictive"])
        self.cold = p.choice("cold", ["prior", "raise"])
        self.duplicates = p.choice("duplicates", ["auto", "raise", "keep"])
        self.noise, self.noise_std = _noise(p)
        self.range = _range(p)
        self.seed, self.n_jobs = p.seed(), p.n_jobs()

    def plan(self, n_ratings):
        """Set `thin` and `n_warmup` to what suits the number of ratings, where they are "auto".

        With few ratings, passes cost little and chains move slowly. The noise moves most slowly of
        all, since it depends on how well all factors fit.
        """
        self.is_open = self.thin is None and self.n_warmup is None and self.sampler.is_exact
        if self.thin is None:
            most = min(MOST_THIN, -(-MOST_PASSES // self.n_draws))
            self.thin = int(np.clip(VISITS // n_ratings, 1, most))
        if self.n_warmup is None:
            self.n_warmup = max(self.sampler.warmup, WARMUP_DRAWS * self.thin)

    def refuses_duplicates(self, n_columns):
        """Whether several ratings of the same categories are an error."""
        return self.duplicates == "raise" or (self.duplicates == "auto" and n_columns == 2)

    def check_probes(self, probes):
        """Raise `ValueError` for probes that would have no effect."""
        if probes is not None and self.keep != "predictive":
            raise ValueError(
                "probes are for keep='predictive'. With keep='all', call predict instead."
            )

    def check_range(self, y):
        """Raise `ValueError` if a rating lies outside the range that `clip` gives."""
        if self.range is None:
            return
        outside = np.flatnonzero((y < self.range[0]) | (y > self.range[1]))
        if len(outside):
            raise ValueError(
                f"y has the rating {y[outside[0]]:g} in row {outside[0]}, which is outside "
                f"clip={self.range}."
            )

    def chosen(self, problem, setup):
        """Return fitted attributes that tell what every "auto" became."""
        names = {kind: name for name, kind in SAMPLERS.items()}
        return {
            "sampler_": names.get(type(self.sampler), type(self.sampler).__name__),
            "n_warmup_": setup.n_warmup,
            "thin_": setup.thin,
            "batch_size_": self.sampler.ratings_a_step(problem),
            "step_size_": self.sampler.time_of_a_pass(),
        }


def _sampler(p):
    """Return a copy of the sampler with the settings that the estimator's parameters give."""
    sampler, settings = p.component("sampler", SAMPLERS, Sampler), _settings(p)
    if sampler is None:
        sampler = SparseSGLD() if settings else Gibbs()
    is_object = isinstance(p.estimator.sampler, Sampler)
    for name in settings:
        if is_object or name not in sampler.get_params():
            raise ValueError(
                f"{name}={getattr(p.estimator, name)!r} cannot be used with "
                f"sampler={p.estimator.sampler!r}. Set one of them to 'auto', or give the "
                "parameter to the sampler object itself."
            )
    return clone(sampler).set_params(**settings)


def _settings(p):
    """Return those of `batch_size`, `step_size` and `gradient` that are not "auto", as a dict."""
    gradient = p.choice("gradient", ["auto", *SPARSE_GRADIENTS])
    batch_size, step_size = p.estimator.batch_size, p.estimator.step_size
    if not is_batch_size(batch_size):
        p.fail("batch_size", BATCH_SIZES)
    if not is_step_size(step_size):
        p.fail("step_size", STEP_SIZES)
    settings = {"batch_size": batch_size, "step_size": step_size, "gradient": gradient}
    return {
        name: value
        for name, value in settings.items()
        if not (isinstance(value, str) and value == "auto")
    }


def _noise(p):
    """The kind of noise, and its standard deviation if it is known."""
    value = p.estimator.noise
    if isinstance(value, str) and value in (HIERARCHICAL, COMMON):
        return value, None
    if is_real(value) and 0.0 < value < np.inf:
        return KNOWN, float(value)
    return p.fail("noise", "'hierarchical', 'common' or a positive finite number")


def _range(p):
    """The range (low, high) of the ratings that `clip` gives; None if `clip` is a bool."""
    value = p.estimator.clip
    if isinstance(value, (bool, np.bool_)):
        return None
    try:
        low, high = (float(end) for end in value)
    except (TypeError, ValueError):
        low = high = np.nan
    if not low < high:
        p.fail("clip", "True, False or a pair of numbers, the smaller one first")
    return low, high
