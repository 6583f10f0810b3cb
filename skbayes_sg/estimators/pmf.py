"""Bayesian probabilistic matrix factorisation."""

import numbers
import warnings

import numpy as np
import sklearn
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils import check_array, check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.validation import check_is_fitted, validate_data

from .._base import streams
from .._base.callbacks import CallbackSupportMixin, Progress, with_callbacks
from .._base.threads import one_blas_thread
from .._base.validation import Parameters, check_count, check_probabilities, reject_masked
from ..diagnostics import convergence
from ..exceptions import SamplerConvergenceWarning
from ..factorisation import (
    HYPERPRIORS,
    SAMPLERS,
    Gibbs,
    Hyperprior,
    NormalWishart,
    Sampler,
    SparseSGLD,
)
from ..factorisation.categories import encode, encode_table, first_duplicate, keys, learn_table
from ..factorisation.chains import N_PROBES, Model, Setup, new_chain, run
from ..factorisation.draws import Draws, Moments, numbers_of_a_draw
from ..factorisation.noise import COMMON, HIERARCHICAL, KNOWN
from ..factorisation.predictive import mixture_quantiles, predictive
from ..factorisation.problem import make_problem
from ..factorisation.recommend import alike, scores_under_a_draw, top
from ..posterior import Posterior
from ._store import all_or_nothing, check_draw_store

__all__ = ["BayesianPMF"]

N_SAMPLED = 1000  # ratings that stand for all where the noise is reported
RHAT_WARNING = 1.2
REMEDY = (
    "Draws are kept as float32 already: thin more and lower n_draws, lower the rank, or use "
    "keep='predictive' for running moments of known pairs."
)


class BayesianPMF(RegressorMixin, CallbackSupportMixin, BaseEstimator):
    r"""Probabilistic matrix factorisation: ratings with the uncertainty of their prediction.

    X has one column a factor, of categories: user, item, and any context. With the categories
    :math:`a_0, \ldots, a_{C-1}` of a row, each with a vector :math:`p_a` of `rank` numbers and a
    bias :math:`b_a`,

    .. math::

        y = m + \sum_c b_{a_c} + \sum_{c < c'} p_{a_c} \cdot p_{a_{c'}} + \varepsilon,
        \qquad \varepsilon \sim N(0, \sigma^2 / (w_{a_0} \cdots w_{a_{C-1}})).

    Two columns are matrix factorisation with biases, more are a factorisation machine over
    categories, one is a model of random effects. The rows :math:`[p_a, b_a]` of each column are
    normal, with a mean and a precision matrix that are sampled as well, and so are the noise and
    the weights :math:`w_a \sim \mathrm{Gamma}(\nu, \nu)` by which some users are more erratic, and
    some items more divisive, than others.

    Vectors are determined up to a rotation: compare predictions, not vectors. The posterior has
    many modes, and a chain stays near one of them up to rotation; what is tested are predictions.

    Parameters
    ----------
    rank : int, default=16
        K, how many numbers describe a category.
    prior : {"normal_wishart", "normal_gamma"} or Hyperprior, default="normal_wishart"
        What is assumed of the mean and the precision of the rows of a column: an object of
        `skbayes_sg.factorisation`. "normal_gamma" has independent factors.
    noise : {"hierarchical", "common"} or float, default="hierarchical"
        "hierarchical": as above. "common": all weights are 1. A number is the known standard
        deviation of the noise, in the unit of y.
    sampler : {"auto", "gibbs", "sgld", "sghmc", "user_block"} or Sampler, default="auto"
        How the state moves: an object of `skbayes_sg.factorisation`, or a string for one with its
        defaults. "gibbs" is exact. "auto" is "gibbs", which starts on a share of the users where
        there are more than half a million ratings; "sgld" where a gradient, a batch size or a step
        size is given.
    gradient : {"auto", "minibatch", "control_variate"}, default="auto"
        For "sgld" and "sghmc": whether the gradient of each rating is compared with that at a
        centre. "auto" is "minibatch".
    batch_size : "auto", int or float, default="auto"
        For "sgld" and "sghmc": ratings a step, or their share of all. "auto" is 64, at most a
        twentieth of the ratings.
    step_size : "auto" or float in (0, 4), default="auto"
        For the samplers with stochastic gradients: the h of
        :math:`\theta' = \theta - (h/2) P \nabla U + \sqrt h P^{1/2} \xi`, as the sum over the
        steps of a pass, with P the inverse of the mean precision of each row. Standard deviations
        are too large by some 6 % times h. "auto" is 0.4.
    n_draws : int, default=100
        Draws of each chain that are kept.
    n_chains : int, default=1
        Independent chains.
    n_warmup : "auto" or int, default="auto"
        Passes of each chain before the first draw. "auto" is 10, and 20 for "sgld" and "sghmc": a
        prediction is an average over a chain that soon moves about the mode that it has found.
    thin : int, default=1
        Passes from one draw to the next.
    keep : {"all", "predictive"}, default="all"
        "all": all draws, in float32. "predictive": running moments of the predictions of the
        pairs in X, or of the `probes` given to `fit`, and nothing else; their intervals are those
        of a normal law.
    clip : bool or pair of float, default=False
        Whether predictions are moved into the range of the ratings. A pair is that range; ratings
        outside of it are refused.
    cold : {"prior", "raise"}, default="prior"
        What to do about categories that were not in the data: predict from the prior of new ones,
        with its larger variance and a warning that counts them, or refuse.
    duplicates : {"auto", "raise", "keep"}, default="auto"
        What to do about several ratings of the same categories: refuse, or take them as repeated
        measurements. "auto" refuses where X has two columns: a user rates an item once.
    random_state : int, RandomState instance or None, default=None
        Seed. An int gives the same draws at every call, whatever `n_jobs` is.
    n_jobs : int or None, default=None
        Threads: for chains, or for the rows of a single one. None is 1, -1 is all processors.

    Attributes
    ----------
    posterior_ : Posterior
        What is determined whatever the rotation, in the unit of y: "noise_std", the root mean
        square of the noise over ratings; "mean", the expected rating of new categories; "probes",
        predictions of some rows of X, by which convergence is judged.
    noise_std_ : float
        Posterior mean of "noise_std".
    categories_ : list of ndarray
        Categories of each column.
    offsets_ : ndarray of shape (n_columns + 1,)
        The category number k of column c is row ``offsets_[c] + k`` of `draws_`.
    draws_ : dict of str to ndarray
        Kept states, (n_chains, n_draws, ...) each, in units in which the ratings have mean 0 and
        standard deviation 1: "F" the rows [p, b] of all categories, "means" the conditional means
        of those of column 0, "w" the weights, "alpha" the precision 1/σ², "shapes" the ν, "mu" and
        "sigma" mean and covariance of the rows of each column. Empty for ``keep="predictive"``.
    moments_ : dict of str to ndarray
        For ``keep="predictive"``, sorted "keys" of the pairs with "mean" and "variance" of their
        predictions; else empty.
    centre_, scale_ : float
        Mean and standard deviation of the ratings.
    rating_range_ : ndarray of shape (2,)
        Smallest and largest rating.
    seen_starts_, seen_ : ndarray
        Rows of the other columns that user number k has ratings with:
        ``seen_[seen_starts_[k]:seen_starts_[k + 1]]``.
    sampler_ : str
        What "auto" became.
    n_warmup_, batch_size_ : int
        Likewise; ratings a step on average, all for "gibbs".
    step_size_ : float
        Likewise; NaN for "gibbs".
    diagnostics_ : dict of str to float
        ``ess`` and ``rhat`` of the predictions "probes": nine in ten have at least this effective
        sample size, and at most this R-hat. NaN for less than 8 draws.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_columns,)
        Names of the columns, if X had names that are strings.

    Raises
    ------
    InvalidParameterError
        By `fit`, for a parameter with a value that is not accepted; a `ValueError` and a
        `TypeError`.
    ValueError
        By `fit`, for data that cannot be used: missing categories, ratings that are not finite or
        outside of the range given by `clip`, several ratings of the same categories.
    SamplerDivergedError
        By `fit`, if a chain leaves the region where the posterior can be.
    MemoryError
        By `fit`, before sampling, if the draws that were asked for do not fit into free memory.

    Warns
    -----
    SamplerConvergenceWarning
        A tenth of the predictions looked at have an R-hat above 1.2.
    DrawStoreWarning
        The draws take more than scikit-learn's ``working_memory``.
    UserWarning
        By predictions, for categories that were not in the data.

    See Also
    --------
    skbayes_sg.factorisation : Samplers and priors.

    Notes
    -----
    An error or Ctrl-C during `fit` leaves the estimator as it was before the call. Ratings are
    standardised, so priors do not depend on their unit.

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
        self, *, rank=16, prior="normal_wishart", noise="hierarchical", sampler="auto",
        gradient="auto", batch_size="auto", step_size="auto", n_draws=100, n_chains=1,
        n_warmup="auto", thin=1, keep="all", clip=False, cold="prior", duplicates="auto",
        random_state=None, n_jobs=None,
    ):  # fmt: skip
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
        tags.regressor_tags.poor_score = True  # numbers are taken for names
        tags.input_tags.string = True
        return tags

    # -- fit ----------------------------------------------------------------------------------

    @with_callbacks
    def fit(self, X, y, *, probes=None):
        """Sample the posterior.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
            One column a factor: users, items, and any context. Categories of any kind that can be
            hashed: numbers, strings, a DataFrame of both.
        y : array-like of shape (n_rows,)
            Ratings.
        probes : array-like of shape (n_probes, n_columns), optional
            For ``keep="predictive"``: the rows whose predictions are wanted; X if None.

        Returns
        -------
        self : BayesianPMF
            With the attributes of the class docstring.
        """
        with all_or_nothing(self):
            request = _Request(self)
            request.check_probes(probes)
            X, y = _check_ratings(self, X, y)
            request.check_range(y)
            data, codes = _learn(X, y, type(self).__name__)
            if request.refuses_duplicates(codes.shape[1]):
                _reject_duplicates(codes, data["offsets_"], X, type(self).__name__)
            problem = make_problem(
                codes, (y - data["centre_"]) / data["scale_"], data["offsets_"], request.rank
            )
            data["seen_starts_"], data["seen_"], _ = problem.groups[0]
            known = None
            if request.keep == "predictive":
                known = codes if probes is None else self._encode(probes, data)
            setup, chains, store = request.prepare(problem, data["scale_"], known)

            def attributes(done):
                return data | _kept(setup, chains, store, done, data)

            progress = Progress(self, attributes, X=X, y=y)
            with one_blas_thread:
                chains, done = run(
                    setup, chains,
                    lambda done: progress(lambda: (done,), done / setup.n_draws),
                )  # fmt: skip
            fitted = attributes(done) | request.chosen(problem)
            vars(self).update(fitted)
            _warn_unless_converged(fitted["diagnostics_"])
            progress.finish(fitted)
            return self

    # -- prediction ---------------------------------------------------------------------------

    def _encode(self, X, fitted=None):
        """Rows of F; -1 for new categories, of which it warns."""
        X = _check_categories(self, X)
        fitted = vars(self) if fitted is None else fitted
        codes = encode_table(X, fitted["categories_"], fitted["offsets_"])
        new = (codes < 0).sum(axis=0)
        if new.any():
            told = (
                f"{(codes < 0).any(axis=1).sum()} of {len(X)} rows have categories that were not "
                f"in the data (by column: {', '.join(map(str, new))})"
            )
            if self.cold == "raise":
                raise ValueError(f"{told}. Use cold='prior' to predict them from the prior.")
            warnings.warn(f"{told}: predicted from the prior.", UserWarning, stacklevel=5)
        return codes

    def _pooled(self):
        """The draws, chains after one another."""
        if not self.draws_:
            raise ValueError("keep='predictive' has kept no draws. Use keep='all'.")
        return Draws(**self.draws_).pooled()

    def _blocks(self, X, reduce):
        """``reduce(codes)`` (..., rows), joined; for few enough rows at once."""
        check_is_fitted(self)
        codes = self._encode(X)
        limit = sklearn.get_config()["working_memory"] * 2**20
        step = max(1, int(limit / (128 * self._n_parts())))
        starts = range(0, len(codes), step)
        return np.concatenate([reduce(codes[k : k + step]) for k in starts], axis=-1)

    def _parts(self, X, reduce):
        """``reduce(means, variances)`` (parts, rows) of the mixtures of normals, by blocks."""
        check_is_fitted(self)
        parts = _known_parts(self.moments_, self.offsets_) if self.moments_ else self._of_draws()

        def reduce_codes(codes):
            means, variances = parts(codes)
            return np.asarray(
                reduce(self.centre_ + self.scale_ * means, self.scale_**2 * variances)
            )

        return self._blocks(X, reduce_codes)

    def _n_parts(self):
        return self.draws_["alpha"].size if self.draws_ else 1

    def _of_draws(self):
        draws = self._pooled()

        def parts(codes):
            f, g, spread, noise = predictive(draws, codes)
            return f + (g.mean(axis=0) - f.mean(axis=0)), spread + noise

        return parts

    def _clipped(self, values):
        if self.clip is False:
            return values
        return np.clip(values, *(self.rating_range_ if self.clip is True else self.clip))

    def predict(self, X, return_std=False):
        """Posterior predictive mean of ratings, and their standard deviation.

        Where the sampler gives conditional means of the rows of column 0, the mean is averaged
        over these instead of the rows drawn: the same limit with less Monte Carlo error.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
        return_std : bool, default=False
            Whether to return the standard deviation of a new rating: of its expectation and of its
            noise together.

        Returns
        -------
        mean : ndarray of shape (n_rows,)
        std : ndarray of shape (n_rows,)
            If asked for.
        """

        def reduce(means, variances):
            mean = means.mean(axis=0)
            spread = ((means - mean) ** 2).mean(axis=0)
            return mean, np.sqrt(spread + variances.mean(axis=0))

        mean, std = self._parts(X, reduce)
        return (self._clipped(mean), std) if return_std else self._clipped(mean)

    def predict_std_components(self, X):
        """What a rating is uncertain by, in two parts: more data help against the first one only.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)

        Returns
        -------
        epistemic : ndarray of shape (n_rows,)
            Standard deviation of the expected rating, over the posterior and new categories. With
            ``keep="predictive"`` the two are not known apart.
        aleatoric : ndarray of shape (n_rows,)
            Root of the mean variance of the noise. The squares of both add up to that of the
            standard deviation that `predict` returns.
        """
        check_is_fitted(self)
        draws = self._pooled()

        def reduce(codes):
            f, _, spread, noise = predictive(draws, codes)
            return np.sqrt([f.var(axis=0) + spread.mean(axis=0), noise.mean(axis=0)])

        epistemic, aleatoric = self.scale_ * self._blocks(X, reduce)
        return epistemic, aleatoric

    def predict_log_density(self, X, y):
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
            log_p = -0.5 * ((own - means) ** 2 / variances + np.log(2.0 * np.pi * variances))
            return logsumexp(log_p, axis=0) - np.log(len(log_p))

        return self._parts(X, reduce)

    def predict_quantiles(self, X, quantiles=(0.05, 0.5, 0.95)):
        """Quantiles of the posterior predictive law of ratings.

        It is a mixture of normals, one a draw, with the expected rating and the noise of the draw
        (new categories: with the variance that they add).

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
        quantiles : float or sequence of float in (0, 1), default=(0.05, 0.5, 0.95)

        Returns
        -------
        ndarray of shape (n_rows, n_quantiles), or (n_rows,) for a float
        """
        q = check_probabilities("quantiles", quantiles)

        def reduce(means, variances):
            return [mixture_quantiles(means, variances, one) for one in np.atleast_1d(q)]

        found = self._clipped(self._parts(X, reduce))
        return found.T if q.ndim else found[0]

    def predict_interval(self, X, confidence_level=0.9):
        """Central posterior predictive interval of ratings.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
        confidence_level : float in (0, 1), default=0.9
            Probability that a new rating lies inside.

        Returns
        -------
        lower, upper : ndarray of shape (n_rows,)
        """
        check_probabilities("confidence_level", confidence_level)
        tail = 0.5 - confidence_level / 2
        lower, upper = self.predict_quantiles(X, [tail, 1.0 - tail]).T
        return lower, upper

    def sample_y(self, X, n_samples=1, random_state=0):
        """Draws from the posterior predictive law of ratings.

        All rows of a sample are under the same draw of the posterior, so that sums and orders of
        ratings have their joint law; new categories and noise are drawn for each row by itself.

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
        rng = check_random_state(random_state)
        total = self._n_parts()
        which = rng.choice(total, n_samples, replace=n_samples > total)

        def reduce(means, variances):
            noise = rng.standard_normal((n_samples, means.shape[1]))
            return means[which] + np.sqrt(variances[which]) * noise

        return self._clipped(self._parts(X, reduce)).T

    # -- recommendation -----------------------------------------------------------------------

    def recommend(
        self, users, n=10, *, strategy="mean", exclude_seen=True, exploration=1.0, context=None,
        random_state=None, return_scores=False,
    ):  # fmt: skip
        """The n items with the best scores for each user, best first.

        Parameters
        ----------
        users : array-like of shape (n_users,)
            Categories of column 0; new ones are recommended what their prior suggests.
        n : int, default=10
        strategy : {"mean", "thompson", "ucb"}, default="mean"
            The score of an item: the expected rating; the rating expected under one draw of the
            posterior for each user, which explores as much as the posterior is unsure; or the
            expected rating plus `exploration` of its posterior standard deviations (without noise).
        exclude_seen : bool, default=True
            Whether to leave out items that the user has rated.
        exploration : float, default=1.0
            For "ucb".
        context : array-like of shape (n_columns - 2,) or (n_users, n_columns - 2), optional
            Categories of the columns beyond item, where there are any.
        random_state : int, RandomState instance or None, default=None
            For "thompson".
        return_scores : bool, default=False
            Whether to return the scores, in the unit of ratings, as well.

        Returns
        -------
        items : ndarray of shape (n_users, n)
            Categories of column 1.
        scores : ndarray of shape (n_users, n)
            If asked for.
        """
        check_is_fitted(self)
        if strategy not in ("mean", "thompson", "ucb"):
            raise ValueError(f"strategy must be 'mean', 'thompson' or 'ucb', got {strategy!r}.")
        codes = self._users_with_context(users, context)
        draws, rng = self._pooled(), check_random_state(random_state)
        items, scores = [], []
        for number, row in enumerate(codes):
            all_items = self._with_all_items(row)
            if strategy == "thompson":
                draw = draws.at(rng.randint(len(draws.alpha)))
                score = scores_under_a_draw(draw, all_items, rng)
            else:
                f, g, spread, _ = predictive(draws, all_items)
                score = g.mean(axis=0)
                if strategy == "ucb":
                    score += exploration * np.sqrt(f.var(axis=0) + spread.mean(axis=0))
            if exclude_seen and row[0] >= 0:
                score[self._seen_items(row[0])] = -np.inf
            self._check_enough(n, score, users, number)
            best = top(score, n)
            items.append(self.categories_[1][best])
            scores.append(self.centre_ + self.scale_ * score[best])
        return (np.array(items), np.array(scores)) if return_scores else np.array(items)

    def _users_with_context(self, users, context):
        """Codes of users, and of their context, with 0 where the item is to be."""
        if self.n_features_in_ < 2:
            raise ValueError("There is nothing to recommend: X had a single column, no items.")
        users = column_or_1d(np.asarray(users))
        codes = np.zeros((len(users), self.n_features_in_), np.int32)
        codes[:, 0] = encode(users, self.categories_[0])
        n_more = self.n_features_in_ - 2
        if n_more != (0 if context is None else np.asarray(context).shape[-1]):
            raise ValueError(
                f"context must have the {n_more} categories that X has beyond user and item, got "
                f"{context!r}."
            )
        if n_more:
            rows = np.broadcast_to(np.asarray(context), (len(users), n_more))
            codes[:, 2:] = encode_table(rows, self.categories_[2:], self.offsets_[2:])
        return codes

    def _with_all_items(self, row):
        codes = np.tile(row, (len(self.categories_[1]), 1))
        codes[:, 1] = np.arange(self.offsets_[1], self.offsets_[2])
        return codes

    def _seen_items(self, user):
        return (
            self.seen_[self.seen_starts_[user] : self.seen_starts_[user + 1], 0] - self.offsets_[1]
        )

    def _check_enough(self, n, score, users, number):
        there = int(np.isfinite(score).sum())
        whole = isinstance(n, numbers.Integral) and not isinstance(n, bool)
        if not whole or not 1 <= n <= there:
            raise ValueError(
                f"n must be an int in [1, {there}], the number of items left for user "
                f"{np.asarray(users)[number]!r}, got {n!r}."
            )

    def similar(self, items, n=10):
        """The n items that are most like each item, best first.

        How alike two items are is the correlation of what new users think of them, as factors
        tell it (without biases), averaged over the draws: at 1 the same users like them.

        Parameters
        ----------
        items : array-like of shape (n_items,)
            Categories of column 1.
        n : int, default=10

        Returns
        -------
        alike : ndarray of shape (n_items, n)
            Categories of column 1, not the item itself.
        correlations : ndarray of shape (n_items, n)
        """
        check_is_fitted(self)
        if self.n_features_in_ < 2:
            raise ValueError("There are no items: X had a single column.")
        labels = column_or_1d(np.asarray(items))
        codes = encode(labels, self.categories_[1])
        if (codes < 0).any():
            raise ValueError(f"items has {labels[codes < 0][0]!r}, which was not in the data.")
        first, stop = self.offsets_[1:3]
        found = alike(self._pooled(), codes + first, slice(first, stop))
        found[np.arange(len(codes)), codes] = -np.inf
        for number in range(len(codes)):
            self._check_enough(n, found[number], labels, number)
        places = np.stack([top(row, n) for row in found])
        return self.categories_[1][places], np.take_along_axis(found, places, axis=1)


# -- what was asked for ---------------------------------------------------------------------------


class _Request:
    """The constructor's parameters, checked."""

    def __init__(self, estimator):
        p = Parameters(estimator)
        self.estimator, self.p = estimator, p
        self.rank, self.n_draws = p.integer("rank", 1), p.integer("n_draws", 1)
        self.n_chains, self.thin = p.integer("n_chains", 1), p.integer("thin", 1)
        warmup = p.integer("n_warmup", 0, auto=True)
        self.prior = p.component("prior", HYPERPRIORS, Hyperprior) or NormalWishart()
        self.sampler = self._sampler()
        self.n_warmup = self.sampler.warmup if warmup is None else warmup
        self.keep = p.choice("keep", ["all", "predictive"])
        p.choice("cold", ["prior", "raise"])
        self.duplicates = p.choice("duplicates", ["auto", "raise", "keep"])
        self.noise, self.noise_std = self._noise()
        self.range = self._range()
        self.seed, self.n_jobs = p.seed(), p.n_jobs()

    def _sampler(self):
        """The sampler, with the settings that stand in the constructor of the estimator."""
        sampler = self.p.component("sampler", SAMPLERS, Sampler)
        given = {
            "gradient": self.p.choice("gradient", ["auto", "minibatch", "control_variate"]),
            "batch_size": self._batch_size(),
            "step_size": self._step_size(),
        }
        given = {name: value for name, value in given.items() if value != "auto"}
        if sampler is None:
            sampler = SparseSGLD() if given else Gibbs()
        if "gradient" in given:
            given["control_variate"] = given.pop("gradient") == "control_variate"
        for name in given:
            own = "gradient" if name == "control_variate" else name
            if isinstance(self.estimator.sampler, Sampler) or name not in sampler.get_params():
                raise ValueError(
                    f"{own}={getattr(self.estimator, own)!r} does not go with "
                    f"sampler={self.estimator.sampler!r}. Leave one of them to 'auto', or give the "
                    "object that is the sampler its own parameters."
                )
        return clone(sampler).set_params(**given)

    def _batch_size(self):
        value = self.estimator.batch_size
        real = isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))
        whole = real and isinstance(value, numbers.Integral)
        if isinstance(value, str) and value == "auto":
            return value
        if (whole and value >= 1) or (real and not whole and 0.0 < value <= 1.0):
            return value
        wanted = "'auto', an int in the range [1, inf) or a float in the range (0.0, 1.0]"
        return self.p.fail("batch_size", wanted)

    def _step_size(self):
        value = self.estimator.step_size
        real = isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))
        if (isinstance(value, str) and value == "auto") or (real and 0.0 < value < 4.0):
            return value
        return self.p.fail("step_size", "'auto' or a number in (0, 4)")

    def _noise(self):
        value = self.estimator.noise
        if isinstance(value, str) and value in (HIERARCHICAL, COMMON):
            return value, None
        number = isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))
        if number and 0.0 < value < np.inf:
            return KNOWN, float(value)
        return self.p.fail("noise", "'hierarchical', 'common' or a positive finite number")

    def _range(self):
        value = self.estimator.clip
        if isinstance(value, (bool, np.bool_)):
            return None
        try:
            low, high = (float(end) for end in value)
        except (TypeError, ValueError):
            low = high = np.nan
        if not low < high:
            self.p.fail("clip", "True, False or a pair of numbers, the smaller one first")
        return low, high

    def refuses_duplicates(self, n_columns):
        """Whether a rating of the same categories may come but once."""
        return self.duplicates == "raise" or (self.duplicates == "auto" and n_columns == 2)

    def check_probes(self, probes):
        """`ValueError` for probes that nothing would be kept of."""
        if probes is not None and self.keep != "predictive":
            raise ValueError("probes are for keep='predictive'; with all draws, use predict.")

    def check_range(self, y):
        """`ValueError` for the first rating outside of the range."""
        if self.range is not None:
            outside = np.flatnonzero((y < self.range[0]) | (y > self.range[1]))
            if len(outside):
                raise ValueError(
                    f"y has the rating {y[outside[0]]:g} in row {outside[0]}, outside of "
                    f"clip={self.range}."
                )

    def prepare(self, problem, scale, known):
        """What the chains share, the chains, and where their draws go."""
        alpha = 1.0 if self.noise_std is None else (scale / self.noise_std) ** 2
        model = Model(problem, self.prior, self.noise, alpha)
        rng = streams.of_recipe(self.seed)
        probes = problem.codes[rng.integers(0, problem.n_ratings, N_SAMPLED)]
        setup = Setup(
            model, self.sampler, self.n_draws, self.thin, self.n_warmup, probes, self.n_jobs
        )
        store, lead = None, (self.n_chains, self.n_draws)
        if known is None:
            size = numbers_of_a_draw(problem, self.sampler.has_means)
            check_draw_store(*lead, size, 4, REMEDY)
            store = Draws.empty(problem, lead, self.sampler.has_means)
        chains = [new_chain(model, self.seed, number) for number in range(self.n_chains)]
        for chain in chains:
            chain.kept = Moments(known) if store is None else store.at(chain.number)
            chain.n_warmup = self.n_warmup
            chain.trace = np.empty((self.n_draws, 2 + N_PROBES))
        return setup, chains, store

    def chosen(self, problem):
        """What "auto" became."""
        names = {kind: name for name, kind in SAMPLERS.items()}
        return {
            "sampler_": names.get(type(self.sampler), type(self.sampler).__name__),
            "n_warmup_": self.n_warmup,
            "batch_size_": self.sampler.ratings_a_step(problem),
            "step_size_": self.sampler.time_of_a_pass(),
        }


# -- data -----------------------------------------------------------------------------------------


def _reject_missing(X):
    """`ValueError` for missing categories that conversion to an array would make objects."""
    missing = X.isna().to_numpy() if hasattr(X, "isna") else None
    if missing is None and getattr(X, "dtype", np.dtype(float)).kind == "O":
        missing = np.equal(X, None)
    if missing is not None and missing.any():
        raise ValueError(
            f"Input X contains NaN: a category is missing in row {np.argwhere(missing)[0][0]}."
        )


def _check_categories(estimator, X, y=None):
    """X (and y) as arrays, columns of any kind."""
    reject_masked(X=X, y=y)
    _reject_missing(X)
    if y is None:
        X = validate_data(estimator, X, dtype=None, reset=False)
        _reject_missing(X)
        return X
    X, y = validate_data(estimator, X, y, dtype=None, y_numeric=True)
    _reject_missing(X)
    return X, y


def _check_ratings(estimator, X, y):
    """X as an array of categories, y as finite ratings."""
    if y is None:
        validate_data(estimator, X, y)  # scikit-learn's message
    X, y = _check_categories(estimator, X, y)
    return X, np.asarray(y, dtype=np.float64)


def _learn(X, y, owner):
    """Attributes that the data alone determine, and the codes of the rows."""
    categories, offsets, codes = learn_table(X)
    with np.errstate(over="ignore", invalid="ignore"):
        centre, scale = float(y.mean()), float(y.std())
    if not np.isfinite(centre) or not np.isfinite(scale):
        raise ValueError(f"The scale of y is too large for {owner}: its variance overflows.")
    data = {
        "categories_": categories, "offsets_": offsets, "centre_": centre,
        "scale_": scale if scale > 1e-300 else 1.0, "rating_range_": np.array([y.min(), y.max()]),
    }  # fmt: skip
    return data, codes


def _reject_duplicates(codes, offsets, X, owner):
    """`ValueError` that names two rows with the same categories."""
    rows = first_duplicate(codes, offsets)
    if rows is not None:
        raise ValueError(
            f"{owner} got several ratings of the same categories: rows {rows[0]} and {rows[1]} of "
            f"X are both {X[rows[0]].tolist()}. Average them, or use duplicates='keep' to take "
            "them as repeated measurements."
        )


# -- results --------------------------------------------------------------------------------------


def _kept(setup, chains, store, done, data):
    """Attributes made of the first `done` draws of all chains."""
    unit = data["scale_"]
    traces = np.stack([chain.trace[:done] for chain in chains])
    flat = np.concatenate([unit * traces[..., :1], data["centre_"] + unit * traces[..., 1:]], -1)
    n_probes = flat.shape[-1] - 2
    posterior = Posterior(
        flat, {"noise_std": (), "mean": (), "probes": (n_probes,)},
        ["noise_std", "mean", *(f"probes[{k}]" for k in range(n_probes))],
        {"sampler": type(setup.sampler).__name__, "thin": setup.thin},
    )  # fmt: skip
    return {
        "posterior_": posterior,
        "noise_std_": float(posterior.mean("noise_std")),
        "draws_": {} if store is None else _gathered(store, chains, done),
        "moments_": _moments(chains, data["offsets_"]) if store is None else {},
        "diagnostics_": _diagnostics(flat[..., 2:]),
    }


def _gathered(store, chains, done):
    """The draws of all chains; those made in other processes are copied into the store."""
    for chain in chains:
        if not np.shares_memory(chain.kept.F, store.F):
            for mine, made in zip(store, chain.kept, strict=True):
                mine[chain.number] = made
    return {name: array[:, :done] for name, array in store._asdict().items()}


def _moments(chains, offsets):
    """Mean and variance of the predictions of known pairs, sorted by their keys."""
    g, f, squares, other = sum(chain.kept.sums for chain in chains) / sum(
        chain.kept.count for chain in chains
    )
    key = keys(chains[0].kept.codes, offsets)
    key, first = np.unique(key, return_index=True)
    variance = np.maximum(squares - f**2, 0.0) + other
    return {"keys": key, "mean": g[first], "variance": variance[first]}


def _known_parts(moments, offsets):
    """Predictions of known pairs, as mixtures of one part."""

    def parts(codes):
        key = keys(codes, offsets)
        place = np.minimum(np.searchsorted(moments["keys"], key), len(moments["keys"]) - 1)
        unknown = np.flatnonzero(moments["keys"][place] != key)
        if len(unknown):
            raise ValueError(
                f"keep='predictive' knows the rows given to fit alone; {len(unknown)} others were "
                "asked for. Give them to fit as probes, or use keep='all'."
            )
        return moments["mean"][place][None], moments["variance"][place][None]

    return parts


def _diagnostics(probes):
    """Effective sample size and R-hat of predictions: the tenth that is worst is beyond them."""
    probes = probes[..., probes.std(axis=(0, 1)) > 0.0]
    if probes.shape[1] < 8 or not probes.shape[2]:
        return {"ess": np.nan, "rhat": np.nan}
    ess, rhat = convergence.ess_bulk(probes), convergence.rhat(probes)
    return {"ess": float(np.nanquantile(ess, 0.1)), "rhat": float(np.nanquantile(rhat, 0.9))}


def _warn_unless_converged(diagnostics):
    if diagnostics["rhat"] > RHAT_WARNING:
        warnings.warn(
            f"The predictions have not converged: a tenth of {N_PROBES} that were looked at have "
            f"an R-hat above {diagnostics['rhat']:.2f}. Increase n_draws or n_warmup.",
            SamplerConvergenceWarning,
            stacklevel=3,
        )
