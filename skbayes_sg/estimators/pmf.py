"""Bayesian probabilistic matrix factorisation."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted

from .._base import streams
from .._base import weights as weighting
from .._base.callbacks import CallbackSupportMixin, Progress, with_callbacks
from .._base.categories import encode
from .._base.threads import one_blas_thread
from .._base.typing import ArrayLike, RandomState
from .._base.validation import check_count, check_probabilities
from ..diagnostics.judgements import warn_of
from ..factorisation import Hyperprior, Sampler, mixtures
from ..factorisation.draws import FactorDraws, entries_of_a_draw
from ..factorisation.factor_posterior import CATEGORIES
from ..factorisation.problem import make_problem
from ..factorisation.ratings import (
    check_categories,
    check_ratings,
    encode_rows,
    learn_ratings,
    reject_duplicates,
)
from ..factorisation.recommend import alike, best, item_codes, scorer, user_codes
from ..factorisation.request import FactorisationRequest
from ..factorisation.results import fitted_attributes, posterior_of
from ..factorisation.settled import affordable_rounds, run_settled
from ..factorisation.setup import prepare, tell_price
from ._intervals import CentralIntervals
from ._saved import SavedEstimator
from ._store import all_or_nothing, check_draw_store

__all__ = ["BayesianPMF"]

REMEDY = (
    "The draws are already stored as float32. Choose a larger thin and a smaller n_draws, a lower "
    "rank, or keep='predictive', which stores running moments of known pairs."
)


class BayesianPMF(CentralIntervals, RegressorMixin, CallbackSupportMixin, SavedEstimator):
    r"""Probabilistic matrix factorisation: ratings with the uncertainty of their prediction.

    The columns of X contain categories: users, items, and any context. The model of a row with the
    categories :math:`a_0, \ldots, a_{C-1}`, each of which has a vector :math:`p_a` of `rank`
    numbers and a bias :math:`b_a`, is

    .. math::

        y = m + \sum_c b_{a_c} + \sum_{c < c'} p_{a_c} \cdot p_{a_{c'}} + \varepsilon,
        \qquad \varepsilon \sim N(0, \sigma^2 / (w_{a_0} \cdots w_{a_{C-1}})).

    With two columns this is matrix factorisation with biases; with more columns it is a
    factorisation machine over categories, and with one column a model of random effects. In each
    column the vectors :math:`[p_a, b_a]` of the categories are normally distributed. Their mean and
    their precision matrix are sampled as well, and so are the noise :math:`\sigma` and the weights
    :math:`w_a \sim \mathrm{Gamma}(\nu, \nu)`, which let the noise differ between users and between
    items. In units in which ratings have mean 0 and standard deviation 1, the prior of
    :math:`\sigma^{-2}` is Gamma(1, 1), :math:`\nu` is uniform on a grid from 2 to 108 of equal
    logarithmic steps, and `skbayes_sg.factorisation.NormalWishart` has the prior of the vectors.

    The vectors are determined only up to a rotation: compare predictions, not vectors. The
    posterior has many modes, and a chain stays near one of them (up to rotation), so that
    convergence is judged by predictions.

    Parameters
    ----------
    rank : int, default=16
        Number of factors of each category: the length of the vectors :math:`p_a`.
    prior : {"normal_wishart", "normal_gamma"} or Hyperprior, default="normal_wishart"
        Prior of the mean and the precision matrix of the vectors :math:`[p_a, b_a]` of a column: a
        string, or an object of `skbayes_sg.factorisation`. With "normal_gamma" the factors are
        independent.
    noise : {"hierarchical", "common"} or float, default="hierarchical"
        "hierarchical": the noise differs between categories, as above. "common": all weights are 1.
        A number is the known standard deviation of the noise, in the units of y.
    sampler : {"auto", "gibbs", "sgld", "sghmc", "user_block"} or Sampler, default="auto"
        How draws are made: an object of `skbayes_sg.factorisation`, or a string for one with its
        defaults. "gibbs" draws from the conditional distributions
        (`skbayes_sg.factorisation.Gibbs`); the others are approximate. "auto" is "gibbs", unless
        `gradient`, `batch_size` or `step_size` is given, which makes it "sgld". With more than half
        a million ratings "gibbs" starts on a share of the users.
    gradient : {"auto", "minibatch", "control_variate", "saga"}, default="auto"
        How "sgld" and "sghmc" compute gradients: from a batch of ratings alone ("minibatch"), or
        from differences between the gradient of each rating and the one at a centre
        ("control_variate") or the one that it had when it was last used ("saga"). "auto" is
        "minibatch".
    batch_size : "auto", int or float, default="auto"
        For "sgld" and "sghmc": the number of ratings that each step uses, or their share of all
        ratings. "auto" is 64, but at most a twentieth of the ratings.
    step_size : "auto" or float in (0, 4), default="auto"
        For the samplers with stochastic gradients: the h of
        :math:`\theta' = \theta - (h/2) P \nabla U + \sqrt h P^{1/2} \xi`, summed over the steps of
        a pass over the ratings, with P the inverse of the mean precision of each row. "auto" is
        0.4, which makes standard deviations of predictions 2 to 10 % too large, and more where
        there are few ratings for each number that they determine. A step of 1 makes them about 20 %
        too large and a step of 3.5 about 60 %; the noise is too large as well, by 2 % at 0.4 and by
        8 % at 2 on a small table, which is one posterior standard deviation and three. Every fit
        measures both biases (see `diagnostics_`), and warns of those that matter
        (``tests/factorisation/test_step_check.py``). "gibbs" has no steps and no bias.
    n_draws : int, default=100
        Number of draws that each chain makes.
    n_chains : int, default=1
        Number of independent chains.
    n_warmup : "auto" or int, default="auto"
        Number of passes over the ratings of each chain before the first draw. "auto" is 50 for
        "gibbs", 20 for "sgld" and "sghmc" and 10 for "user_block", but at least as many passes as
        five draws take. If `thin` is "auto" as well, "gibbs" goes on while
        ``posterior_.check()`` does not trust the draws: all passes so far become the warm-up, and
        new draws are twice as far apart. This happens up to three times, and not where all passes
        together would be predicted to take more than 30 seconds.
    thin : "auto" or int, default="auto"
        Number of passes from one draw to the next. From 80 000 ratings on "auto" is 1. With fewer
        ratings, over which passes cost little, it is as many passes as visit 80 000 ratings, but at
        most 20, and at most 2000 for all draws of a chain together. It is doubled where "gibbs"
        goes on: see `n_warmup`.
    keep : {"all", "predictive"}, default="all"
        "all" keeps all draws, in float32. "predictive" keeps only the means and variances of the
        predictions of the pairs in X, or of the rows in `probes` of `fit`, which are updated while
        chains run; predictive intervals are then those of a normal distribution.
    clip : bool or pair of float, default=False
        Whether predictions, ends of intervals, quantiles and samples are moved into the range of
        the ratings. A pair of numbers gives that range; ratings outside it are then an error.
    cold : {"prior", "raise"}, default="prior"
        What to do about categories that were not in the data. "prior" predicts from the prior of
        new categories, with its larger variance and a warning that counts them; "raise" raises an
        error.
    duplicates : {"auto", "raise", "keep"}, default="auto"
        What to do about several ratings of the same categories: "raise" raises an error, and "keep"
        treats them as repeated measurements. "auto" is "raise" if X has two columns, since a user
        normally rates an item once, and "keep" otherwise.
    random_state : int, RandomState instance or None, default=None
        Seed of the random numbers. An int gives the same draws at every call, whatever `n_jobs` is.
    n_jobs : int or None, default=None
        Number of threads, for chains if there are several, or for the rows of a single chain. None
        is 1, -1 is all processors.

    Attributes
    ----------
    posterior_ : Posterior
        Draws of quantities that do not depend on the rotation, in the units of y: "noise_std", the
        root mean square over ratings of the noise's standard deviation; "mean", the expected rating
        of new categories; "probes", predictions for some rows of X, by which convergence is judged.
    noise_std_ : float
        Posterior mean of "noise_std".
    categories_ : list of ndarray
        The categories of each column.
    offsets_ : ndarray of shape (n_columns + 1,)
        Positions of categories in `draws_`: category number k of column c is row
        ``offsets_[c] + k`` there.
    draws_ : dict of str to ndarray
        Kept draws, each an array (n_chains, n_draws, ...), in units in which the ratings have mean
        0 and standard deviation 1: "F", the vectors [p, b] of all categories; "means", the
        conditional means of these vectors for the categories of column 0; "w", the weights;
        "alpha", the precision 1/σ²; "shapes", the ν; "mu" and "sigma", mean and covariance of the
        vectors of each column. Empty for ``keep="predictive"``.
    moments_ : dict of str to ndarray
        For ``keep="predictive"``: sorted "keys" of the pairs, and "mean" and "variance" of their
        predictions. Otherwise empty.
    centre_, scale_ : float
        Mean and standard deviation of the ratings.
    rating_range_ : ndarray of shape (2,)
        Smallest and largest rating.
    seen_starts_, seen_ : ndarray
        What each user has rated: ``seen_[seen_starts_[k]:seen_starts_[k + 1]]`` are the rows in
        `draws_` of the categories of the other columns with which user number k has ratings.
    sampler_ : str
        The sampler chosen for "auto", or the one given.
    n_warmup_, thin_, batch_size_ : int
        The numbers chosen for "auto", or those given. `batch_size_` is the average number of
        ratings of a step, which is all ratings for "gibbs".
    step_size_ : float
        The step size h of a pass; NaN for "gibbs".
    diagnostics_ : dict of str to float
        ``ess`` and ``rhat``: nine in ten of the predictions "probes" have at least this effective
        sample size, and at most this R-hat. ``noise_ess`` and ``noise_rhat``: those of the standard
        deviation of the noise. They are NaN for less than 8 draws, and for a noise that is given.
        ``numbers_a_rating``: how many numbers the vectors of all categories have for each rating;
        above 1 a single chain may miss modes of the posterior, of which `check` has a note.
        For the samplers with stochastic gradients, ``sd_bias`` is the share by which the step makes
        standard deviations of predictions too large, and ``noise_bias`` the number of posterior
        standard deviations by which it makes "noise_std" too large, which is the share
        ``noise_ratio``. They are measured at up to a hundred draws, by what four sweeps of "gibbs"
        change; ``sd_bias_mcse`` and ``noise_bias_mcse`` are their Monte Carlo errors.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_columns,)
        Names of the columns, if all names in X were strings.

    Raises
    ------
    InvalidParameterError
        By `fit`, for a parameter with a value that is not accepted. It is both a `ValueError` and a
        `TypeError`.
    ValueError
        By `fit`, for data that cannot be used: missing categories, ratings that are not finite or
        lie outside the range given by `clip`, or several ratings of the same categories.
    SamplerDivergedError
        By `fit`, if a chain leaves the region in which the posterior can have its mass.
    MemoryError
        By `fit`, before sampling, if the requested draws do not fit into free memory.

    Warns
    -----
    SamplerConvergenceWarning
        One in ten of the predictions that are examined, or more, have an R-hat above 1.05 or an
        effective sample size below a tenth of the number of draws.
    StepSizeWarning
        The step makes standard deviations of predictions wrong by more than a tenth, or the
        standard deviation of the noise by more than 0.2 of its posterior standard deviations and 1
        %, beyond five Monte Carlo errors; and before sampling, where ratings are so few that this
        is expected.
    LongRunWarning
        The run is predicted to take more than a minute.
    DrawStoreWarning
        The draws need more memory than scikit-learn's ``working_memory``.
    UserWarning
        By methods that predict, for categories that were not in the data of the fit.

    See Also
    --------
    skbayes_sg.factorisation : Samplers and priors.

    Notes
    -----
    An error or Ctrl-C during `fit` leaves the estimator as it was before the call. Ratings are
    standardised internally, so that priors do not depend on their units.

    References
    ----------
    .. [1] A. Mnih and R. Salakhutdinov (2008). Probabilistic matrix factorization. NIPS.
    .. [2] S. Ahn, A. Korattikara, N. Liu, S. Rajan and M. Welling (2015). Large-scale distributed
       Bayesian matrix factorization using stochastic gradient MCMC. KDD. (Prior "normal_gamma",
       sampler "sgld".)
    .. [3] R. Salakhutdinov and A. Mnih (2008). Bayesian probabilistic matrix factorization using
       Markov chain Monte Carlo. ICML. (Sampler "gibbs", prior "normal_wishart".)

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg import BayesianPMF
    >>> rng = np.random.default_rng(0)
    >>> P, Q = rng.normal(size=(60, 2)), rng.normal(size=(40, 2))
    >>> user, item = np.divmod(rng.permutation(2400)[:1200], 40)
    >>> y = 3.0 + (P[user] * Q[item]).sum(axis=1) + 0.3 * rng.normal(size=1200)
    >>> X = np.column_stack([user, item])
    >>> model = BayesianPMF(rank=4, random_state=0).fit(X[:1000], y[:1000])
    >>> model.score(X[1000:], y[1000:]) > 0.9
    True
    >>> mean, std = model.predict(X[1000:], return_std=True)
    >>> lower, upper = model.predict_interval(X[1000:], confidence_level=0.9)
    >>> print(((lower <= y[1000:]) & (y[1000:] <= upper)).mean() > 0.8)
    True
    >>> model.recommend([0, 1], n=3).shape
    (2, 3)
    """

    _doc_link_module = "skbayes_sg"
    _doc_link_template = "https://skbayes-sg.readthedocs.io/stable/api/{estimator_name}.html"

    def __init__(
        self,
        *,
        rank: int = 16,
        prior: Hyperprior | str = "normal_wishart",
        noise: float | str = "hierarchical",
        sampler: Sampler | str = "auto",
        gradient: str = "auto",
        batch_size: float | str = "auto",
        step_size: float | str = "auto",
        n_draws: int = 100,
        n_chains: int = 1,
        n_warmup: int | str = "auto",
        thin: int | str = "auto",
        keep: str = "all",
        clip: Any = False,
        cold: str = "prior",
        duplicates: str = "auto",
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> None:
        self.rank = rank
        self.prior = prior
        self.noise = noise
        self.sampler = sampler
        self.gradient = gradient
        self.batch_size = batch_size
        self.step_size = step_size
        self.n_draws = n_draws
        self.n_chains = n_chains
        self.n_warmup = n_warmup
        self.thin = thin
        self.keep = keep
        self.clip = clip
        self.cold = cold
        self.duplicates = duplicates
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # numbers are names here
        tags.input_tags.string = True
        return tags

    # -- fit ----------------------------------------------------------------------------------

    @with_callbacks
    def fit(self, X: ArrayLike, y: ArrayLike, *, probes: ArrayLike | None = None) -> Self:
        """Sample the posterior.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
            Categories, in columns for users, items, and any context. They can be of any hashable
            type: numbers, strings or dates, in an array or a DataFrame.
        y : array-like of shape (n_rows,)
            Ratings.
        probes : array-like of shape (n_probes, n_columns), optional
            Only for ``keep="predictive"``: the rows whose predictions are wanted. None stands for
            X.

        Returns
        -------
        self : BayesianPMF
            The estimator, with the attributes of the class docstring.
        """
        with all_or_nothing(self):
            request = FactorisationRequest(self)
            request.check_probes(probes)
            X, y = check_ratings(self, X, y)
            request.check_range(y)
            data, codes = learn_ratings(X, y, type(self).__name__)
            if request.refuses_duplicates(codes.shape[1]):
                reject_duplicates(codes, data["offsets_"], X, type(self).__name__)
            standardised = (y - data["centre_"]) / data["scale_"]
            request.plan(len(y))
            problem = make_problem(codes, standardised, data["offsets_"], request.rank)
            request.sampler.check(problem, request.noise)
            data["seen_starts_"], data["seen_"], _ = problem.groups[0]
            known = None
            if request.keep == "predictive":
                known = codes if probes is None else self._encode(probes, data)
            else:
                _check_memory(request, problem)
            tell_price(request, problem)
            setup, chains, store = prepare(request, problem, data["scale_"], known)

            def attributes(done):
                return data | fitted_attributes(setup, chains, store, done, data)

            progress = Progress(self, attributes, X=X, y=y)

            def watch(done, share):
                return progress(lambda: (done,), share)

            def is_settled(chains):
                units = data["centre_"], data["scale_"]
                return posterior_of(setup, chains, setup.n_draws, *units).check().trustworthy

            with one_blas_thread:
                n_rounds = affordable_rounds(request, problem)
                chains, done = run_settled(setup, chains, n_rounds, is_settled, watch)
            fitted = attributes(done) | request.chosen(problem, setup)
            self.__dict__.update(fitted)
            warn_of(self.posterior_.check(), 3, CATEGORIES)
            progress.finish(fitted)
            return self

    # -- prediction ---------------------------------------------------------------------------

    def _encode(self, X, fitted=None):
        """Positions of the categories of X in the rows of F, -1 for new ones.

        A warning counts new categories, or they are an error, as `cold` says. `fitted` has the
        attributes of a fit that has not ended.
        """
        X = check_categories(self, X)
        return encode_rows(X, self.__dict__ if fitted is None else fitted, self.cold)

    def _pooled(self):
        """The draws of all chains, one chain after the other; `ValueError` if none were kept."""
        if not self.draws_:
            raise ValueError("keep='predictive' has kept no draws. Use keep='all'.")
        return FactorDraws(**self.draws_).pooled()

    def _n_parts(self):
        """The number of normal laws in the mixture of a prediction: the number of draws, or 1."""
        return self.draws_["alpha"].size if self.draws_ else 1

    def _predicted(self, X, reduce):
        """``reduce(means, variances)`` of all blocks of rows, joined along the last axis.

        Both arguments have the shape (parts, rows): the normal laws whose mixture a prediction is,
        in the unit of y.
        """
        check_is_fitted(self)
        codes = self._encode(X)
        if self.moments_:
            parts = mixtures.parts_of_moments(self.moments_, self.offsets_)
        else:
            parts = mixtures.parts_of_draws(self._pooled())

        def reduce_codes(codes):
            means, variances = parts(codes)
            return reduce(self.centre_ + self.scale_ * means, self.scale_**2 * variances)

        return mixtures.in_blocks(reduce_codes, codes, self._n_parts())

    def _clipped(self, values):
        """Values moved into the range of ratings, if `clip` says so."""
        if self.clip is False:
            return values
        return np.clip(values, *(self.rating_range_ if self.clip is True else self.clip))

    def predict(
        self, X: ArrayLike, return_std: bool = False
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Posterior predictive mean of ratings, and their standard deviation.

        If the sampler provides conditional means of the vectors of column 0, the predictive mean is
        averaged over these instead of the vectors that were drawn, which has the same limit with
        less Monte Carlo error.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
        return_std : bool, default=False
            Whether to return the standard deviation of a new rating as well, which includes both
            the uncertainty of its expectation and the noise.

        Returns
        -------
        mean : ndarray of shape (n_rows,)
        std : ndarray of shape (n_rows,)
            Only if `return_std`.
        """
        mean, std = self._predicted(X, mixtures.mean_and_std)
        return (self._clipped(mean), std) if return_std else self._clipped(mean)

    def predict_std_components(self, X: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """The two parts of the uncertainty of ratings, of which more data reduce only the first.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)

        Returns
        -------
        epistemic : ndarray of shape (n_rows,)
            Standard deviation of the expected rating, over the posterior and over new categories.
            It is not available with ``keep="predictive"``, which does not separate the two parts.
        aleatoric : ndarray of shape (n_rows,)
            Square root of the mean variance of the noise. The squares of both parts add up to the
            square of the standard deviation that `predict` returns.
        """
        check_is_fitted(self)
        draws = self._pooled()
        reduce = partial(mixtures.uncertainty, draws)
        found = mixtures.in_blocks(reduce, self._encode(X), self._n_parts())
        epistemic, aleatoric = self.scale_ * found
        return epistemic, aleatoric

    def predict_log_density(self, X: ArrayLike, y: ArrayLike) -> np.ndarray:
        """Log posterior predictive density of observed ratings, log p(y | x).

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        check_is_fitted(self)
        check_consistent_length(X, y)
        y = iter(check_array(y, ensure_2d=False, dtype=np.float64, input_name="y"))

        def reduce(means, variances):
            own = np.fromiter(y, np.float64, means.shape[1])
            return mixtures.log_density(own, means, variances)

        return self._predicted(X, reduce)

    def predict_quantiles(
        self, X: ArrayLike, quantiles: Sequence[float] | float = (0.05, 0.5, 0.95)
    ) -> np.ndarray:
        """Quantiles of the posterior predictive distribution of ratings.

        This distribution is a mixture of normal distributions, one for each draw, with the expected
        rating and the noise of that draw. New categories add to the variance.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
        quantiles : float or sequence of float in (0, 1), default=(0.05, 0.5, 0.95)

        Returns
        -------
        ndarray of shape (n_rows, n_quantiles), or (n_rows,) for a float
        """
        q = check_probabilities("quantiles", quantiles)
        found = self._predicted(X, partial(mixtures.quantiles_of, np.atleast_1d(q)))
        return self._clipped(found).T if q.ndim else self._clipped(found[0])

    def sample_y(
        self, X: ArrayLike, n_samples: int = 1, random_state: RandomState = 0
    ) -> np.ndarray:
        """Draws from the posterior predictive distribution of ratings.

        All rows of a sample use the same draw of the posterior, so that sums and rankings of
        ratings have their correct joint distribution. New categories and noise are drawn
        independently for each row.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
        n_samples : int, default=1
        random_state : int, RandomState instance or None, default=0

        Returns
        -------
        ndarray of shape (n_rows, n_samples)
        """
        check_count("n_samples", n_samples)
        check_is_fitted(self)
        rng = streams.of_predictions(streams.seed_of(random_state))
        total = self._n_parts()
        which = weighting.drawn_at_random(rng, None, n_samples, total)
        return self._clipped(self._predicted(X, partial(mixtures.samples_of, which, rng))).T

    # -- recommendation -----------------------------------------------------------------------

    def recommend(
        self,
        users: ArrayLike,
        n: int = 10,
        *,
        strategy: str = "mean",
        exclude_seen: bool = True,
        exploration: float = 1.0,
        context: ArrayLike | None = None,
        random_state: RandomState = None,
        return_scores: bool = False,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The n items with the best scores for each user, best first.

        Parameters
        ----------
        users : array-like of shape (n_users,)
            Categories of column 0. For new users the recommendations follow from the prior of their
            vectors, with a warning; with ``cold="raise"`` new users are an error.
        n : int, default=10
        strategy : {"mean", "thompson", "ucb"}, default="mean"
            The score by which items are ranked. "mean": the expected rating. "thompson": the rating
            expected under one draw of the posterior for each user, which explores the more, the
            more uncertain the posterior is. "ucb": the expected rating plus `exploration` times its
            posterior standard deviation (without noise).
        exclude_seen : bool, default=True
            Whether to leave out items that the user has rated.
        exploration : float, default=1.0
            Factor of the posterior standard deviation for "ucb".
        context : array-like of shape (n_columns - 2,) or (n_users, n_columns - 2), optional
            Categories of the columns after the item, if there are any.
        random_state : int, RandomState instance or None, default=None
            Seed of the choice of draws for "thompson".
        return_scores : bool, default=False
            Whether to return the scores as well, in the units of the ratings.

        Returns
        -------
        items : ndarray of shape (n_users, n)
            Recommended categories of column 1, best first.
        scores : ndarray of shape (n_users, n)
            Only if `return_scores`.

        Raises
        ------
        ValueError
            For a `strategy` or an `exploration` that is not accepted, for too few items, and for
            new users with ``cold="raise"``.
        """
        check_is_fitted(self)
        self._check_items()
        users = _as_labels("users", users)
        codes = user_codes(users, context, self.categories_, self.offsets_, self.cold)
        rng = streams.of_predictions(streams.seed_of(random_state))
        score = scorer(strategy, self._pooled(), exploration, rng)

        def scores():
            for row in codes:
                found = score(item_codes(row, self.offsets_))
                if exclude_seen and row[0] >= 0:
                    found[self._seen_items(row[0])] = -np.inf
                yield found

        places, values = best(scores(), n, users, "user")
        items = self.categories_[1][places]
        return (items, self.centre_ + self.scale_ * values) if return_scores else items

    def _check_items(self):
        """`ValueError` if X had no column of items."""
        if self.n_features_in_ < 2:
            raise ValueError("There are no items: X had a single column when the model was fitted.")

    def _seen_items(self, user):
        """Positions of the items that user number `user` has rated."""
        first, stop = self.seen_starts_[user : user + 2]
        return self.seen_[first:stop, 0] - self.offsets_[1]

    def similar(self, items: ArrayLike, n: int = 10) -> tuple[np.ndarray, np.ndarray]:
        """The n items that are most like each item, best first.

        The similarity of two items is the correlation between the ratings that new users are
        expected to give them, according to the factors (without biases), averaged over the draws.
        It is 1 if the same users like both items.

        Parameters
        ----------
        items : array-like of shape (n_items,)
            Categories of column 1.
        n : int, default=10

        Returns
        -------
        alike : ndarray of shape (n_items, n)
            The most similar categories of column 1, without the item itself.
        correlations : ndarray of shape (n_items, n)
            Their similarities to the item.

        Raises
        ------
        NotFittedError
            If the estimator has not been fitted.
        ValueError
            For items that were not in the data or are no sequence, for an `n` that is not a
            positive int or more than there are other items, if X had no column of items, and if no
            draws were kept (``keep="predictive"``).
        """
        check_is_fitted(self)
        self._check_items()
        labels = _as_labels("items", items)
        codes = encode(labels, self.categories_[1])
        if (codes < 0).any():
            unknown = labels[codes < 0].tolist()[0]
            raise ValueError(f"items has {unknown!r}, which was not in the data.")
        first, stop = self.offsets_[1:3]
        found = alike(self._pooled(), codes + first, slice(first, stop))
        places, correlations = best(found, n, labels, "item")
        return self.categories_[1][places], correlations


def _as_labels(name, values):
    """Users or items as an array of one dimension; `ValueError` for a single one."""
    array = np.asarray(values)
    if array.ndim == 0:
        raise ValueError(f"{name} must be a sequence of categories, got {values!r}.")
    return column_or_1d(array)


def _check_memory(request, problem):
    """`MemoryError` or `DrawStoreWarning` if draws take too much memory."""
    size = entries_of_a_draw(problem, request.sampler.has_means)
    check_draw_store(request.n_chains, request.n_draws, size, 4, REMEDY)
