r"""Whether chains agree about the topics, and about how probable tokens are.

Single words cannot tell this: the largest R-hat of 200 000 probabilities is high by chance. Aligned
topics can, because their variances are summed over words, which leaves chance hardly any room:

.. math:: \hat R_k^2 = 1 + \frac{\sum_w B_{kw} - V_{kw}/S}{\sum_w V_{kw} + D_{kw}},

where V and B are the variances within chains and between their means of the S draws of the
conditional mean :math:`\mathrm{E}[\varphi_{kw} \mid z]`, and D is the mean of the conditional
variance :math:`\mathrm{Var}[\varphi_{kw} \mid z]`: V + D is the variance of φ within a chain, by
the law of total variance. R-hat is 0.98 to 1.03 for chains that agree, even with five draws, and
1.1 to 6 for chains in different modes.
"""

import numpy as np
from scipy import stats

from ..diagnostics import convergence
from ..diagnostics.judgements import Judgement
from ..diagnostics.verdict import ESS_SHARE, FEW_DRAWS, RHAT

__all__ = ["judgements", "rhat_of_topics"]

LIMIT = 1.1  # largest R-hat of topics
# The largest R-hat of topics after `partial_fit`: all draws of φ of a chain are given the same z,
# and R-hat is 1.0 to 1.2.
STREAM_LIMIT = 1.5
LEAST_DRAWS = 8  # draws of each chain from which on R-hat of token probabilities is computed
BY_CHANCE = 1e-4  # p-value of the F test below which chains with few draws count as different
ANCHOR_LIMIT = 0.1  # largest error of counts at a centre, in posterior standard deviations

APART = "Chains may be in different modes, or hardly move: "
APART += "compare their topics (topic_distances_), or increase n_warmup, thin or n_draws."
STREAM_APART = "Chains are in different modes: compare their topics (topic_distances_), or use fit."
CENTRE = "All draws share this error. Use gradient='saga' or sampler='gibbs'."


def rhat_of_topics(conditional, masses):
    """R-hat of each aligned topic, (K,), over all of its words; NaN for a single draw or chain.

    `conditional` are the conditional means of φ, (n_chains, n_draws, K, V), and `masses` the sums
    of the parameters of its Dirichlet laws, (n_chains, n_draws, K).
    """
    C, S, K, _ = conditional.shape
    if min(C, S) < 2:
        return np.full(K, np.nan)
    of_law = (conditional * (1.0 - conditional) / (masses[..., None] + 1.0)).mean(axis=(0, 1))
    within = conditional.var(axis=1, ddof=1).mean(axis=0).sum(axis=1)
    between = conditional.mean(axis=1).var(axis=0, ddof=1).sum(axis=1)
    whole = within + of_law.sum(axis=1)  # zero if the vocabulary is a single word
    apart = (between - within / S) / np.where(whole > 0.0, whole, 1.0)
    return np.sqrt(np.maximum(1.0 + apart, 0.0))


def judgements(log_probabilities, evidence):
    """Yield the judgements of draws of topics.

    `log_probabilities` are means over tokens, (n_chains, n_draws). `evidence` has "topics_rhat",
    the largest R-hat of a topic, and for chains with a centre "anchor_error", the error of the
    expected counts there. With "one_pass" the draws of a chain are those of φ given one z, so that
    chains differ more than draws do.
    """
    limit, remedy = LIMIT, APART
    if "one_pass" in evidence:
        limit, remedy = STREAM_LIMIT, STREAM_APART
    else:
        yield _of_log_probabilities(log_probabilities)
    rhat = evidence.get("topics_rhat", np.nan)
    text = f"{rhat:.2f} of the topic of which chains differ most"
    yield Judgement("R-hat of topics", text, rhat, limit, limit, remedy)
    if "anchor_error" in evidence:
        error, limit = evidence["anchor_error"], ANCHOR_LIMIT
        text = f"the expected counts at the centre of a chain are off by {error:.2f} posterior sd"
        yield Judgement("centre", text, error, limit, limit, CENTRE)


def _of_log_probabilities(log_probabilities):
    """Judge the mean log probabilities of a token, (n_chains, n_draws), and return the `Judgement`.

    R-hat and the effective sample size have their usual limits. With few draws of each chain they
    exceed these by chance, so that the F test of the means of chains must reject as well; with
    fewer than `LEAST_DRAWS` draws there is only this test.
    """
    name, total, S = "probability of a token", log_probabilities.size, log_probabilities.shape[1]
    text, bound, excess = "", "", np.inf
    if S >= LEAST_DRAWS:
        rhat = float(convergence.rhat(log_probabilities))
        ess = float(convergence.ess_bulk(log_probabilities))
        text = f"R-hat {rhat:.2f}, and an effective sample size of {ess:.0f} of {total} draws"
        bound = f"{RHAT}, and {ESS_SHARE * total:.0f}"
        excess = max(rhat / RHAT, ESS_SHARE * total / ess)
    if S < FEW_DRAWS:
        p = _probability_of_chance(log_probabilities)
        by_test = np.log(np.maximum(p, np.finfo(float).tiny)) / np.log(BY_CHANCE)
        if S < LEAST_DRAWS:
            text = f"means of chains differ with p = {p:.2g} by the F test of few draws"
            text, bound = f"{text} (in order above {BY_CHANCE:g})", BY_CHANCE
        excess = np.minimum(excess, by_test)
    return Judgement(name, text, float(excess), 1.0, bound, APART)


def _probability_of_chance(log_probabilities):
    """p-value of the F test that all chains have one mean; NaN if it cannot be computed."""
    if min(log_probabilities.shape) < 2 or not np.ptp(log_probabilities):
        return np.nan
    return float(stats.f_oneway(*log_probabilities).pvalue)
