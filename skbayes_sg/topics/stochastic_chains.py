r"""Chains of topics that use a batch of documents at each step.

Expanded topics θ (V, K), with φ = θ over its sums, are drawn towards :math:`a = \beta + \hat E[n]`,
where :math:`\hat E[n]` is one of three estimates of the expected counts:

"minibatch"
    :math:`\frac{D}{n} \sum_{d \in B} E[n_d \mid \varphi]` over the batch B, without memory. For
    counts of single tokens its noise raises variances by the share c/2, with c = h D/n.
"control_variate"
    :math:`N(\hat\varphi) + \frac{D}{n} \sum_{d \in B} (E[n_d \mid \varphi] - E[n_d \mid
    \hat\varphi])` about a centre φ̂, with N(φ̂) from many sweeps over all documents. Few
    sweeps with the same random numbers compute both other terms.
"saga"
    The topics z of all tokens are remembered, and the estimate is n(z). A Gibbs sweep renews those
    of the batch. With the exact step of `cir`, which leaves Gamma(β + n_kw, 1) invariant given z,
    this is exact: neither the step size nor the batch causes an error
    (``tests/topics/test_topics.py::test_saga_with_exact_steps_has_the_law_of_the_assignments``).
    The joint law

    .. math:: p(z) \prod_k \frac{\prod_w \theta_{kw}^{\beta + n_{kw} - 1} e^{-\theta_{kw}}}
        {\Gamma(V \beta + n_k)}

    has that of z given the words as its marginal, and the sweep draws from its conditionals, with
    :math:`\theta_{kw} / (V \beta + n_k)` in place of :math:`\varphi_{kw}`. Only where documents
    are seen for the first time, and for "sgld", it draws given φ.

With `cir` the cost of a step depends on its batch alone, not on the numbers of documents and words.
Between two batches that contain a word its `a` is constant, so its transitions are a single one,
made when the word is next needed. The sums of θ count words that wait by their conditional means,
an approximation that "saga" does not need; its relative error is about one over the root of the
number of tokens of a topic. Beside θ, each chain computes its mean given the path of `a`, by the
same recursion without noise (Rao-Blackwell). Predictions use it, or with "saga" the mean given z.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..exceptions import SamplerDivergedError
from .cir import transition
from .expectation import expected_counts, list_words, renew
from .gibbs_chains import TopicDraws
from .sgld import softmax_step
from .sgrld import mirrored_step
from .smoothing import expected_masses

__all__ = ["GRADIENTS", "SAMPLERS", "Expanded", "StochasticChain", "TopicPieces", "find_centre"]
__all__ += ["new_state"]

SAMPLERS = ("cir", "sgrld", "sgld")
GRADIENTS = ("minibatch", "control_variate", "saga")
N_BURN, N_KEEP = 2, 3  # Gibbs sweeps over a document that are discarded, and kept
ANCHOR_BURN, ANCHOR_KEEP = 20, 40  # such sweeps in each of the two runs at a centre
# Passes over the documents that find a centre, and documents whose counts are computed at a time.
CENTRE_EPOCHS, BLOCK = 5, 100
FLOOR = 1e-3  # lower bound of `a` as a share of the prior: control variates may make it negative


@dataclass
class TopicPieces:
    """The settings that the chains of a run share."""

    sampler: str  # "cir", "sgrld" or "sgld"
    gradient: str
    batch_size: int
    step_sizes: Any  # h(t)
    one_pass: bool = False  # whether every document is used only once


@dataclass
class Expanded:
    """The state of a chain of expanded topics θ."""

    theta: np.ndarray  # (V, K): θ when the word was last touched; x for "sgld"
    mean: np.ndarray  # (V, K): the mean of θ given the path of a, at the same time
    base: np.ndarray  # (V, K): expected counts before the batch is known
    touched: np.ndarray  # (V,): when each word was last touched
    sums: np.ndarray  # (K,): sums of θ over words, with the means of those that wait
    base_sums: np.ndarray  # (K,): sums of `base` over words
    clock: float = 0.0  # time of the chain, the sum of its step sizes


def new_state(counts, beta, sampler, base=None):
    """Return the state with θ at its mean, given the counts (V, K) of a start."""
    mean = counts + beta
    theta = np.log(mean) if sampler == "sgld" else mean.copy()
    base = np.zeros(mean.shape) if base is None else base
    sums = mean.sum(axis=0), base.sum(axis=0)
    return Expanded(theta, mean, base, np.zeros(len(mean)), *sums)


@dataclass
class StochasticChain:
    """A chain of steps, each of which uses a batch of documents."""

    number: int
    state: Expanded
    rng_rows: Any
    rng: Any
    rng_start: Any
    z: np.ndarray  # int16: the topics of all tokens for "saga", else empty
    steps: int = 0
    noisy: bool = True  # False while the centre is sought
    centre: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))  # φ̂ (V, K)
    order: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))  # rest of the epoch
    draws: TopicDraws = field(default_factory=TopicDraws)
    anchor_error: float = 0.0  # error of E[n | φ̂], in posterior standard deviations of θ

    def is_done(self, plan):
        """Whether the chain has all its draws."""
        return self.steps >= plan.n_steps

    def advance(self, tokens, prior, pieces, plan, work):
        """Take steps for `work` tokens or a few more; all remaining steps if `work` is None."""
        left, D = np.inf if work is None else work, len(tokens.starts) - 1
        while left > 0 and not self.is_done(plan):
            documents = self._batch(D, pieces)
            left -= self.step(tokens, documents, prior, pieces, D)
            self._finish_step(tokens, prior, pieces, plan)
        return self

    def _batch(self, D, pieces):
        """Return the next documents of a random order; another order follows at its end."""
        n, fresh = pieces.batch_size, self.steps == 0
        while len(self.order) < n and (fresh or not pieces.one_pass):
            self.order, fresh = np.concatenate([self.order, self.rng_rows.permutation(D)]), False
        documents, self.order = self.order[:n], self.order[n:]
        return documents

    def step(self, tokens, documents, prior, pieces, n_documents):
        """Take a step with a batch out of `n_documents`; return its number of tokens."""
        h = float(pieces.step_sizes(np.array([self.steps]))[0])
        lengths = tokens.starts[documents + 1] - tokens.starts[documents]
        position = np.full(len(self.state.theta), -1)
        words = np.empty(min(int(lengths.sum()), len(position)), np.int64)
        words = words[: list_words(tokens, documents, position, words)]
        batch = tokens, documents, position, int(lengths.sum()), n_documents / len(documents)
        move = self._lazy_step if pieces.sampler == "cir" else self._dense_step
        with np.errstate(all="ignore"):
            move(words, batch, prior, pieces, h)
        self.state.clock += h
        self.steps += 1
        if not np.isfinite(self.state.sums).all():
            raise SamplerDivergedError(
                f"chain {self.number} diverged at step {self.steps} with step_size={h:.4g} and "
                f"batch_size={len(documents)}: its topics are not finite. Use step_size='auto', a "
                "smaller step_size, or sampler='cir', which is stable with every step size."
            )
        return int(lengths.sum())

    def _move(self, theta, a, times):
        """Return θ after a time for each word, by the exact step.

        It is the mean of θ at that time if the chain has no noise.
        """
        if not self.noisy:
            keep = np.exp(-times)[:, None]
            return keep * theta + (1.0 - keep) * a
        moved = np.empty_like(theta)
        transition(theta, a, times, self.rng, moved)
        return moved

    def catch_up(self, words, beta):
        """Bring words that waited up to date with the clock, in place; return their `a`."""
        state = self.state
        times, a = state.clock - state.touched[words], beta + state.base[words]
        keep = np.exp(-times)[:, None]
        expected = keep * state.theta[words] + (1.0 - keep) * a
        state.theta[words] = self._move(state.theta[words], a, times)
        state.mean[words] = keep * state.mean[words] + (1.0 - keep) * a
        state.sums += (state.theta[words] - expected).sum(axis=0)
        state.touched[words] = state.clock
        return a

    def _lazy_step(self, words, batch, prior, pieces, h):
        state, beta = self.state, prior.beta
        a = self.catch_up(words, beta)
        phi = state.theta[words] / state.sums
        change = self._change(words, phi, batch, prior, pieces)
        keep = np.exp(-h)
        if pieces.gradient == "saga":  # from now on the words wait with the new `a`
            state.base[words] += change
            state.base_sums += change.sum(axis=0)
            rest = len(state.base) * beta + state.base_sums
            state.sums = keep * state.sums + (1.0 - keep) * rest
            return
        b, before = np.maximum(a + change, FLOOR * beta), state.theta[words]
        rest = len(state.base) * beta + state.base_sums - a.sum(axis=0)
        state.theta[words] = self._move(before, b, np.full(len(words), h))
        state.mean[words] = keep * state.mean[words] + (1.0 - keep) * b
        state.sums = keep * (state.sums - before.sum(axis=0)) + (1.0 - keep) * rest
        state.sums += state.theta[words].sum(axis=0)
        state.touched[words] = state.clock + h

    def _dense_step(self, words, batch, prior, pieces, h):
        state = self.state
        phi = self._phi(pieces)
        a = prior.beta + state.base
        change = self._change(words, phi[words], batch, prior, pieces)
        if pieces.gradient == "saga":
            state.base[words] += change
            state.base_sums += change.sum(axis=0)
        a[words] = np.maximum(a[words] + change, FLOOR * prior.beta)
        if pieces.sampler == "sgrld":
            mirrored_step(state.theta, a, h, self.rng, state.theta)
        else:
            softmax_step(state.theta, phi, a, a.sum(axis=0), h, self.rng, state.theta)
        state.sums = state.theta.sum(axis=0)
        state.mean += (1.0 - np.exp(-h)) * (a - state.mean)

    def _phi(self, pieces):
        """Return φ (V, K) of a state in which no word waits."""
        if pieces.sampler == "sgld":
            odds = np.exp(self.state.theta - self.state.theta.max(axis=0))
            return odds / odds.sum(axis=0)
        return self.state.theta / self.state.theta.sum(axis=0)

    def _change(self, words, phi, batch, prior, pieces):
        """Return what the batch adds to the expected counts `base` of its words."""
        tokens, documents, position, n_tokens, scale = batch
        change = np.zeros(phi.shape)
        if pieces.gradient == "saga":
            return self._renewed(words, phi, batch, prior, pieces, change)
        u = self.rng_rows.random(n_tokens * (N_BURN + N_KEEP))
        options = tokens, documents, position, prior.alpha, u
        _expect(phi, *options, N_BURN, N_KEEP, change)
        if pieces.gradient == "control_variate":
            at_centre = np.zeros(phi.shape)
            centre = np.ascontiguousarray(self.centre[words])
            _expect(centre, *options, N_BURN, N_KEEP, at_centre)
            change -= at_centre
        return scale * change

    def _renewed(self, words, phi, batch, prior, pieces, change):
        """Renew the topics of the batch by Gibbs sweeps ("saga"); return the change of the counts.

        The change is added to `change`.
        """
        tokens, documents, position, n_tokens, _ = batch
        state = self.state
        is_first = pieces.one_pass or self.steps * pieces.batch_size < len(tokens.starts) - 1
        theta, masses = phi, np.zeros(0)
        if not is_first and pieces.sampler != "sgld":
            theta, masses = state.theta[words], len(state.base) * prior.beta + state.base_sums
        for _ in range(N_BURN + 1 if is_first else 1):
            u = self.rng_rows.random(n_tokens)
            renew(tokens, documents, theta, masses, position, prior.alpha, self.z, u, change)
        return change

    def _finish_step(self, tokens, prior, pieces, plan):
        after = self.steps - plan.n_warmup
        if after > 0 and after % plan.thin == 0:
            self.keep(tokens, prior, pieces)

    def keep(self, tokens, prior, pieces):
        """Keep the present state as a draw."""
        if pieces.sampler == "cir":
            self.catch_up(np.arange(len(self.state.theta)), prior.beta)
        masses, smooth = self.state.mean, None
        if pieces.gradient == "saga":  # the mean given z has less noise than that given the path
            masses = prior.beta + self.state.base
            smooth = expected_masses(self.z, tokens, prior, self.state.base)
        phi = np.ascontiguousarray(self._phi(pieces).T)
        self.draws.keep(np.ascontiguousarray(masses.T), phi, smooth)


def _expect(phi, tokens, documents, position, alpha, u, n_burn, n_keep, counts_out):
    expected_counts(tokens, documents, phi, position, alpha, n_burn, n_keep, u, counts_out)


def find_centre(chain, tokens, prior, pieces):
    """Find the centre φ̂ of a chain in some epochs without noise, and E[n | φ̂] there.

    The error of E[n | φ̂] stays in all steps of the chain: `anchor_error` is the root mean square
    of its standard errors, from two runs, in the posterior standard deviations of θ.
    """
    D, plain = len(tokens.starts) - 1, replace(pieces, sampler="cir", gradient="minibatch")
    # The state of "sgld" has log θ, and that of "cir" has θ.
    state = chain.state = new_state(chain.state.mean - prior.beta, prior.beta, plain.sampler)
    chain.noisy = False
    for _ in range(CENTRE_EPOCHS * -(-D // plain.batch_size)):
        chain.step(tokens, chain._batch(D, plain), prior, plain, D)
    chain.catch_up(np.arange(len(state.mean)), prior.beta)
    chain.noisy, chain.steps = True, 0
    chain.centre = state.mean / state.mean.sum(axis=0)
    one, other = (_anchor(chain, tokens, prior) for _ in range(2))
    counts = 0.5 * (one + other)
    errors = 0.5 * (one - other) / np.sqrt(prior.beta + counts)
    chain.anchor_error = float(np.sqrt(np.mean(errors**2)))
    chain.state = new_state(counts, prior.beta, pieces.sampler, counts.copy())
    return chain


def _anchor(chain, tokens, prior):
    """Estimate E[n | φ̂] of all documents, (V, K), by one run of Gibbs sweeps."""
    D, position = len(tokens.starts) - 1, np.arange(len(chain.centre))
    counts = np.zeros(chain.centre.shape)
    for first in range(0, D, BLOCK):
        documents = np.arange(first, min(first + BLOCK, D))
        n_tokens = int(tokens.starts[documents[-1] + 1] - tokens.starts[first])
        u = chain.rng_start.random(n_tokens * (ANCHOR_BURN + ANCHOR_KEEP))
        sweeps = ANCHOR_BURN, ANCHOR_KEEP
        _expect(chain.centre, tokens, documents, position, prior.alpha, u, *sweeps, counts)
    return counts
