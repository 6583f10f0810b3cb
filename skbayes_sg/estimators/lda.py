"""Latent Dirichlet allocation: topics of documents, with their posterior."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._base import streams
from .._base.callbacks import CallbackSupportMixin, Progress, with_callbacks
from .._base.typing import MatrixLike, RandomState
from .._base.validation import central, check_count, check_data
from ..diagnostics.judgements import warn_of
from ..kernels.layout import frozen
from ..schedules import Schedule
from ..topics import sampling, streaming
from ..topics.corpus import (
    as_corpus,
    as_tokens,
    check_not_negative,
    check_words,
    warn_of_weights,
)
from ..topics.held_out import score_of_states
from ..topics.mixes import mean_mixes, mix_samples
from ..topics.outcome import fitted_attributes
from ..topics.request import chosen_attributes, topic_request
from ..topics.words import most_probable, word_summary
from ._saved import SavedEstimator
from ._store import all_or_nothing, check_draw_store, check_fits

__all__ = ["BayesianLDA"]


class BayesianLDA(
    CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, SavedEstimator
):
    r"""Latent Dirichlet allocation: the posterior of topics instead of one estimate.

    A document is a mix of topics, and a topic is a distribution over words. With topics
    :math:`\varphi_k \sim` Dirichlet(β) and topic mixes :math:`\theta_d \sim` Dirichlet(α) of the
    documents, the law that is sampled is

    .. math::

        p(\varphi \mid X) \propto \prod_k \text{Dirichlet}(\varphi_k; \beta)
            \prod_d \int \text{Dirichlet}(\theta_d; \alpha)
            \prod_w \Bigl( \sum_k \theta_{dk} \varphi_{kw} \Bigr)^{X_{dw}} d\theta_d.

    Topics have no order (unless each has an α of its own), and the posterior has many modes. Draws
    are aligned before anything is averaged, and `topic_distances_` tells which topics are not the
    same in all draws. No sampler visits all modes; several short chains find different ones, and
    predictions that are averaged over them are better than those of single states
    (``tests/estimators/test_lda.py::test_several_draws_predict_better_than_one``). This estimator
    is validated by its predictions, not by the spread between modes.

    Parameters
    ----------
    n_components : int, default=20
        Number of topics K.
    doc_topic_prior : float or array of shape (n_components,), default=0.1
        Parameter α of the Dirichlet prior of the topic mixes. Small values mean few topics in a
        document.
    topic_word_prior : float, default=0.05
        Parameter β of the Dirichlet prior of the topics. Small values mean few words in a topic.
    sampler : {"auto", "gibbs", "cir", "sgrld", "sgld"}, default="auto"
        "gibbs" is collapsed Gibbs sampling: sweeps over all tokens, which leave the posterior
        invariant
        (``tests/topics/test_topics.py::test_a_gibbs_sweep_leaves_the_law_of_the_assignments``). The
        other samplers use a batch of documents at each step. "cir" takes the exact step of the
        Cox-Ingersoll-Ross process
        (``tests/topics/test_topics.py::test_the_exact_step_leaves_the_gamma_law``), and the cost of
        a step does not depend on the numbers of documents and words; with `gradient` "saga" it
        leaves the posterior invariant at any step size
        (``tests/topics/test_topics.py::test_saga_with_exact_steps_is_exact_to_a_thousandth``).
        "sgrld", its Euler step with mirroring at zero, and "sgld", Langevin dynamics without a
        metric, are for comparison with the literature. "auto" is "gibbs" for up to 20 million
        tokens if `gradient`, `batch_size` and `step_size` are all "auto", else "cir".
    gradient : {"auto", "saga", "control_variate", "minibatch"}, default="auto"
        How the word counts of topics in all documents are estimated from a batch of documents; not
        for "gibbs". "saga" remembers the topics of all tokens, so that the batch causes no error;
        "control_variate" compares the counts of a batch with those at a centre; "minibatch"
        remembers nothing. "auto" is "saga" up to 20 million tokens.
    batch_size : "auto", int or float, default="auto"
        Number of documents that each step uses, or their share of all documents in (0, 1]; not for
        "gibbs". "auto" is 100, and 500 for "saga" in `fit`.
    step_size : "auto", float or Schedule, default="auto"
        The time h that a step simulates; not for "gibbs". After a step, earlier topics count by the
        factor :math:`e^{-h}`. Let c = h D / n, if a step uses n of the D documents: with
        "minibatch", the noise of the batch increases the variances of the counts of single tokens
        by the share c/2. "auto" is c = 0.3, and c = 5 for "saga", which has no such noise. For
        "sgld" h has the units of squared logarithms, and "auto" is at most 1 over the largest count
        of a word in a topic.
    n_draws : int, default=5
        Number of draws that each chain keeps.
    n_chains : int, default=4
        Number of independent chains.
    n_warmup : "auto" or int, default="auto"
        For "gibbs", the number of sweeps of each chain before the first draw; "auto" is 50, or five
        times the value that "auto" has for `thin`, if that is more. For the other samplers, the
        number of steps before the first draw; "auto" is ten passes over the documents, limited to
        5000 steps or to one pass, whichever is more.
    thin : "auto" or int, default="auto"
        For "gibbs", the number of sweeps from one draw to the next. From 100 000 tokens on "auto"
        is 10. With fewer tokens, over which sweeps cost little, it is as many sweeps as visit a
        million tokens, but at most 200, and at most 1000 for all draws of a chain together. For the
        other samplers, the number of steps from one draw to the next; "auto" is two passes over the
        documents, five for "saga", but at most 500 steps.
    random_state : int, RandomState instance or None, default=None
        Seed of the random numbers. An int gives the same draws at every call, whatever `n_jobs` is.
    n_jobs : int or None, default=None
        Number of threads for chains and for documents: None is 1, -1 is all processors.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Posterior mean of the topics; each row adds up to 1. Predictions do not use it: they average
        over the draws.
    components_std_ : ndarray of shape (n_components, n_features)
        Posterior standard deviation of the topics. It includes the variance given the topics of all
        tokens, and the spread between draws and between chains.
    posterior_ : TopicPosterior
        Aligned draws, in the variables "components", "topic_share" and "log_likelihood".
    conditional_components_ : ndarray of shape (n_chains, n_states, n_components, n_features)
        For each draw, the mean of the topics given the topic assignments of the tokens,
        :math:`(n_{kw} + \beta) / (n_k + V \beta)`, which is less noisy than a draw of the topics.
        Samplers that keep no assignments have the mean given their batches instead. There is one
        state for each draw, and after `partial_fit` one for each chain.
    predictive_components_ : ndarray of shape (n_chains, n_states, n_components, n_features)
        The topics over which predictions average. They are computed like `conditional_components_`,
        but with the sum of :math:`p(z_i = k \mid z_{-i}, w)` over the tokens of a word in place of
        the count :math:`n_{kw}`, which has the same posterior mean and less noise [5]_
        (``tests/topics/test_topics.py::test_smooth_counts_are_the_enumerated_expectations``); the
        mean of the ratio may differ, by hundredths in corpora of few words. They equal
        `conditional_components_` if assignments are not kept, after `partial_fit`, and for counts
        that are not whole numbers.
    topic_masses_ : ndarray of shape (n_chains, n_states, n_components)
        For each draw, :math:`n_k + V \beta`. Given the assignments, topic k has a Dirichlet
        distribution with the parameters ``topic_masses_[..., k, None] *
        conditional_components_[..., k, :]``.
    topic_share_ : ndarray of shape (n_components,)
        Posterior mean of each topic's share of all tokens.
    topic_distances_ : ndarray of shape (n_components,)
        For each topic, the mean total variation distance between the topic in a draw and the mean
        of the topic over all draws: near 0 if all chains have found the same topic, near 1 if each
        has found another.
    doc_topic_prior_ : ndarray of shape (n_components,)
        Parameter α of each topic.
    topic_word_prior_ : float
        Parameter β.
    n_features_in_ : int
        Size of the vocabulary.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if X had names that are strings.
    sampler_, gradient_ : str
        The choices made for "auto", or those given; the gradient of "gibbs" is "none".
    batch_size_, thin_, n_warmup_ : int
        The numbers chosen for "auto", or those given.
    step_size_ : float
        The step size h after the warm-up; NaN for "gibbs".
    n_steps_ : int
        Number of sweeps, or steps, of each chain, including the warm-up.
    n_documents_ : int
        Number of documents in `fit`, or in all calls of `partial_fit` together.
    diagnostics_ : dict of str to float
        ``log_likelihood``, the mean log probability of a token in 100 of the documents, whose topic
        mixes are fitted; ``max_rhat`` and ``min_ess``, the R-hat and the effective sample size of
        this log probability: R-hat is above 1 if chains are in different modes. ``topics_rhat``,
        the largest R-hat of an aligned topic, with variances summed over its words;
        ``topic_distance``, the mean of `topic_distances_`. For "control_variate" also
        ``anchor_error``, the standard error of the expected counts at the centre, in posterior
        standard deviations. ``posterior_.check()`` compares them with their limits.

    Raises
    ------
    InvalidParameterError
        By `fit`, for a parameter with a value that is not accepted. It is both a `ValueError` and a
        `TypeError`.
    ValueError
        By `fit`, for negative counts, for a corpus without any word, and for parameters that cannot
        be combined.
    SamplerDivergedError
        By `fit`, if topics are not finite, as with "sgrld" and "sgld" and a step that is too large.
    MemoryError
        By `fit`, before sampling, if the requested draws do not fit into free memory.

    Warns
    -----
    UserWarning
        For "sgrld" with a `topic_word_prior` of at most 0.1, at which this sampler is badly biased
        (``tests/topics/test_topics.py::test_mirrors_are_biased_where_the_exact_step_is_not``).
    SamplerConvergenceWarning
        By `fit` and `partial_fit`, if `TopicPosterior.check` finds that chains differ in the words
        of a topic or in the probabilities of tokens, or that the counts at a centre are inaccurate.
    LongRunWarning
        The run is predicted to take more than a minute.
    DrawStoreWarning
        The draws need more memory than scikit-learn's ``working_memory``.

    See Also
    --------
    skbayes_sg.topics : Perplexities of topics of any origin.
    sklearn.decomposition.LatentDirichletAllocation : Variational inference for the same model.

    Notes
    -----
    Documents without words are accepted; their topic mix is that of the prior. Counts that are not
    whole numbers are accepted, although the model has no such documents: a count c becomes ⌈c⌉
    tokens of weight c/⌈c⌉, which enter all counts with their weight. Weights such as tf-idf are not
    counts: use the counts themselves.

    References
    ----------
    .. [1] D. M. Blei, A. Y. Ng and M. I. Jordan (2003). Latent Dirichlet allocation. Journal of
       Machine Learning Research 3, 993-1022.
    .. [2] T. L. Griffiths and M. Steyvers (2004). Finding scientific topics. Proceedings of the
       National Academy of Sciences 101, 5228-5235. (Sampler "gibbs".)
    .. [3] S. Patterson and Y. W. Teh (2013). Stochastic gradient Riemannian Langevin dynamics on
       the probability simplex. NeurIPS. (Sampler "sgrld"; the expanded topics of "cir".)
    .. [4] J. Baker, P. Fearnhead, E. B. Fox and C. Nemeth (2019). Control variates for stochastic
       gradient MCMC. Statistics and Computing 29, 599-615. (Sampler "sgld", the gradients.)
    .. [5] Y. Papanikolaou, J. R. Foulds, T. N. Rubin and G. Tsoumakas (2017). Dense distributions
       from sparse samples: improved Gibbs sampling parameter estimators for LDA. Journal of Machine
       Learning Research 18(62).

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

    The uncertainty of the topics, and of the mix of a document of three words:

    >>> bool((lda.components_std_ < 0.15).all())
    True
    >>> draws = lda.transform_samples(words.transform(["cat bank dog"]), 100, random_state=0)
    >>> draws.shape, bool(draws.std(axis=0).min() > 0.1)
    ((100, 1, 2), True)
    """

    _doc_link_module = "skbayes_sg"
    _doc_link_template = "https://skbayes-sg.readthedocs.io/stable/api/{estimator_name}.html"

    def __init__(
        self,
        n_components: int = 20,
        *,
        doc_topic_prior: float | np.ndarray = 0.1,
        topic_word_prior: float = 0.05,
        sampler: str = "auto",
        gradient: str = "auto",
        batch_size: float | str = "auto",
        step_size: Schedule | float | str = "auto",
        n_draws: int = 5,
        n_chains: int = 4,
        n_warmup: int | str = "auto",
        thin: int | str = "auto",
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.doc_topic_prior = doc_topic_prior
        self.topic_word_prior = topic_word_prior
        self.sampler = sampler
        self.gradient = gradient
        self.batch_size = batch_size
        self.step_size = step_size
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
    def fit(self, X: MatrixLike, y: Any = None) -> Self:
        """Sample the posterior of the topics.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_documents, n_words)
            Counts of words, as `sklearn.feature_extraction.text.CountVectorizer` makes them.
        y : None
            Ignored; it is there for pipelines.

        Returns
        -------
        self : BayesianLDA
            The estimator, with the attributes of the class docstring.
        """
        with all_or_nothing(self):
            corpus, request = self._read(X)
            check_words(corpus, type(self).__name__)
            warn_of_weights(corpus)
            _check_memory(request, corpus)
            progress = Progress(self, fitted_attributes, X=X, y=y)
            outcome, run = sampling.sample_topics(corpus, request, progress)
            fitted = fitted_attributes(outcome)
            chosen = chosen_attributes(request, run.chosen, run.plan, corpus.n_documents)
            self.__dict__.update(fitted, **chosen)
            self.n_steps_ = run.plan.n_warmup + run.plan.thin * outcome.posterior.n_draws
            self.__dict__.pop("_stream", None)
            warn_of(outcome.posterior.check(), 3)
            progress.finish(fitted)
        return self

    def partial_fit(self, X: MatrixLike, y: Any = None) -> Self:
        """Update the posterior by more documents, each of which is used once, in bounded memory.

        The first 5000 documents are kept, and their topics are sampled again by Gibbs sweeps
        whenever the number of documents has grown by a quarter. The tokens of a later document get
        topics given the current state of the topics, and these assignments are never revised. The
        result is the posterior of all documents so far, except that later documents do not improve
        the assignments of earlier ones. Parameters that mean several passes (`sampler` other than
        "cir", `gradient`, `n_warmup`, `thin`) are an error. After `fit`, `partial_fit` begins a new
        stream of documents.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_documents, n_words)
            Counts of words. The words of the columns must be the same in all calls.
        y : None
            Ignored; it is there for pipelines.

        Returns
        -------
        self : BayesianLDA
            The estimator, with the attributes of the class docstring.
        """
        with all_or_nothing(self):
            stream = getattr(self, "_stream", None)
            corpus, request = self._read(X, reset=stream is None)
            streaming.check_stream(request, stream)
            if stream is None:
                check_words(corpus, type(self).__name__)
                warn_of_weights(corpus)
                _check_memory(request, corpus)
            stream = streaming.absorb(stream, corpus, request)
            chosen = streaming.settings_of_stream(stream, request)
            plan = sampling.GIBBS_PLAN._replace(thin=1)
            outcome = streaming.summarised(stream, corpus, request, chosen)
            self.__dict__.update(fitted_attributes(outcome))
            self.__dict__.update(chosen_attributes(request, chosen, plan, stream.n_seen))
            self.n_steps_, self._stream = stream.n_steps, stream
            warn_of(outcome.posterior.check(), 2)
        return self

    def _read(self, X, reset=True):
        """The checked documents to fit, and the checked parameters of the constructor."""
        corpus = self._corpus(X, reset=reset)
        request = topic_request(self, corpus.n_documents)
        request.words = self._words()
        return corpus, request

    def _corpus(self, X, reset=False):
        """The documents as the kernels read them, from checked counts of words."""
        X = check_data(self, X, reset=reset)
        check_not_negative(X, type(self).__name__)
        return as_corpus(X)

    def _words(self):
        """The names of the words, one for each column of X."""
        names = getattr(self, "feature_names_in_", None)
        return [f"x{w}" for w in range(self.n_features_in_)] if names is None else list(names)

    # -- documents ----------------------------------------------------------------------------

    def _states(self):
        """Topics that predictions average over, (n_chains * n_states, n_components, n_features)."""
        return self.predictive_components_.reshape(-1, *self.components_.shape)

    def transform(self, X: MatrixLike) -> np.ndarray:
        """Posterior mean of the topic mix of each document, over all draws of the topics.

        For each draw of the topics, the mix is computed by CVB0 with fixed topics
        (`skbayes_sg.topics`): a deterministic approximation of the posterior mean, which predicts
        as well as long Gibbs runs. For documents of two to seven words a share may be off by more
        than a tenth. `transform_samples` draws from the posterior itself.

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
        check_not_negative(X, type(self).__name__)
        alpha = frozen(self.doc_topic_prior_)
        mixes = mean_mixes(self._states(), as_corpus(X), alpha, self.n_jobs)
        return mixes.astype(X.dtype, copy=False)

    def transform_samples(
        self,
        X: MatrixLike,
        n_samples: int = 100,
        *,
        random_state: RandomState = None,
    ) -> np.ndarray:
        """Draws of the topic mix of each document, which show how uncertain it is.

        Each sample draws the topics given the next state of the chains, assigns topics to the
        tokens of the documents by Gibbs sweeps, and then draws the mixes given these assignments.
        So it contains the uncertainty about the topics, which is large in corpora of few words.

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

        Raises
        ------
        ValueError
            For an `n_samples` that is not a positive int, and for an X that has no counts.
        """
        check_is_fitted(self)
        check_count("n_samples", n_samples)
        tokens, alpha = as_tokens(self._corpus(X)), frozen(self.doc_topic_prior_)
        means = self.conditional_components_.reshape(-1, *self.components_.shape)
        masses, rng = self.topic_masses_.reshape(len(means), -1), streams.of_user(random_state)
        return mix_samples(means, masses, tokens, alpha, n_samples, rng)

    # -- judgement ----------------------------------------------------------------------------

    def score(self, X: MatrixLike, y: Any = None) -> float:
        """Mean log predictive probability of a held-out token, which is minus the log perplexity.

        Higher is better, as scikit-learn expects of scores.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_documents, n_words)
            Counts of words.
        y : None
            Ignored; it is there for pipelines.

        Returns
        -------
        float
        """
        return -float(np.log(self.perplexity(X)))

    def perplexity(
        self,
        X: MatrixLike,
        *,
        observed: MatrixLike | None = None,
        method: str = "completion",
        random_state: RandomState = 0,
    ) -> float:
        """Perplexity of documents, with predictions averaged over all draws.

        The formulas are in `skbayes_sg.topics`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_documents, n_words)
            Counts of words.
        observed : {array-like, sparse matrix} of shape (n_documents, n_words), optional
            Parts of the same documents, from which their topic mixes are found; the words of X are
            then predicted. If None, the documents in X are split by
            `skbayes_sg.topics.split_documents`.
        method : {"completion", "left_to_right"}, default="completion"
            "completion" predicts one part of each document from the other; "left_to_right" computes
            the probability of whole documents given the expected topics of each kept state, each
            from 20 particles.
        random_state : int, RandomState instance or None, default=0
            Seed of the split, or of the particles. The default is a fixed number so that scores can
            be compared.

        Returns
        -------
        float
            The number of equally likely words among which guessing the next word would be as hard.
        """
        check_is_fitted(self)
        corpus, alpha = self._corpus(X), frozen(self.doc_topic_prior_)
        observed = None if observed is None else self._corpus(observed)
        documents, seed = (corpus, observed), streams.seed_of(random_state)
        score = score_of_states(self._states(), alpha, *documents, method, seed, self.n_jobs)
        return float(np.exp(-score))

    def top_words(
        self,
        n: int = 10,
        with_uncertainty: bool = False,
        *,
        confidence_level: float = 0.9,
        feature_names: Sequence[str] | None = None,
    ) -> Any:
        """The most probable words of each topic.

        Parameters
        ----------
        n : int, default=10
            Number of words for each topic.
        with_uncertainty : bool, default=False
            Whether to return a table with the uncertainty of the words' probabilities.
        confidence_level : float in (0, 1), default=0.9
            Posterior probability that a word's probability lies inside its interval.
        feature_names : sequence of str, optional
            The vocabulary, such as ``vectorizer.get_feature_names_out()``; by default the names of
            the columns of X, or ``x0``, ``x1``, ...

        Returns
        -------
        list of list of str, or Summary
            The words of each topic, most probable first. If `with_uncertainty`, a table with one
            row for each topic and word instead: mean, standard deviation and central interval of
            the word's probability in the topic. Given the assignments of a draw, that probability
            has a beta distribution; the interval is that of the mixture over all draws.

        Raises
        ------
        NotFittedError
            If the estimator has not been fitted.
        ValueError
            For an `n` that is not a positive int, a `confidence_level` that is no probability, and
            `feature_names` that are not one for each column of X.
        """
        check_is_fitted(self)
        names = self._words() if feature_names is None else list(feature_names)
        if len(names) != self.n_features_in_:
            raise ValueError(f"feature_names has {len(names)} words, X had {self.n_features_in_}.")
        check_count("n", n)
        ends = central("confidence_level", confidence_level)
        if with_uncertainty:
            return word_summary(self, n, names, ends)
        top = most_probable(self.components_, n)
        return [[str(names[w]) for w in words] for words in top]


def _check_memory(request, corpus):
    """`MemoryError` or `DrawStoreWarning` if draws or tokens' topics take too much memory."""
    size = 3 * len(request.prior.alpha) * corpus.n_words
    check_draw_store(request.n_chains, request.n_draws, size)
    tokens = float(np.ceil(corpus.counts).sum())
    check_fits(
        (4.0 + 2.0 * request.n_chains) * tokens,
        f"The topics of {tokens:.3g} words",
        "Every word of a document has a topic: X must be counts of words, and no amounts.",
    )
