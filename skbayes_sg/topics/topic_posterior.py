"""Posteriors of topics. Summaries need aligned topics, which are the same in all draws."""

from collections.abc import Sequence

import numpy as np

from ..diagnostics.judgements import verdict_of
from ..diagnostics.verdict import Verdict
from ..posterior import Posterior
from .agreement import judgements
from .alignment import alignment

__all__ = ["TopicLabels", "TopicPosterior"]

LABEL_FREE = ("log_likelihood",)  # variables that no renumbering of topics changes


class TopicLabels(Sequence):
    """The labels of the parameters, each made on request because there may be millions."""

    def __init__(self, n_topics, words):
        self.n_topics, self.words = n_topics, words

    def __len__(self):
        return self.n_topics * (len(self.words) + 1) + 1

    def __getitem__(self, i):
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(len(self)))]
        i = i + len(self) if i < 0 else i
        if not 0 <= i < len(self):
            raise IndexError(i)
        k, w = divmod(i, len(self.words))
        if k < self.n_topics:
            return f"components[{k}, {self.words[w]}]"
        rest = i - self.n_topics * len(self.words)
        return f"topic_share[{rest}]" if rest < self.n_topics else "log_likelihood"


class TopicPosterior(Posterior):
    """Draws of topics: a `skbayes_sg.Posterior` that knows whether its topics are aligned.

    Variables are "components", the topics φ (K, V); "topic_share" (K,), the estimated share of the
    tokens of each topic; and "log_likelihood", the mean log probability of a token of some of the
    documents, which does not depend on the order of the topics. Means, standard deviations,
    quantiles, intervals and summaries of the first two raise an error for topics that are not
    aligned: an average of "topic 3" has no meaning if it is another topic in every draw.

    Parameters
    ----------
    flat : array of shape (n_chains, n_draws, n_topics * (n_words + 1) + 1)
        The draws, in the order of the variables.
    n_topics : int
        Number of topics K.
    words : sequence of str
        The vocabulary.
    aligned : bool
        Whether topic k is the same in all draws.
    origin : dict, optional
        How the draws were made.
    evidence : dict, optional
        The measurements of the fit, by which `check` judges the topics.

    Attributes
    ----------
    n_topics : int
        Number of topics K.
    words : sequence of str
        The vocabulary.
    aligned : bool
        Whether topic k is the same in all draws.

    Examples
    --------
    Two draws of the same two topics in different orders:

    >>> import numpy as np
    >>> from skbayes_sg.topics import TopicPosterior
    >>> draws = np.array([[0.9, 0.1, 0.2, 0.8, 0.5, 0.5, -1], [0.2, 0.8, 0.9, 0.1, 0.5, 0.5, -1]])
    >>> posterior = TopicPosterior(draws[None], 2, ["a", "b"], aligned=False)
    >>> float(posterior.mean("log_likelihood"))
    -1.0
    >>> posterior.mean("components")
    Traceback (most recent call last):
    ValueError: The topics of these draws are not aligned: ...
    >>> posterior.align().mean("components")
    array([[0.2, 0.8],
           [0.9, 0.1]])
    """

    def __init__(self, flat, n_topics, words, aligned, origin=None, evidence=None):
        shapes = {"components": (n_topics, len(words)), "topic_share": (n_topics,)}
        shapes["log_likelihood"] = ()
        super().__init__(flat, shapes, TopicLabels(n_topics, words), origin, evidence=evidence)
        self.n_topics, self.words = n_topics, words
        self.aligned = aligned

    def _checked_labels(self, labels):
        """The labels of topics as they are: they are made when they are read."""
        return labels

    def align(self):
        """Return these draws with topics that match: see `skbayes_sg.topics.align_topics`.

        Returns
        -------
        TopicPosterior
            `self` if its topics are aligned.
        """
        return self if self.aligned else self.renumbered(alignment(self["components"], 0)[0])

    def renumbered(self, orders, evidence=None):
        """Return the draws with their topics in the given orders, marked as aligned.

        Parameters
        ----------
        orders : array of int of shape (n_chains, n_draws, n_topics)
            Topic k of the result is the topic with the number ``orders[..., k]``.
        evidence : dict, optional
            The measurements of the fit.

        Returns
        -------
        TopicPosterior
        """
        topics = np.take_along_axis(self["components"], orders[..., None], 2)
        shares = np.take_along_axis(self["topic_share"], orders, 2)
        parts = topics, shares, self["log_likelihood"][..., None]
        flat = np.concatenate([part.reshape(*self.flat.shape[:2], -1) for part in parts], axis=2)
        return TopicPosterior(flat, self.n_topics, self.words, True, self.origin, evidence)

    def check(self) -> Verdict:
        """Whether the draws can be trusted, and if not, why and what to do.

        The R-hat of each aligned topic, over all of its words, must be at most 1.1, or 1.5 after
        `partial_fit`, where chains have one assignment of tokens to topics each. The mean log
        probability of a token must have an R-hat of at most 1.05 and an effective sample size of at
        least a tenth of the draws. If a chain has fewer than 100 draws, exceeding these limits
        counts only where the F test rejects that chains have one mean as well, and with fewer than
        eight draws this test alone decides. The error of the expected counts at the centre of
        "control_variate" must be at most 0.1 standard deviations. Single words are not judged: the
        largest R-hat of so many is high by chance.

        Returns
        -------
        Verdict
            It can be used as a condition, and shows one screen of text or a table in notebooks.
        """
        return verdict_of(judgements(self["log_likelihood"], self.evidence))

    def summary(self, mass=0.9):
        """Return a table with a row for each topic's share, and one for the log-likelihood.

        For the topics themselves see `BayesianLDA.top_words`.
        """
        self.mean("topic_share")  # raises if topics are not aligned
        first = self.n_topics * len(self.words)
        shapes = {name: shape for name, shape in self.shapes.items() if name != "components"}
        flat, labels = self.flat[..., first:], self.labels[first:]
        return Posterior(flat, shapes, labels, self.origin, self.weights).summary(mass)

    def _over_draws(self, reduce, name):
        if not self.aligned and name not in LABEL_FREE:
            raise ValueError(
                "The topics of these draws are not aligned: topic 3 of one draw need not be topic "
                "3 of another, so that averages have no meaning. Use .align() first."
            )
        return super()._over_draws(reduce, name)
