"""Topic models: enumerated laws of assignments, unbiased probabilities, perplexities, alignment."""

import itertools
import math
import sys

import numpy as np
import pytest
from heap import without_gaps
from naive import complex_step
from scipy import sparse, stats
from scipy.special import gammaln, logsumexp

from skbayes_sg.schedules import Constant
from skbayes_sg.topics import (
    align_topics,
    completion_log_likelihood,
    completion_perplexity,
    left_to_right_log_likelihood,
    split_documents,
    split_merge,
    stochastic_chains,
    topic_distances,
)
from skbayes_sg.topics.alignment import alignment
from skbayes_sg.topics.cir import transition
from skbayes_sg.topics.collapsed_gibbs import (
    DirichletPrior,
    new_assignments,
    recount,
    resample,
    word_topics,
)
from skbayes_sg.topics.corpus import as_corpus, as_tokens
from skbayes_sg.topics.expectation import expected_counts, list_words, renew
from skbayes_sg.topics.fold_in import draw_mixes, fold_in, word_rows
from skbayes_sg.topics.gibbs_chains import dirichlet
from skbayes_sg.topics.mixes import mixes_of
from skbayes_sg.topics.sgld import softmax_step
from skbayes_sg.topics.sgrld import mirrored_step
from skbayes_sg.topics.smoothing import expected_masses
from skbayes_sg.topics.stochastic_chains import StochasticChain, TopicPieces, find_centre, new_state
from skbayes_sg.topics.weighted_gibbs import resample_weighted

X_TINY = np.array([[2, 1, 0], [0, 1, 1]], dtype=float)  # five tokens: 32 assignments of 2 topics
ALPHA = np.array([0.7, 0.4])
BETA = 0.3


# -- the law of all assignments -------------------------------------------------------------------


def log_joint(z, documents, words, weights, alpha, beta, n_words):
    """log p(z, w) up to a constant, by its formula."""
    D, K = documents.max() + 1, len(alpha)
    n_dk, n_kw = np.zeros((D, K)), np.zeros((K, n_words))
    np.add.at(n_dk, (documents, z), weights)
    np.add.at(n_kw, (z, words), weights)
    of_words = gammaln(n_kw + beta).sum() - gammaln(n_kw.sum(axis=1) + n_words * beta).sum()
    return gammaln(n_dk + alpha).sum() + of_words


def made_state(z, tokens, n_words, n_topics):
    """The assignments z, counted anew."""
    state = new_assignments(tokens, n_words, n_topics)
    state.z[:] = z
    recount(state, tokens)
    return state


def naive_counts(z, tokens, n_words, n_topics):
    """n_kw as a matrix (V, K)."""
    found = np.zeros((n_words, n_topics))
    np.add.at(found, (tokens.words, z), tokens.weights if len(tokens.weights) else 1.0)
    return found


def law_of(choose, n_topics, n_grid=80, n_bisections=45):
    """The law of ``choose(u)`` for uniform u, by the points between which it changes."""
    grid = np.linspace(1e-14, 1.0 - 1e-14, n_grid)  # finer than the law is
    topics = [choose(u) for u in grid]
    law, last = np.zeros(n_topics), 0.0
    for i in range(n_grid - 1):
        if topics[i] != topics[i + 1]:
            lower, upper = grid[i], grid[i + 1]
            for _ in range(n_bisections):
                middle = 0.5 * (lower + upper)
                lower, upper = (middle, upper) if choose(middle) == topics[i] else (lower, middle)
            law[topics[i]] += lower - last
            last = lower
    law[topics[-1]] += 1.0 - last
    return law


def enumerated(X, kernel):
    """(states, law by the formula, transition matrix of a sweep read out of the kernel)."""
    tokens, K = as_tokens(as_corpus(X)), len(ALPHA)
    n, V = len(tokens.words), X.shape[1]
    documents = np.repeat(np.arange(len(X)), np.diff(tokens.starts))
    weights = tokens.weights if len(tokens.weights) else np.ones(n)
    states = list(itertools.product(range(K), repeat=n))
    number = {z: s for s, z in enumerate(states)}
    logs = [
        log_joint(np.array(z), documents, tokens.words, weights, ALPHA, BETA, V) for z in states
    ]
    P = np.eye(len(states))
    for i in range(n):
        step = np.zeros_like(P)
        for s, z in enumerate(states):
            before = made_state(np.array(z), tokens, V, K)

            def choose(u, before=before, i=i):
                state = type(before)(*(array.copy() for array in before))
                d = int(documents[i])
                kernel(state, DirichletPrior(ALPHA, BETA), tokens, d, i, i + 1, np.array([u]))
                return state.z[i]

            for k, p in enumerate(law_of(choose, K)):
                step[s, number[(*z[:i], k, *z[i + 1 :])]] += p
        P = P @ step
    return states, np.exp(logs - logsumexp(logs)), P


@pytest.mark.parametrize(
    ("X", "kernel"),
    [
        pytest.param(X_TINY, resample, marks=pytest.mark.slow),
        (X_TINY[:, [1, 1, 2]] * [1, 0, 1], resample),  # a word that does not occur
        pytest.param(
            np.array([[1.5, 0.3, 0.0], [0.0, 0.8, 2.2]]), resample_weighted, marks=pytest.mark.slow
        ),
    ],
    ids=["whole", "unused word", "weighted"],
)
def test_a_gibbs_sweep_leaves_the_law_of_the_assignments(X, kernel):
    _, law, P = enumerated(X, kernel)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-10)
    np.testing.assert_allclose(law @ P, law, atol=1e-10)
    assert np.abs(np.linalg.matrix_power(P, 200)[0] - law).max() < 1e-10  # and no other law


def test_weighted_sweeps_are_plain_ones_for_weights_of_one():
    tokens = as_tokens(as_corpus(X_TINY))
    weighted = tokens._replace(weights=np.ones(5))
    state = made_state(np.array([0, 1, 1, 0, 1]), tokens, 3, 2)
    for i in range(5):
        d = int(i >= 3)

        def law(kernel, own, i=i, d=d):
            def choose(u):
                z = made_state(state.z.copy(), own, 3, 2)
                kernel(z, DirichletPrior(ALPHA, BETA), own, d, i, i + 1, np.array([u]))
                return z.z[i]

            return law_of(choose, 2)

        np.testing.assert_allclose(
            law(resample, tokens), law(resample_weighted, weighted), atol=1e-12
        )


def test_counts_stay_those_of_the_assignments():
    rng = np.random.default_rng(0)
    X = rng.poisson(0.5, (40, 30))
    tokens, K = as_tokens(as_corpus(X)), 7
    state = new_assignments(tokens, 30, K)
    for _ in range(5):
        for d in range(40):
            first, last = tokens.starts[d], tokens.starts[d + 1]
            u = rng.random(last - first)
            resample(state, DirichletPrior(np.full(K, 0.1), 0.05), tokens, d, first, last, u)
    found = naive_counts(state.z, tokens, 30, K)
    np.testing.assert_array_equal(word_topics(state), found)
    np.testing.assert_array_equal(state.n_k, found.sum(axis=0))
    np.testing.assert_array_equal(state.n_listed, (found > 0).sum(axis=1))
    np.testing.assert_array_equal(word_topics(made_state(state.z, tokens, 30, K)), found)


def test_documents_are_resampled_as_their_tokens_one_by_one():
    rng = np.random.default_rng(2)
    tokens, K = as_tokens(as_corpus(rng.poisson(0.7, (10, 12)))), 4
    n = len(tokens.words)
    start, u = rng.integers(0, K, n), rng.random(n)
    whole, single = (made_state(start, tokens, 12, K) for _ in range(2))
    for d in range(10):
        first, last = tokens.starts[d], tokens.starts[d + 1]
        prior = DirichletPrior(np.full(K, 0.4), 0.2)
        resample(whole, prior, tokens, d, first, last, u[first:last])
        for i in range(first, last):
            resample(single, prior, tokens, d, i, i + 1, u[i : i + 1])
    np.testing.assert_array_equal(whole.z, single.z)
    assert (whole.z != start).mean() > 0.3


def test_smooth_counts_are_the_enumerated_expectations():
    tokens = as_tokens(as_corpus(X_TINY))
    documents, n, K, V = np.repeat([0, 1], [3, 2]), 5, 2, 3
    states = list(itertools.product(range(K), repeat=n))
    logs = {
        z: log_joint(np.array(z), documents, tokens.words, np.ones(n), ALPHA, BETA, V)
        for z in states
    }
    law = np.exp(np.array(list(logs.values())) - logsumexp(list(logs.values())))
    means, smooth_means = np.zeros((K, V)), np.zeros((K, V))
    for z, probability in zip(states, law, strict=True):
        expected = np.full((K, V), BETA)
        for i, w in enumerate(tokens.words):
            of_token = np.array([logs[(*z[:i], k, *z[i + 1 :])] for k in range(K)])
            expected[:, w] += np.exp(of_token - logsumexp(of_token))
        counts = naive_counts(np.array(z), tokens, V, K)
        found = expected_masses(np.array(z, np.int16), tokens, DirichletPrior(ALPHA, BETA), counts)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        means += probability * (counts.T + BETA)
        smooth_means += probability * found
    np.testing.assert_allclose(smooth_means, means, rtol=1e-12)


@pytest.mark.skipif(sys.platform == "win32", reason="the heap is filled by way of the C library")
@pytest.mark.parametrize("K", [4, 5, 8, 33])
def test_results_do_not_depend_on_where_arrays_lie(K):
    rng = np.random.default_rng(0)
    corpus = as_corpus(rng.poisson(2.0, (20, 10)))
    tokens, prior = as_tokens(corpus), DirichletPrior(np.full(K, 0.1), 0.05)
    z = rng.integers(0, K, len(tokens.words)).astype(np.int16)
    counts = naive_counts(z, tokens, 10, K)
    phi = word_rows(rng.dirichlet(np.full(10, 0.3), K))

    def results():
        masses = expected_masses(z, tokens, prior, counts)
        return masses.tobytes(), mixes_of(corpus, phi, prior.alpha).tobytes()

    results()
    with without_gaps():
        first = results()
    assert {results() for _ in range(5)} == {first}


def test_splits_and_mergers_go_by_the_law():
    rng = np.random.default_rng(1)
    kinds = np.repeat([[4, 4, 0, 0, 0, 0], [0, 0, 4, 4, 0, 0], [0, 0, 0, 0, 4, 4]], 15, axis=0)
    X = rng.poisson(kinds)
    tokens = as_tokens(as_corpus(X))
    documents, V = np.repeat(np.arange(45), np.diff(tokens.starts)), 6
    weights, alpha, beta = np.ones(len(documents)), np.full(3, 0.5), 0.1
    made = np.where(tokens.words < 2, rng.integers(0, 2, len(documents)), 2)  # one in 2, two in 1
    before = log_joint(made, documents, tokens.words, weights, alpha, beta, V)
    own = split_merge.log_joint(made, documents, tokens, alpha, beta, V)
    other = rng.permutation(made)
    moved = split_merge.log_joint(other, documents, tokens, alpha, beta, V) - own
    expected = log_joint(other, documents, tokens.words, weights, alpha, beta, V) - before
    assert moved == pytest.approx(expected, rel=1e-12)
    state = made_state(made, tokens, V, 3)
    prior = DirichletPrior(alpha, beta)
    assert split_merge.split_and_merge(state, prior, tokens, np.random.default_rng(0)) == 1
    assert log_joint(state.z, documents, tokens.words, weights, alpha, beta, V) > before
    np.testing.assert_array_equal(word_topics(state), naive_counts(state.z, tokens, V, 3))
    assert split_merge.split_and_merge(state, prior, tokens, np.random.default_rng(0)) == 0


# -- documents under given topics -----------------------------------------------------------------

PHI = np.array([[0.5, 0.3, 0.15, 0.05], [0.05, 0.1, 0.25, 0.6]])
DOCUMENT = np.array([[2.0, 1.0, 1.0, 2.0]])


def enumerated_document(words):
    """p(w), and E θ, by the sum over all assignments of a document's tokens."""
    p, mean = 0.0, np.zeros(2)
    for z in itertools.product(range(2), repeat=len(words)):
        counts = np.bincount(z, minlength=2)
        prior = math.exp(
            (gammaln(ALPHA + counts) - gammaln(ALPHA)).sum()
            + gammaln(ALPHA.sum())
            - gammaln(ALPHA.sum() + len(z))
        )
        joint = prior * np.prod(PHI[list(z), words])
        p += joint
        mean += joint * (counts + ALPHA) / (counts + ALPHA).sum()
    return p, mean / p


def test_enumerated_probabilities_add_up():
    total = sum(enumerated_document(w)[0] for w in itertools.product(range(4), repeat=3))
    assert abs(total - 1.0) < 1e-12


def test_left_to_right_is_unbiased():
    n = 4000
    words = np.repeat(np.arange(4), DOCUMENT[0].astype(int))
    truth, _ = enumerated_document(words)
    X = np.repeat(DOCUMENT, n, axis=0)
    p = np.exp(left_to_right_log_likelihood(PHI, X, ALPHA, n_particles=1, random_state=0))
    z = (p.mean() - truth) / (p.std() / math.sqrt(n))
    assert p.std() > 0.0
    assert abs(z) < 5.0
    many = np.exp(left_to_right_log_likelihood(PHI, X[:50], ALPHA, n_particles=400, random_state=0))
    assert many.std() < 0.1 * p.std()
    assert abs(many.mean() - truth) < 5.0 * many.std() / math.sqrt(50)
    twin = np.exp(left_to_right_log_likelihood(PHI, X, 4 * ALPHA, n_particles=1, random_state=0))
    assert abs(twin.mean() - truth) > 5.0 * twin.std() / math.sqrt(n)


def test_left_to_right_forgets_where_it_began():
    # The last word says what the first ones were about; without new topics for them, estimates of
    # a single particle are far more spread.
    phi = np.array([[0.5, 0.5, 0.0], [0.49, 0.01, 0.5]])
    X = np.repeat([[10, 0, 10]], 300, axis=0)
    log_p = left_to_right_log_likelihood(phi, X, 0.05, n_particles=1, random_state=0)
    assert log_p.std() < 5.5  # else 7.8


@pytest.mark.parametrize("n_particles", [0, -1, 2.5])
def test_numbers_of_particles_that_are_refused(n_particles):
    with pytest.raises(ValueError, match=rf"n_particles must be an int in .*, got {n_particles}"):
        left_to_right_log_likelihood(PHI, [[1, 0, 0, 0]], ALPHA, n_particles=n_particles)


def test_left_to_right_of_several_topics_is_the_mean_of_their_probabilities():
    one, two = (
        left_to_right_log_likelihood(phi, [[1, 0, 0, 0]], ALPHA) for phi in (PHI, PHI[:, ::-1])
    )
    both = left_to_right_log_likelihood(np.stack([PHI, PHI[:, ::-1]]), [[1, 0, 0, 0]], ALPHA)
    np.testing.assert_allclose(np.exp(both), 0.5 * (np.exp(one) + np.exp(two)), rtol=1e-12)
    np.testing.assert_allclose(np.exp(one), ALPHA @ PHI[:, 0] / ALPHA.sum(), rtol=1e-12)


def test_draws_of_mixes_have_the_enumerated_mean():
    n = 4000
    tokens = as_tokens(as_corpus(np.repeat(DOCUMENT, n, axis=0)))
    mixes = np.empty((n, 2))
    rng = np.random.default_rng(1)
    draw_mixes(tokens, word_rows(PHI), ALPHA, 0, n, 20, rng, mixes)
    _, mean = enumerated_document(tokens.words[:6])
    assert np.abs((mixes.mean(axis=0) - mean) / mixes.std(axis=0)).max() < 5.0 / math.sqrt(n)


def naive_cvb0(X, phi, alpha, n_passes):
    """Mixes, word by word."""
    found = []
    for counts in X:
        gamma = np.tile(alpha / alpha.sum(), (len(counts), 1))
        for _ in range(n_passes):
            for w in np.flatnonzero(counts):
                rest = counts @ gamma - min(counts[w], 1.0) * gamma[w]
                p = phi[:, w] * (alpha + rest)
                gamma[w] = p / p.sum()
        found.append((counts @ gamma + alpha) / (counts.sum() + alpha.sum()))
    return np.array(found)


def test_fold_in_is_its_formula():
    rng = np.random.default_rng(2)
    X = rng.poisson(1.0, (5, 4)) * rng.choice([0.5, 1.0, 2.0], (5, 4))
    X[2] = 0.0
    mixes = np.zeros((5, 2))
    fold_in(as_corpus(X), word_rows(PHI), ALPHA, 0, 5, 7, mixes)
    np.testing.assert_allclose(mixes, naive_cvb0(X, PHI, ALPHA, 7), rtol=1e-12)
    np.testing.assert_allclose(mixes[2], ALPHA / ALPHA.sum(), rtol=1e-12)


# -- perplexities ---------------------------------------------------------------------------------


def some_documents(n=30, n_words=12, seed=3):
    rng = np.random.default_rng(seed)
    return sparse.csr_array(rng.poisson(1.5, (n, n_words)).astype(float))


def some_topics(n_topics, n_words=12, seed=4):
    return np.random.default_rng(seed).dirichlet(np.full(n_words, 0.3), n_topics)


def test_topics_that_know_nothing_have_the_perplexity_of_the_vocabulary():
    observed, held_out = split_documents(some_documents(), 0)
    for K in (1, 5):
        found = completion_perplexity(np.ones((K, 12)), observed, held_out)
        assert abs(found - 12.0) < 1e-10
        log_p = left_to_right_log_likelihood(np.ones((K, 12)), some_documents(), n_particles=2)
        np.testing.assert_allclose(log_p, -some_documents().sum(axis=1) * math.log(12), rtol=1e-12)


def test_perplexity_does_not_depend_on_names():
    observed, held_out = split_documents(some_documents(), 0)
    phi, alpha, rng = some_topics(4), np.array([0.1, 0.5, 0.2, 0.3]), np.random.default_rng(0)
    expected = completion_perplexity(phi, observed, held_out, alpha)
    k, w = rng.permutation(4), rng.permutation(12)
    assert abs(completion_perplexity(phi[k], observed, held_out, alpha[k]) - expected) < 1e-9
    found = completion_perplexity(phi[:, w], observed[:, w], held_out[:, w], alpha)
    assert abs(found / expected - 1.0) < 1e-3  # the order of words is the order of the passes
    assert completion_perplexity(7.0 * phi, observed, held_out, alpha) == pytest.approx(expected)


def test_perplexity_is_its_formula():
    observed, held_out = split_documents(some_documents(), 0)
    states = [some_topics(4), some_topics(3, seed=5)]
    p = sum(naive_cvb0(observed.toarray(), phi, np.full(len(phi), 0.1), 20) @ phi for phi in states)
    counts = held_out.toarray()
    expected = math.exp(-(counts * np.log(p / 2.0)).sum() / counts.sum())
    assert completion_perplexity(states, observed, held_out) == pytest.approx(expected, rel=1e-12)
    score = completion_log_likelihood(states, observed, held_out, n_jobs=2)
    assert math.exp(-score) == pytest.approx(expected, rel=1e-12)


def test_halves_are_random_halves():
    X = some_documents(400, 3, seed=6)
    observed, held_out = split_documents(X, 1)
    assert ((observed + held_out) != X).nnz == 0
    lengths = X.sum(axis=1)
    np.testing.assert_array_equal(observed.sum(axis=1), np.ceil(lengths / 2))
    share = observed.sum(axis=0) / X.sum(axis=0)
    assert np.abs(share - np.ceil(lengths / 2).sum() / lengths.sum()).max() < 0.06
    other = split_documents(X, 2)[0]
    assert (observed != other).nnz > 0
    again = split_documents(X, 1)[0]
    assert (observed != again).nnz == 0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"topics": np.ones((2, 5))}, "topics has 5 words, but X has 12"),
        ({"topics": -np.ones((2, 12))}, "topics must be nonnegative"),
        ({"observed": -some_documents()}, "observed has negative values"),
        ({"held_out": some_documents(7)}, "same documents"),
        ({"doc_topic_prior": [0.1, 0.2, 0.3]}, "doc_topic_prior must be a positive number or 2"),
        ({"held_out": 0 * some_documents()}, "there are no held-out tokens"),
    ],
)
def test_perplexity_refuses(options, text):
    given = {"topics": np.ones((2, 12)), "observed": some_documents(), "held_out": some_documents()}
    with pytest.raises(ValueError, match=text):
        completion_perplexity(**given | options)


# -- draws and their alignment --------------------------------------------------------------------


@pytest.mark.slow
def test_dirichlet_draws_have_their_moments_however_small_the_parameters():
    rng = np.random.default_rng(7)
    a = np.array([0.02, 0.3, 4.0])
    draws = np.array([dirichlet(a[None], rng)[0] for _ in range(20_000)])
    law = stats.dirichlet(a)
    error = draws.std(axis=0) / math.sqrt(len(draws))
    assert np.abs((draws.mean(axis=0) - law.mean()) / error).max() < 5.0
    assert np.abs(draws.var(axis=0) / law.var() - 1.0).max() < 0.1
    tiny = dirichlet(np.full((50, 4), 1e-5), rng)
    assert np.isfinite(tiny).all()
    np.testing.assert_allclose(tiny.sum(axis=1), 1.0)


def test_alignment_finds_the_permutations():
    rng, base = np.random.default_rng(8), some_topics(6, 40)
    orders = np.array([[rng.permutation(6) for _ in range(3)] for _ in range(4)])
    means = 0.98 * base[orders] + 0.02 * rng.dirichlet(np.ones(40), (4, 3, 6))
    found, reference = alignment(means, first=1)
    aligned = np.take_along_axis(means, found[..., None], 2)
    assert max(topic_distances(phi, reference).max() for own in aligned for phi in own) < 0.03
    np.testing.assert_array_equal(align_topics(base[[2, 0, 1, 5, 4, 3]], base), [1, 2, 0, 5, 4, 3])


def test_alignment_changes_the_places_of_topics_with_the_same_prior_alone():
    rng, base = np.random.default_rng(8), some_topics(4, 40)
    alpha = np.array([0.1, 2.0, 0.1, 0.3])
    means = np.array([[base[rng.permutation(4)] for _ in range(5)] for _ in range(2)])
    orders, _ = alignment(means, 0, alpha)
    assert (alpha[orders] == alpha).all()
    assert (orders[..., 0] == 2).any()  # the first and the third have the same
    assert align_topics(base[[2, 1, 0, 3]], base, alpha).tolist() == [2, 1, 0, 3]


@pytest.mark.parametrize("function", [align_topics, topic_distances])
@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((3, 5), (2, 5)), r"same shape .*, got \(3, 5\) and \(2, 5\)"),
        (((3, 5), (3, 4)), r"same shape .*, got \(3, 5\) and \(3, 4\)"),
        (((3,), (3,)), r"same shape \(n_topics, n_words\), got \(3,\)"),
    ],
)
def test_topics_that_do_not_match_are_named(function, shapes, message):
    with pytest.raises(ValueError, match=message):
        function(*map(np.ones, shapes))
    with pytest.raises(ValueError, match="reference must be finite and nonnegative"):
        function(np.ones((2, 3)), -np.ones((2, 3)))
    assert function([[0.5, 0.5], [0.0, 1.0]], [[0.5, 0.5], [0.0, 1.0]]).tolist() in ([0, 1], [0, 0])


def test_priors_of_other_topics_are_named():
    with pytest.raises(ValueError, match=r"doc_topic_prior must be a number or 2 of them, got \[1"):
        align_topics(np.ones((2, 3)), np.ones((2, 3)), [1.0, 2.0, 3.0])


# -- steps with batches ---------------------------------------------------------------------------


@pytest.mark.parametrize("beta", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("h", [0.01, 1.0])
def test_the_exact_step_leaves_the_gamma_law(beta, h):
    rng, n = np.random.default_rng(11), 200_000
    theta = rng.standard_gamma(beta, (n, 1))
    moved = np.empty_like(theta)
    transition(theta, np.full((n, 1), beta), np.full(n, h), rng, moved)
    z_mean = (moved.mean() - beta) / math.sqrt(beta / n)
    fourth = 3.0 * beta**2 + 6.0 * beta  # central moment of Gamma(β, 1)
    z_square = (((moved - beta) ** 2).mean() - beta) / math.sqrt((fourth - beta**2) / n)
    assert abs(z_mean) < 5.0
    assert abs(z_square) < 5.0
    assert abs(np.corrcoef(theta[:, 0], moved[:, 0])[0, 1] - math.exp(-h)) < 0.05
    twin = np.empty_like(theta)  # of another law
    transition(theta, np.full((n, 1), 1.1 * beta + 0.01), np.full(n, h), rng, twin)
    if h == 1.0:
        assert (twin.mean() - beta) / math.sqrt(beta / n) > 5.0


def test_moments_of_the_exact_step():
    rng, n, a, h = np.random.default_rng(12), 200_000, 0.3, 0.4
    theta, moved = np.full((n, 1), 2.0), np.empty((n, 1))
    transition(theta, np.full((n, 1), a), np.full(n, h), rng, moved)
    keep = math.exp(-h)
    mean, variance = keep * 2.0 + (1 - keep) * a, (1 - keep) * (2 * keep * 2.0 + (1 - keep) * a)
    assert abs(moved.mean() - mean) < 5.0 * math.sqrt(variance / n)
    assert abs(moved.var() / variance - 1.0) < 0.02
    transition(theta, np.full((n, 1), a), np.zeros(n), rng, moved)
    np.testing.assert_array_equal(moved, theta)  # no time, no change


@pytest.mark.slow
def test_mirrors_are_biased_where_the_exact_step_is_not():
    rng, beta, n = np.random.default_rng(13), 0.1, 5000
    a = np.full((n, 1), beta)
    mirrored, exact = (rng.standard_gamma(beta, (n, 1)) for _ in range(2))
    means = []
    for step in range(600):
        mirrored_step(mirrored, a, 0.05, rng, mirrored)  # ε = 0.1
        transition(exact, a, np.full(n, 0.05), rng, exact)
        if step >= 200:
            means.append([mirrored.mean(), exact.mean()])
    ratio = np.mean(means, axis=0) / beta
    assert abs(ratio[0] - 3.18) < 0.15
    assert abs(ratio[1] - 1.0) < 0.1


def log_p_of_documents(phi, documents):
    """log Π_d p(w_d | φ), complex-safe, by the sum over all assignments; φ is (V, K)."""
    total = 0.0
    for words in documents:
        p = 0.0
        for z in itertools.product(range(2), repeat=len(words)):
            rises = [np.prod(ALPHA[k] + np.arange(z.count(k))) for k in range(2)]
            p = p + np.prod(rises) * np.prod(phi[list(words), list(z)])
        total = total + np.log(p / np.prod(ALPHA.sum() + np.arange(len(words))))
    return total


def enumerated_counts(phi, documents):
    """E[n_kw | φ] as a matrix (V, K), by the same sum."""
    found = np.zeros(phi.shape)
    for words in documents:
        p, counts = 0.0, np.zeros(phi.shape)
        for z in itertools.product(range(2), repeat=len(words)):
            rises = [np.prod(ALPHA[k] + np.arange(z.count(k))) for k in range(2)]
            joint = np.prod(rises) * np.prod(phi[list(words), list(z)])
            p += joint
            np.add.at(counts, (list(words), list(z)), joint)
        found += counts / p
    return found


WORDS = [(0, 0, 1, 3), (1, 2, 3, 3, 3)]


def test_the_gradient_is_that_of_the_enumerated_posterior():
    x = np.random.default_rng(14).normal(size=(4, 2))

    def log_posterior(flat):
        e = np.exp(flat.reshape(4, 2))
        phi = e / e.sum(axis=0)
        return log_p_of_documents(phi, WORDS) + BETA * np.log(phi).sum()

    phi = np.exp(x) / np.exp(x).sum(axis=0)
    a = BETA + enumerated_counts(phi, WORDS)
    h, moved = 1e-2, np.empty_like(x)
    softmax_step(x, phi, a, a.sum(axis=0), h, np.random.default_rng(0), moved)
    noise = np.random.default_rng(0).standard_normal(8).reshape(4, 2)
    drift = (moved - x - math.sqrt(h) * noise) / (0.5 * h)
    np.testing.assert_allclose(drift.ravel(), complex_step(log_posterior, x.ravel()), rtol=1e-10)


def batch_of(documents, n_words=4):
    X = np.array([np.bincount(words, minlength=n_words) for words in documents])
    return as_tokens(as_corpus(X.astype(float)))


def test_expected_counts_are_those_of_the_enumeration():
    tokens, n = batch_of(WORDS), 40_000
    phi = np.ascontiguousarray(PHI.T)
    found, rng = np.zeros((4, 2)), np.random.default_rng(15)
    u = rng.random(9 * (20 + n))
    arguments = np.arange(2), phi, np.arange(4), ALPHA, 20, n, u
    expected_counts(tokens, *arguments, found)
    assert np.abs(found - enumerated_counts(phi, WORDS)).max() < 0.02
    np.testing.assert_allclose(found.sum(axis=1), [2, 2, 1, 4])


OTHERS = np.array([2.5, 6.0])  # Vβ + the numbers of tokens of other documents


def error_of_renewal(counted, with_masses):
    """Largest change of p(z | θ) by a sweep over four tokens, from all 16 assignments.

    With `counted`, the law is that of θ_kw ~ Gamma(β + n_kw, 1): Π θ^n / Π Γ(Vβ + n_k).
    """
    tokens, theta = batch_of(WORDS[:1]), np.ascontiguousarray(3.0 * PHI.T)
    states = [np.array(z) for z in itertools.product(range(2), repeat=4)]
    numbers = [np.bincount(z, minlength=2) for z in states]
    logs = [gammaln(ALPHA + n).sum() + np.log(theta[list(WORDS[0]), z]).sum()
            for z, n in zip(states, numbers, strict=True)]  # fmt: skip
    if counted:
        logs = [x - gammaln(OTHERS + n).sum() for x, n in zip(logs, numbers, strict=True)]
    law = np.exp(logs - logsumexp(logs))
    P = np.eye(len(states))
    for i in range(4):  # tokens before i keep their topic, those after it are renewed later
        step = np.zeros_like(P)
        for s, z in enumerate(states):
            masses = OTHERS + numbers[s] if with_masses else np.zeros(0)

            def choose(u, z=z, i=i, masses=masses):
                own, change = z.astype(np.int16), np.zeros((4, 2))
                kept = [_keeping(theta, z, j, masses) for j in range(i)]
                quantiles = np.array(kept + [u] * (4 - i))
                where = np.arange(4)
                renew(tokens, np.arange(1), theta, masses, where, ALPHA, own, quantiles, change)
                return own[i]

            for k, p in enumerate(law_of(choose, 2)):
                new = np.r_[z[:i], k, z[i + 1 :]]
                step[s, int("".join(map(str, new)), 2)] += p
        P = P @ step
    return np.abs(law @ P - law).max()


def _keeping(theta, z, j, masses):
    """A quantile at which token j keeps its topic, given those of all others."""
    counts = np.bincount(np.delete(z, j), minlength=2)
    odds = (counts + ALPHA) * theta[WORDS[0][j]]
    if len(masses):
        odds /= masses - (np.arange(2) == z[j])
    return (odds[: z[j]].sum() + 0.5 * odds[z[j]]) / odds.sum()


@pytest.mark.parametrize("counted", [pytest.param(True, marks=pytest.mark.slow), False])
def test_renewal_leaves_the_law_of_the_assignments(counted):
    assert error_of_renewal(counted, with_masses=counted) < 1e-10
    assert error_of_renewal(counted, with_masses=not counted) > 1e-3  # the law of the other


@pytest.mark.slow
def test_saga_with_exact_steps_is_exact_to_a_thousandth():
    # two documents of three tokens; drawn given φ, the errors would be 0.011, 0.010 and 0.007
    X, alpha, beta = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([0.5, 0.5]), 0.5
    tokens, prior = as_tokens(as_corpus(X)), DirichletPrior(alpha, beta)
    pieces, rng = TopicPieces("cir", "saga", 2, Constant(0.2)), np.random.default_rng(3)
    z = rng.integers(0, 2, 6).astype(np.int16)
    counts = naive_counts(z, tokens, 2, 2)
    rngs = (np.random.default_rng([3, k]) for k in range(3))
    chain = StochasticChain(0, new_state(counts, beta, "cir", counts), *rngs, z)
    chain.steps, found = 2, np.zeros((400_000, 6), np.int8)
    for own in found:
        chain.step(tokens, np.arange(2), prior, pieces, 2)
        own[:] = chain.z
    states = np.array(list(itertools.product(range(2), repeat=6)))
    documents = np.repeat([0, 1], 3)
    logs = [log_joint(z, documents, tokens.words, np.ones(6), alpha, beta, 2) for z in states]
    law = np.exp(logs - logsumexp(logs))

    def same(z):
        return np.c_[z[:, 0] == z[:, 2], z[:, 2] == z[:, 4], z[:, 0] == z[:, 3]]

    batches = same(found).reshape(200, -1, 3).mean(axis=1)
    error = batches.std(axis=0) / np.sqrt(200)
    assert error.max() < 0.002
    assert np.abs(batches.mean(axis=0) - law @ same(states)).max() < 4.0 * error.max()


def test_renewal_counts_what_it_changes():
    tokens = batch_of(WORDS)
    z, change = np.full(9, -1, np.int16), np.zeros((4, 2))
    rng, phi = np.random.default_rng(16), np.ascontiguousarray(PHI.T)
    for _ in range(3):
        renew(tokens, np.arange(2), phi, np.zeros(0), np.arange(4), ALPHA, z, rng.random(9), change)
        np.testing.assert_array_equal(change, naive_counts(z, tokens, 4, 2))


def small_chain(gradient, seed=0, **options):
    """A chain on two documents of all four words, at a random place."""
    tokens = batch_of(WORDS)
    pieces = TopicPieces("cir", gradient, options.pop("batch_size", 2), Constant(0.7), **options)
    rng = np.random.default_rng(seed)
    z, counts = np.zeros(0, np.int16), np.zeros((4, 2))
    if gradient == "saga":
        z = rng.integers(0, 2, 9).astype(np.int16)
        counts = naive_counts(z, tokens, 4, 2)
    state = new_state(counts + rng.random((4, 2)), BETA, "cir", counts)
    rngs = (np.random.default_rng([seed, k]) for k in range(3))
    return tokens, pieces, StochasticChain(0, state, *rngs, z)


@pytest.mark.slow
def test_saga_with_exact_steps_has_the_law_of_the_assignments():
    tokens, pieces, chain = small_chain("saga")
    prior, found = DirichletPrior(ALPHA, BETA), []
    for _ in range(12_000):
        chain.step(tokens, np.arange(2), prior, pieces, 2)
        found.append(chain.z.copy())
    found = np.array(found[1000:])
    documents = np.repeat([0, 1], [4, 5])
    states = np.array(list(itertools.product(range(2), repeat=9)))
    logs = [log_joint(z, documents, tokens.words, np.ones(9), ALPHA, BETA, 4) for z in states]
    law = np.exp(logs - logsumexp(logs))

    def statistics(z):  # neither depends on how topics are called
        pairs = z[:, :, None] == z[:, None, :]
        return np.c_[pairs[:, 0, 8], pairs[:, 0, 3], pairs[:, 3, 7], pairs.mean(axis=(1, 2))]

    batches = statistics(found).reshape(100, -1, 4).mean(axis=1)
    error = batches.std(axis=0) / 10.0
    z = (batches.mean(axis=0) - law @ statistics(states)) / error
    assert np.abs(z).max() < 5.0
    assert error.max() < 0.02


def test_waiting_words_are_where_a_dense_recursion_has_them():
    """Without noise, a step on few words is one on all words."""
    X = np.random.default_rng(17).poisson(0.7, (12, 30)).astype(float)
    tokens, rng = as_tokens(as_corpus(X)), np.random.default_rng(18)
    prior, pieces = DirichletPrior(ALPHA, BETA), TopicPieces("cir", "minibatch", 2, Constant(0.2))
    state = new_state(rng.random((30, 2)), BETA, "cir")
    chain = StochasticChain(0, state, *(np.random.default_rng(k) for k in range(3)), np.zeros(0, np.int16), noisy=False)  # fmt: skip # noqa: E501
    theta, keep = state.theta.copy(), math.exp(-0.2)
    for _ in range(20):
        documents = rng.permutation(12)[:2]
        before = chain.rng_rows.bit_generator.state
        chain.step(tokens, documents, prior, pieces, 12)
        twin, counts = np.random.default_rng(), np.zeros((30, 2))
        twin.bit_generator.state = before
        u = twin.random(int(X[documents].sum()) * 5)
        expected_counts(tokens, documents, theta / theta.sum(axis=0), np.arange(30), ALPHA, 2, 3, u, counts)  # fmt: skip # noqa: E501
        theta = keep * theta + (1 - keep) * (BETA + 6.0 * counts)
        np.testing.assert_allclose(state.sums, theta.sum(axis=0), rtol=1e-10)
    chain.catch_up(np.arange(30), BETA)
    np.testing.assert_allclose(state.theta, theta, rtol=1e-10)
    np.testing.assert_allclose(state.mean, theta, rtol=1e-10)


def test_sums_follow_the_words_that_are_moved():
    X = np.random.default_rng(19).poisson(0.7, (12, 30)).astype(float)
    tokens, prior = as_tokens(as_corpus(X)), DirichletPrior(ALPHA, BETA)
    for gradient in ("saga", "minibatch"):
        pieces = TopicPieces("cir", gradient, 12, Constant(0.2))
        z = np.full(len(tokens.words), -1, np.int16)
        chain = StochasticChain(0, new_state(np.ones((30, 2)), BETA, "cir"), *(np.random.default_rng(k) for k in range(3)), z)  # fmt: skip # noqa: E501
        for _ in range(5):
            chain.step(tokens, np.arange(12), prior, pieces, 12)
        chain.catch_up(np.arange(30), BETA)
        used = np.unique(tokens.words)
        assert len(used) == 30  # no word waits
        np.testing.assert_allclose(chain.state.sums, chain.state.theta.sum(axis=0), rtol=1e-10)


def test_minibatches_stand_for_all_documents():
    tokens, pieces, chain = small_chain("minibatch", batch_size=1)
    total = np.zeros((4, 2))
    for d in range(2):
        position, words = np.full(4, -1), np.empty(4, np.int64)
        words = words[: list_words(tokens, np.array([d]), position, words)]
        batch = tokens, np.array([d]), position, len(WORDS[d]), 2.0
        phi = np.ascontiguousarray(PHI.T)[words]
        total[words] += 0.5 * chain._change(words, phi, batch, DirichletPrior(ALPHA, BETA), pieces)
    np.testing.assert_allclose(total.sum(axis=1), [2, 2, 1, 4], rtol=1e-12)


def test_the_counts_at_a_centre_are_accurate_and_their_error_is_measured(monkeypatch):
    # forty copies of each of two documents, for which the counts are enumerated
    tokens = batch_of(40 * WORDS)
    prior, pieces = (
        DirichletPrior(ALPHA, BETA),
        TopicPieces("cir", "control_variate", 20, Constant(0.2)),
    )

    def errors(seeds):
        found, stated = [], []
        for seed in seeds:
            rngs = (np.random.default_rng([seed, k]) for k in range(3))
            counts = np.random.default_rng(seed).random((4, 2)) * 40.0
            chain = StochasticChain(0, new_state(counts, BETA, "cir"), *rngs, np.zeros(0, np.int16))
            chain = find_centre(chain, tokens, prior, pieces)
            exact = 40.0 * enumerated_counts(chain.centre, WORDS)
            found.append((chain.state.base - exact) / np.sqrt(BETA + exact))
            stated.append(chain.anchor_error)
        return np.sqrt(np.mean(np.square(found))), np.sqrt(np.mean(np.square(stated)))

    off, stated = errors(range(12))
    assert off < 0.1
    assert 0.6 < stated / off < 1.6
    monkeypatch.setattr(stochastic_chains, "ANCHOR_BURN", 2)
    monkeypatch.setattr(stochastic_chains, "ANCHOR_KEEP", 1)
    assert errors(range(12))[0] > 2.0 * off


def test_centres_do_not_depend_on_the_sampler_that_follows():
    centres = []
    for sampler in ("cir", "sgld"):
        tokens, pieces, chain = small_chain("control_variate")
        pieces.sampler = sampler
        counts = chain.state.mean - BETA
        chain.state = new_state(counts, BETA, sampler, counts)
        chain = find_centre(chain, tokens, DirichletPrior(ALPHA, BETA), pieces)
        centres.append(chain.centre)
        moved = np.log(chain.state.mean) if sampler == "sgld" else chain.state.mean
        np.testing.assert_array_equal(chain.state.theta, moved)
    np.testing.assert_array_equal(*centres)


def test_control_variates_vanish_at_their_centre():
    tokens, pieces, chain = small_chain("control_variate")
    prior = DirichletPrior(ALPHA, BETA)
    chain = find_centre(chain, tokens, prior, pieces)
    np.testing.assert_allclose(chain.centre.sum(axis=0), 1.0)
    np.testing.assert_allclose(chain.state.base.sum(axis=1), [2, 2, 1, 4])
    batch = tokens, np.arange(2), np.arange(4), 9, 1.0
    change = chain._change(np.arange(4), chain.centre, batch, prior, pieces)
    np.testing.assert_array_equal(change, 0.0)
    other = chain._change(np.arange(4), np.ascontiguousarray(PHI.T), batch, prior, pieces)
    assert np.abs(other).max() > 0.01
