"""Latent Dirichlet allocation: topics of documents, with their posterior."""

import numpy as np
from scipy.special import betainc
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._callbacks import CallbackSupportMixin, Progress, with_callbacks
from .._validation import Parameters, check_data
from ..engine.layout import frozen
from ..posterior import Summary
from ..topics import sampling
from ..topics.collapsed_gibbs import Prior
from ..topics.corpus import as_corpus, as_tokens, halves
from ..topics.fold_in import BURN_IN, draw_mixes, word_rows
from ..topics.perplexity import document_log_likelihood, log_score, mean_mixes
from ._base import all_or_nothing, check_draw_store

__all__ = ["BayesianLDA"]

SAMPLERS = ("auto", "gibbs")
MOST_TOPICS = np.iinfo(np.int16).max
PARTICLES = 20
BISECTIONS = 50


class BayesianLDA(
    CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    r"""Latent Dirichlet allocation: the posterior of topics instead of one estimate.

    A document is a mix of topics, a topic a law over words. With topics :math:`\varphi_k \sim`
    Dirichlet(β) and mixes :math:`\theta_d \sim` Dirichlet(α), what is sampled is

    .. math::

        p(\varphi \mid X) \propto \prod_k \text{Dirichlet}(\varphi_k; \beta)
            \prod_d \int \text{Dirichlet}(\theta_d; \alpha)
            \prod_w \Bigl( \sum_k \theta_{dk} \varphi_{kw} \Bigr)^{X_{dw}} d\theta_d.

    Topics have no order, and the posterior has many modes. Draws are aligned before anything is
    averaged: `topic_distances_` says which topics are not the same in all draws. No sampler visits
    all modes; several short chains find different ones, and predictions averaged over them are
    better than those of any single state. What is checked of this estimator is its predictions, not
    the spread between modes.

    Parameters
    ----------
    n_components : int, default=20
        Number of topics K.
    doc_topic_prior : float or array of shape (n_components,), default=0.1
        Parameter α of the prior of the mixes. Small: few topics a document.
    topic_word_prior : float, default=0.05
        Parameter β of the prior of the topics. Small: few words a topic.
    sampler : {"auto", "gibbs"}, default="auto"
        "gibbs" is collapsed Gibbs sampling over all tokens, exact.
    n_draws : int, default=5
        Draws that each chain keeps.
    n_chains : int, default=4
        Independent chains.
    n_warmup : "auto" or int, default="auto"
        Sweeps of each chain before the first draw; "auto" is 50.
    thin : "auto" or int, default="auto"
        Sweeps from one draw to the next; "auto" is 10.
    random_state : int, RandomState instance or None, default=None
        Seed. An int gives the same draws at every call, whatever `n_jobs` is.
    n_jobs : int or None, default=None
        Threads, for chains and for documents: None is 1, -1 is all processors.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Posterior mean of the topics: rows add up to 1. Predictions do not use it: they average over
        draws.
    components_std_ : ndarray of shape (n_components, n_features)
        Posterior standard deviation: what is left given the assignments of all tokens, and the
        spread between draws and between chains.
    posterior_ : TopicPosterior
        Aligned draws: variables "components", "topic_share" and "log_likelihood".
    conditional_components_ : ndarray of shape (n_chains, n_draws, n_components, n_features)
        At each draw the mean of the topics given the assignments, :math:`(n_{kw} + \beta) / (n_k +
        V \beta)`: less noisy than a draw, and what predictions average over.
    topic_masses_ : ndarray of shape (n_chains, n_draws, n_components)
        :math:`n_k + V \beta`: at each draw, topic k given the assignments is Dirichlet with
        parameters ``topic_masses_[..., k, None] * conditional_components_[..., k, :]``.
    topic_share_ : ndarray of shape (n_components,)
        Posterior mean of the share of all tokens that a topic has.
    topic_distances_ : ndarray of shape (n_components,)
        Mean total variation between a topic in a draw and its mean over the draws: near 0 where
        all chains have found the topic, near 1 where each has another.
    doc_topic_prior_ : ndarray of shape (n_components,)
        Parameter α of each topic.
    topic_word_prior_ : float
        Parameter β.
    n_features_in_ : int
        Size of the vocabulary.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if X had names that are strings.
    sampler_ : str
        What "auto" became.
    thin_, n_warmup_ : int
        Likewise.
    n_steps_ : int
        Sweeps that each chain took.
    diagnostics_ : dict of str to float
        ``log_likelihood``, the mean log probability of a token of 100 of the documents, their mixes
        fitted; ``max_rhat``, R-hat of that (chains in different modes: above 1); and
        ``topic_distance``, the mean of `topic_distances_`.

    Raises
    ------
    InvalidParameterError
        By `fit`, for a parameter with a value that is not accepted; a `ValueError` and a
        `TypeError`.
    ValueError
        By `fit`, for negative counts, and where there is no word at all.
    MemoryError
        By `fit`, before sampling, if the draws that were asked for do not fit into free memory.

    Warns
    -----
    DrawStoreWarning
        The draws take more than scikit-learn's ``working_memory``.

    See Also
    --------
    skbayes_sg.topics : Perplexities of topics of any origin.
    sklearn.decomposition.LatentDirichletAllocation : Variational inference for the same model.

    Notes
    -----
    Documents without words are accepted: their mix is that of the prior. Counts that are not whole
    are accepted, as other estimators do, though the model has no such documents: a count c is
    ⌈c⌉ tokens of weight c/⌈c⌉, which enter all counts with their weight. Weights such as tf-idf are
    not counts; give the counts.

    References
    ----------
    .. [1] D. M. Blei, A. Y. Ng and M. I. Jordan (2003). Latent Dirichlet allocation. Journal of
       Machine Learning Research 3, 993-1022.
    .. [2] T. L. Griffiths and M. Steyvers (2004). Finding scientific topics. Proceedings of the
       National Academy of Sciences 101, 5228-5235. (Sampler "gibbs".)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from skbayes_sg import BayesianLDA
    >>> texts = ["cat dog cat pet", "dog pet dog", "bond bank bond", "bank cash bond cash"] * 5
    >>> words = CountVectorizer()
    >>> X = words.fit_transform(texts)
    >>> lda = BayesianLDA(2, random_state=0).fit(X)
    >>> mixes = lda.transform(X)
    >>> mixes[:4].round(1).argmax(axis=1) == mixes[0].argmax()
    array([ True,  True, False, False])
    >>> sorted(map(sorted, lda.top_words(3, feature_names=words.get_feature_names_out())))
    [['bank', 'bond', 'cash'], ['cat', 'dog', 'pet']]

    How sure the model is of its topics, and of the mix of a document of three words:

    >>> bool((lda.components_std_ < 0.15).all())
    True
    >>> draws = lda.transform_samples(words.transform(["cat bank dog"]), 100, random_state=0)
    >>> draws.shape, bool(draws.std(axis=0).min() > 0.1)
    ((100, 1, 2), True)
    """

    _doc_link_module = "skbayes_sg"
    _doc_link_template = "https://skbayes-sg.readthedocs.io/stable/api/{estimator_name}.html"

    def __init__(
        self, n_components=20, *, doc_topic_prior=0.1, topic_word_prior=0.05, sampler="auto",
        n_draws=5, n_chains=4, n_warmup="auto", thin="auto", random_state=None, n_jobs=None,
    ):  # fmt: skip
        self.n_components = n_components
        self.doc_topic_prior = doc_topic_prior
        self.topic_word_prior = topic_word_prior
        self.sampler = sampler
        self.n_draws = n_draws
        self.n_chains = n_chains
        self.n_warmup = n_warmup
        self.thin = thin
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self):
        return len(self.components_)

    # -- fitting ------------------------------------------------------------------------------

    @with_callbacks
    def fit(self, X, y=None):
        """Sample the posterior of the topics.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_documents, n_words)
            Counts of words, as `sklearn.feature_extraction.text.CountVectorizer` makes them.
        y : None
            Ignored; there for pipelines.

        Returns
        -------
        self : BayesianLDA
            With the attributes of the class docstring.
        """
        with all_or_nothing(self):
            request = self._request()
            corpus = self._corpus(check_data(self, X))
            if not len(corpus.words):
                raise ValueError(f"X has no words: {type(self).__name__} needs some counts > 0.")
            K, V = len(request.prior.alpha), corpus.n_words
            check_draw_store(request.n_chains, request.n_draws, 2 * K * V)
            request.words = self._words()
            progress = Progress(self, self._attributes, X=X, y=y)
            outcome, plan = sampling.sample_topics(corpus, request, progress)
            fitted = self._attributes(outcome)
            vars(self).update(fitted)
            self.doc_topic_prior_ = np.array(request.prior.alpha)
            self.topic_word_prior_ = request.prior.beta
            self.sampler_, self.thin_, self.n_warmup_ = "gibbs", plan.thin, plan.n_warmup
            self.n_steps_ = plan.n_warmup + plan.thin * outcome.posterior.n_draws
            progress.finish(fitted)
        return self

    def _request(self):
        """The constructor's parameters, checked."""
        p = Parameters(self)
        n_components = p.integer("n_components", 1)
        if n_components > MOST_TOPICS:
            p.fail("n_components", f"an int in the range [1, {MOST_TOPICS}]")
        sampler = p.choice("sampler", list(SAMPLERS))
        return sampling.TopicRequest(
            prior=self._prior(p, n_components),
            sampler=None if sampler == "auto" else sampler,
            n_draws=p.integer("n_draws", 1),
            n_chains=p.integer("n_chains", 1),
            n_warmup=p.integer("n_warmup", 0, auto=True),
            thin=p.integer("thin", 1, auto=True),
            seed=p.seed(),
            n_jobs=p.n_jobs(),
        )

    def _prior(self, p, n_components):
        alpha = p.positive("doc_topic_prior", (n_components,))
        beta = p.positive("topic_word_prior", ())
        return Prior(frozen(np.broadcast_to(alpha, (n_components,))), float(beta))

    def _corpus(self, X):
        if (X.data if hasattr(X, "indptr") else X).min(initial=0.0) < 0.0:
            raise ValueError(
                f"Negative values in data passed to {type(self).__name__}: X must be counts of "
                "words."
            )
        return as_corpus(X)

    def _words(self):
        names = getattr(self, "feature_names_in_", None)
        return [f"x{w}" for w in range(self.n_features_in_)] if names is None else list(names)

    def _attributes(self, outcome):
        """Fitted attributes."""
        prior = outcome.posterior
        conditional, masses = outcome.conditional, outcome.masses[..., None]
        mean = conditional.mean(axis=(0, 1))
        within = (conditional * (1.0 - conditional) / (masses + 1.0)).mean(axis=(0, 1))
        return {
            "posterior_": prior,
            "components_": mean,
            "components_std_": np.sqrt(within + conditional.var(axis=(0, 1))),
            "conditional_components_": conditional,
            "topic_masses_": outcome.masses,
            "topic_share_": outcome.posterior.mean("topic_share"),
            "topic_distances_": outcome.distances,
            "diagnostics_": outcome.diagnostics,
        }

    # -- documents ----------------------------------------------------------------------------

    def _states(self):
        """Topics of all draws, (n_draws of all chains, K, V)."""
        return self.conditional_components_.reshape(-1, *self.components_.shape)

    def transform(self, X):
        """Posterior mean of the topic mix of each document, over all draws of the topics.

        For each draw of the topics the mix is found by CVB0 with fixed topics
        (`skbayes_sg.topics`): an approximation of the posterior mean, deterministic, that predicts
        as well as long Gibbs runs. `transform_samples` draws from the posterior itself.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_documents, n_words)
            Counts of words.

        Returns
        -------
        ndarray of shape (n_documents, n_components)
            Rows add up to 1.
        """
        check_is_fitted(self)
        X = check_data(self, X, reset=False)
        alpha = frozen(self.doc_topic_prior_)
        mixes = mean_mixes(self._states(), self._corpus(X), alpha, self.n_jobs)
        return mixes.astype(X.dtype, copy=False)

    def transform_samples(self, X, n_samples=100, *, random_state=None):
        """Draws of the topic mix of each document: how uncertain it is.

        Each sample takes the next draw of the topics, gives the tokens topics by Gibbs sweeps, and
        draws the mix given these.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_documents, n_words)
            Counts of words.
        n_samples : int, default=100
            Number of samples.
        random_state : int, RandomState instance or None, default=None
            Seed.

        Returns
        -------
        ndarray of shape (n_samples, n_documents, n_components)
        """
        check_is_fitted(self)
        tokens = as_tokens(self._corpus(check_data(self, X, reset=False)))
        alpha, D = frozen(self.doc_topic_prior_), len(tokens.starts) - 1
        seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
        rng, states = np.random.Generator(np.random.SFC64(seed)), self._states()
        mixes = np.empty((n_samples, D, len(alpha)))
        for s in range(min(len(states), n_samples)):
            phi = word_rows(states[s])
            for own in mixes[s :: len(states)]:
                draw_mixes(tokens, phi, alpha, 0, D, BURN_IN, rng, own)
        return mixes

    # -- judgement ----------------------------------------------------------------------------

    def score(self, X, y=None):
        """Mean log predictive probability of a held-out token: minus log of `perplexity`.

        Higher is better, as scikit-learn wants it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_documents, n_words)
            Counts of words.
        y : None
            Ignored; there for pipelines.

        Returns
        -------
        float
        """
        return -float(np.log(self.perplexity(X)))

    def perplexity(self, X, *, observed=None, method="completion", random_state=0):
        """Perplexity of documents, predictions averaged over all draws.

        Formulas: `skbayes_sg.topics`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_documents, n_words)
            Counts of words.
        observed : {array-like, sparse matrix} of shape (n_documents, n_words), optional
            Parts of the same documents from which mixes are found; all of X is then predicted. If
            None, documents are split by `skbayes_sg.topics.split_documents`.
        method : {"completion", "left_to_right"}, default="completion"
            Document completion, or the probability of whole documents, from 20 particles each.
        random_state : int, RandomState instance or None, default=0
            Seed of the split, or of the particles: a number, so that scores can be compared.

        Returns
        -------
        float
            The number of words that would be as hard to guess if all were alike.
        """
        check_is_fitted(self)
        corpus = self._corpus(check_data(self, X, reset=False))
        seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
        states = self._states()
        alphas = [frozen(self.doc_topic_prior_)] * len(states)
        if method == "left_to_right" and observed is None:
            if not (corpus.is_whole and len(corpus.words)):
                raise ValueError("method='left_to_right' needs whole counts, not all 0.")
            log_p = document_log_likelihood(states, alphas, corpus, PARTICLES, seed, self.n_jobs)
            return float(np.exp(-log_p.sum() / corpus.counts.sum()))
        if method != "completion":
            raise ValueError(
                f"method must be 'completion', or without observed 'left_to_right', got {method!r}."
            )
        if observed is None:
            observed, corpus = halves(corpus, np.random.default_rng(seed))
        else:
            observed = self._corpus(check_data(self, observed, reset=False))
            if observed.n_documents != corpus.n_documents:
                raise ValueError("observed and X must be parts of the same documents.")
        return float(np.exp(-log_score(states, alphas, observed, corpus, self.n_jobs)))

    def top_words(self, n=10, with_uncertainty=False, *, confidence_level=0.9, feature_names=None):
        """The most probable words of each topic.

        Parameters
        ----------
        n : int, default=10
            Words a topic.
        with_uncertainty : bool, default=False
            Whether to say how sure their probabilities are.
        confidence_level : float in (0, 1), default=0.9
            Posterior probability inside the intervals.
        feature_names : sequence of str, optional
            The vocabulary, such as ``vectorizer.get_feature_names_out()``; by default the names of
            the columns of X, or ``x0``, ``x1``, ...

        Returns
        -------
        list of list of str, or Summary
            With uncertainty, a table with a row for each topic and word: mean, standard deviation
            and central interval of the word's probability in the topic. Given the assignments of a
            draw, that probability has a beta law; the interval is of the mixture over all draws.
        """
        check_is_fitted(self)
        names = self._words() if feature_names is None else list(feature_names)
        if len(names) != self.n_features_in_:
            raise ValueError(f"feature_names has {len(names)} words, X had {self.n_features_in_}.")
        if not 0.0 < confidence_level < 1.0:
            raise ValueError(
                f"confidence_level must lie strictly between 0 and 1, got {confidence_level!r}."
            )
        top = np.argsort(-self.components_, axis=1, kind="stable")[:, :n]
        if not with_uncertainty:
            return [[str(names[w]) for w in words] for words in top]
        topics = np.repeat(np.arange(len(top)), top.shape[1])
        table = self._word_table(topics, top.ravel(), confidence_level)
        labels = [f"{k}: {names[w]}" for k, w in zip(topics, top.ravel(), strict=True)]
        summary = Summary(labels, table, f"{n} most probable words of each topic")
        summary.max_rows = len(labels)
        return summary

    def _word_table(self, topics, words, confidence_level):
        means = self._states()[:, topics, words]
        masses = self.topic_masses_.reshape(-1, len(self.components_))[:, topics]
        tail = 0.5 - confidence_level / 2
        return {
            "mean": self.components_[topics, words],
            "sd": self.components_std_[topics, words],
            f"{100 * tail:g}%": beta_mixture_quantile(means, masses, tail),
            f"{100 * (1 - tail):g}%": beta_mixture_quantile(means, masses, 1.0 - tail),
        }


def beta_mixture_quantile(means, masses, q):
    """Quantile q of equal mixtures of beta laws, given as (n_laws, n_mixtures): by bisection."""
    a, b = means * masses, (1.0 - means) * masses
    lower, upper = np.zeros(means.shape[1]), np.ones(means.shape[1])
    for _ in range(BISECTIONS):
        middle = 0.5 * (lower + upper)
        below = betainc(a, b, middle).mean(axis=0) < q
        lower, upper = np.where(below, middle, lower), np.where(below, upper, middle)
    return 0.5 * (lower + upper)
