"""BayesianLDA: what it estimates, what it promises, and what it refuses."""

import copy
import itertools
import math
import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from scipy.special import gammaln, softmax
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skbayes_sg import BayesianLDA
from skbayes_sg._base import streams
from skbayes_sg.engine import rounds
from skbayes_sg.exceptions import (
    InvalidParameterError,
    SamplerConvergenceWarning,
    SamplerDivergedError,
)
from skbayes_sg.topics import (
    align_topics,
    completion_perplexity,
    gibbs_chains,
    sampling,
    split_documents,
    streaming,
    topic_distances,
)
from skbayes_sg.topics.words import beta_mixture_quantile


def made_corpus(n=300, n_words=60, n_topics=4, length=40, seed=0):
    """Documents of known topics."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(n_words, 0.05), n_topics)
    mixes = rng.dirichlet(np.full(n_topics, 0.1), n)
    return rng.multinomial(length, mixes @ topics).astype(float), topics, mixes


X, TOPICS, MIXES = made_corpus()
QUICK = {"n_components": 4, "n_draws": 3, "n_chains": 2, "n_warmup": 20, "thin": 2}


def quick(**parameters):
    return BayesianLDA(**QUICK | {"random_state": 0} | parameters)


@pytest.fixture(scope="module")
def fitted():
    return quick(n_draws=10, n_chains=3).fit(X)


# -- the posterior of a tiny corpus, by enumeration ------------------------------------------------


def enumerated(X, alpha, beta):
    """Exact posterior means of the topics' shares, the mixes of documents, and Σ_k θ_dk²."""
    documents, words = (np.repeat(part, X.ravel()) for part in np.indices(X.shape).reshape(2, -1))
    parts, logs = [], []
    for z in itertools.product(range(len(alpha)), repeat=len(words)):
        n_dk, n_kw = np.zeros((len(X), len(alpha))), np.zeros((len(alpha), X.shape[1]))
        np.add.at(n_dk, (documents, z), 1.0)
        np.add.at(n_kw, (z, words), 1.0)
        sums = gammaln(n_kw.sum(axis=1) + X.shape[1] * beta).sum()
        logs.append(gammaln(n_dk + alpha).sum() + gammaln(n_kw + beta).sum() - sums)
        a = n_dk + alpha
        total = a.sum(axis=1, keepdims=True)
        squares = (a * (a + 1.0)).sum(axis=1) / (total * (total + 1.0))[:, 0]
        parts.append((n_dk.sum(axis=0) / len(words), a / total, squares))
    return [
        np.tensordot(softmax(logs), part, 1) for part in map(np.array, zip(*parts, strict=True))
    ]


@pytest.mark.parametrize("alpha", [pytest.param((0.1, 0.1), marks=pytest.mark.slow), (2.0, 0.1)])
def test_mixes_and_shares_are_those_of_the_enumerated_posterior(alpha):
    X, alpha = np.array([[3, 1, 0], [0, 0, 2], [2, 0, 0]]), np.array(alpha)
    share, mean, square = enumerated(X, alpha, 0.3)
    model = BayesianLDA(
        2, doc_topic_prior=alpha, topic_word_prior=0.3, n_draws=1000, thin=3, random_state=3
    ).fit(X)
    mixes = model.transform_samples(X, 4000, random_state=0)
    assert np.abs((mixes**2).sum(axis=2).mean(axis=0) - square).max() < 0.015
    if alpha[0] != alpha[1]:  # the posterior knows which topic is which
        assert np.abs(model.topic_share_ - share).max() < 0.015
        assert np.abs(mixes.mean(axis=0) - mean).max() < 0.015


# -- what it estimates ----------------------------------------------------------------------------


def test_known_topics_are_found(fitted):
    order = align_topics(fitted.components_, TOPICS)
    distance = 0.5 * np.abs(fitted.components_[order] - TOPICS).sum(axis=1)
    assert distance.max() < 0.05
    assert fitted.topic_distances_.max() < 0.05
    mixes = fitted.transform(X)[:, order]
    assert np.abs(mixes - MIXES).sum(axis=1).mean() / 2 < 0.06
    z = (fitted.components_[order] - TOPICS) / fitted.components_std_[order]
    common = TOPICS > 0.01
    assert 0.8 < np.sqrt((z[common] ** 2).mean()) < 1.25  # the spread is that of the errors


@pytest.mark.slow
def test_chains_in_different_modes_come_with_a_warning(monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("error", SamplerConvergenceWarning)
        quick(n_draws=40, n_chains=4, n_warmup=60, thin=4).fit(X)
    monkeypatch.setattr(gibbs_chains, "REARRANGED", ())  # without splits and mergers
    documents, _, _ = made_corpus(300, 100, 10, 60, seed=3)
    with pytest.warns(SamplerConvergenceWarning, match="probability of a token: R-hat"):
        model = quick(n_components=10, n_draws=20, n_chains=4, n_warmup=5).fit(documents)
    assert model.diagnostics_["max_rhat"] > 1.05


@pytest.mark.slow
def test_no_chain_merges_topics(monkeypatch):
    documents, topics, _ = made_corpus(2000, 500, 20, 100)

    def worst():
        model = quick(n_components=20, n_draws=1, n_warmup=40).fit(documents)
        means = model.conditional_components_[:, 0]
        return max(topic_distances(phi[align_topics(phi, topics)], topics).max() for phi in means)

    assert worst() < 0.1
    monkeypatch.setattr(gibbs_chains, "REARRANGED", ())  # without splits and mergers they do
    assert worst() > 0.5


def test_components_are_what_they_say(fitted):
    means, masses = fitted.conditional_components_, fitted.topic_masses_
    np.testing.assert_allclose(means.sum(axis=3), 1.0)
    np.testing.assert_allclose(fitted.components_, means.mean(axis=(0, 1)))
    total = masses.sum(axis=2)
    np.testing.assert_allclose(total, X.sum() + 4 * 60 * 0.05)
    within = means * (1 - means) / (masses[..., None] + 1)
    variance = within.mean(axis=(0, 1)) + means.var(axis=(0, 1))
    np.testing.assert_allclose(fitted.components_std_**2, variance)
    draws = fitted.posterior_["components"]
    assert draws.shape == (3, 10, 4, 60)
    z = (draws - means) / np.sqrt(within)
    large = means * masses[..., None] > 20
    assert abs(z[large].std() - 1.0) < 0.05
    assert abs(z[large].mean()) < 0.05


def test_transform_is_the_mean_over_draws(fitted):
    alone = [
        quick_like(fitted, phi[None, None]).transform(X[:5])
        for own in fitted.predictive_components_
        for phi in own
    ]
    np.testing.assert_allclose(fitted.transform(X[:5]), np.mean(alone, axis=0), rtol=1e-12)


def quick_like(model, topics):
    """The model with other topics."""
    other = copy.copy(model)
    other.predictive_components_ = topics
    return other


def test_documents_without_words_have_the_mix_of_the_prior():
    alpha = np.array([0.1, 0.2, 0.3, 0.4])
    model = quick(doc_topic_prior=alpha).fit(np.concatenate([X, np.zeros((2, 60))]))
    np.testing.assert_allclose(model.transform(np.zeros((1, 60)))[0], alpha)


def test_perplexity_is_that_of_the_function(fitted):
    new, _, _ = made_corpus(seed=1)
    observed, held_out = split_documents(new, 0)
    states = fitted.predictive_components_.reshape(-1, 4, 60)
    expected = completion_perplexity(states, observed, held_out)
    assert fitted.perplexity(new) == pytest.approx(expected, rel=1e-12)
    assert fitted.perplexity(held_out, observed=observed) == pytest.approx(expected, rel=1e-12)
    assert fitted.score(new) == pytest.approx(-math.log(expected), rel=1e-12)


@pytest.mark.slow
def test_left_to_right_perplexity_is_near_that_of_the_truth(fitted):
    p = MIXES @ TOPICS
    entropy = -(X * np.log(np.where(X > 0, p, 1.0))).sum() / X.sum()
    found = fitted.perplexity(X[:60], method="left_to_right")
    assert math.exp(entropy) < found < 1.5 * math.exp(entropy)


def test_several_draws_predict_better_than_one():
    new, _, _ = made_corpus(seed=0, n=600, n_words=200, n_topics=15, length=20)
    model = quick(n_components=15, n_chains=4).fit(new[:400])
    states = model.predictive_components_.reshape(-1, 15, 200)
    observed, held_out = split_documents(new[400:], 0)
    one = [completion_perplexity(phi, observed, held_out) for phi in states]
    assert completion_perplexity(states, observed, held_out) < min(one)


def test_samples_of_mixes_are_uncertain_where_documents_are_short(fitted):
    long, short = X[:20], np.zeros((20, 60))
    short[np.arange(20), X[:20].argmax(axis=1)] = 1.0
    spread = [
        fitted.transform_samples(A, 60, random_state=0).std(axis=0).mean() for A in (long, short)
    ]
    assert spread[1] > 2.0 * spread[0]
    samples = fitted.transform_samples(long, 60, random_state=0)
    np.testing.assert_allclose(samples.sum(axis=2), 1.0)
    assert np.abs(samples.mean(axis=0) - fitted.transform(long)).max() < 0.1


def test_parts_of_a_partial_fit_have_random_numbers_of_their_own(monkeypatch):
    seen, of_chain = [], streams.of_chain

    def record(*place):
        seen.append(place)
        return of_chain(*place)

    monkeypatch.setattr(streams, "of_chain", record)
    monkeypatch.setattr(streaming, "BUFFER", 20)
    model = BayesianLDA(4, n_draws=2, n_chains=2, random_state=0)
    model.partial_fit(X[:40])  # Gibbs sweeps, a pass, and draws
    assert len(seen) == len(set(seen)) == 6


@pytest.mark.parametrize("n_samples", [0, -1, 2.5])
def test_numbers_of_samples_that_are_refused(fitted, n_samples):
    with pytest.raises(ValueError, match=rf"n_samples must be an int in .*, got {n_samples}"):
        fitted.transform_samples(X[:2], n_samples)


def test_intervals_of_words_are_those_of_the_mixture():
    means, masses = np.array([[0.2, 0.5], [0.3, 0.1]]), np.array([[10.0, 3.0], [40.0, 7.0]])
    found = beta_mixture_quantile(means, masses, 0.3)
    below = stats.beta(means * masses, (1 - means) * masses).cdf(found).mean(axis=0)
    np.testing.assert_allclose(below, 0.3, atol=1e-12)


def test_top_words(fitted):
    names = [f"w{j}" for j in range(60)]
    words = fitted.top_words(3, feature_names=names)
    assert words[1][0] == f"w{fitted.components_[1].argmax()}"
    table = fitted.top_words(3, with_uncertainty=True, feature_names=names)
    frame = table.to_frame()
    assert frame.index[0] == f"0: {words[0][0]}"
    assert (frame["5%"] < frame["mean"]).all()
    assert (frame["mean"] < frame["95%"]).all()
    assert (frame["sd"] > 0).all()
    wider = fitted.top_words(3, True, confidence_level=0.99)
    assert (wider["0.5%"] < table["5%"]).all()
    with pytest.raises(ValueError, match="feature_names has 1 words, X had 60"):
        fitted.top_words(feature_names=["a"])


# -- what it promises -----------------------------------------------------------------------------


def flat(**parameters):
    return quick(**parameters).fit(X).posterior_.flat


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_draws_do_not_depend_on_threads(n_jobs):
    np.testing.assert_array_equal(flat(n_jobs=n_jobs), flat())


@pytest.mark.slow
def test_draws_do_not_depend_on_the_backend():
    with joblib.parallel_config("loky", n_jobs=2):
        found = flat(n_jobs=2)
    np.testing.assert_array_equal(found, flat())


@pytest.mark.slow
def test_draws_do_not_depend_on_the_length_of_calls(monkeypatch):
    expected = flat()
    monkeypatch.setattr(gibbs_chains, "FIRST_WORK", 17)
    monkeypatch.setattr(rounds, "CHUNK_SECONDS", 1e-4)
    np.testing.assert_array_equal(flat(), expected)


def test_seeds_and_chains_differ():
    draws = quick().fit(X).conditional_components_
    assert not np.array_equal(draws[0], draws[1])
    assert not np.array_equal(flat(random_state=1), flat())
    more = quick(n_chains=3).fit(X).posterior_["log_likelihood"]
    np.testing.assert_allclose(quick().fit(X).posterior_["log_likelihood"], more[:2], rtol=1e-12)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array, np.int64])
def test_draws_do_not_depend_on_the_layout(kind):
    np.testing.assert_array_equal(quick().fit(kind(X)).posterior_.flat, flat())


def test_pickled_and_cloned(fitted):
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(X), fitted.transform(X))
    assert again.posterior_.labels[61] == fitted.posterior_.labels[61] == "components[1, x1]"
    np.testing.assert_array_equal(clone(fitted).fit(X).components_, fitted.components_)


@pytest.mark.slow
def test_in_a_pipeline_and_a_grid_search():
    texts = ["cat dog cat pet", "dog pet dog", "bond bank bond", "bank cash bond cash"] * 6
    pipeline = make_pipeline(CountVectorizer(), BayesianLDA(2, n_chains=1, random_state=0))
    grid = {"bayesianlda__n_components": [1, 2]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(texts)
    assert search.best_params_ == {"bayesianlda__n_components": 2}
    assert list(search.best_estimator_.get_feature_names_out()) == ["bayesianlda0", "bayesianlda1"]
    counts, lda = search.best_estimator_[0], search.best_estimator_[1]
    frame = lda.set_output(transform="pandas").transform(counts.transform(texts))
    assert list(frame.columns) == ["bayesianlda0", "bayesianlda1"]


def test_names_of_columns():
    frame = pd.DataFrame(X, columns=[f"word{j}" for j in range(60)])
    model = quick().fit(frame)
    assert all(word.startswith("word") for words in model.top_words() for word in words)
    assert model.posterior_.labels[0] == "components[0, word0]"
    assert list(model.posterior_.labels[-2:]) == ["topic_share[3]", "log_likelihood"]
    assert len(model.posterior_.labels) == model.posterior_.flat.shape[2]


# -- the posterior --------------------------------------------------------------------------------


def test_summaries_of_topics_that_are_not_aligned_are_refused(fitted):
    posterior = copy.copy(fitted.posterior_)
    posterior.aligned = False
    for summary in (
        lambda: posterior.mean("components"), lambda: posterior.std("topic_share"),
        lambda: posterior.quantile(0.5), lambda: posterior.interval(0.9, "components"),
        lambda: posterior.summary(),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="not aligned"):
            summary()
    assert np.isfinite(posterior.mean("log_likelihood"))


def test_alignment_undoes_a_renumbering(fitted):
    rng = np.random.default_rng(0)
    orders = np.array([[rng.permutation(4) for _ in range(10)] for _ in range(3)])
    mixed = fitted.posterior_.renumbered(orders)
    mixed.aligned = False
    found = mixed.align()
    k = align_topics(found.mean("components"), fitted.posterior_.mean("components"))
    for name in ("components", "topic_share"):
        np.testing.assert_array_equal(found[name][:, :, k], fitted.posterior_[name])


def test_summary_has_a_row_for_each_topic(fitted):
    summary = fitted.posterior_.summary()
    assert summary.labels == (*(f"topic_share[{k}]" for k in range(4)), "log_likelihood")
    np.testing.assert_allclose(summary["mean"][:4], fitted.topic_share_)
    np.testing.assert_allclose(fitted.topic_share_.sum(), 1.0)


# -- what it refuses ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"n_components": 0}, "n_components"), ({"n_components": 40_000}, "32767"),
        ({"n_components": 2.5}, "n_components"), ({"doc_topic_prior": 0.0}, "doc_topic_prior"),
        ({"doc_topic_prior": [0.1, 0.1]}, "array of 4"), ({"topic_word_prior": -1}, "positive"),
        ({"topic_word_prior": "a"}, "topic_word_prior"), ({"sampler": "hmc"}, "sampler"),
        ({"n_draws": True}, "n_draws"), ({"thin": 0}, "thin"), ({"n_jobs": 0}, "n_jobs"),
        ({"random_state": "a"}, "random_state"),
    ],
)  # fmt: skip
def test_parameters_that_are_refused(parameters, text):
    with pytest.raises(InvalidParameterError, match=text):
        quick(**parameters).fit(X)


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        (-X, "Negative values in data passed to BayesianLDA"), (0 * X, "X has no words"),
        (np.where(X > 3, np.nan, X), "contains NaN"), (np.ma.masked_array(X), "masked array"),
    ],
)  # fmt: skip
def test_data_that_are_refused(bad, text):
    kind = ValueError if text != "masked array" else TypeError
    with pytest.raises(kind, match=text):
        quick().fit(bad)


def test_vocabularies_must_agree(fitted):
    with pytest.raises(ValueError, match="X has 59 features, but BayesianLDA is expecting 60"):
        fitted.transform(X[:, 1:])


def test_words_that_do_not_occur_are_fine():
    model = quick().fit(np.concatenate([X, np.zeros((300, 1))], axis=1))
    assert np.isfinite(model.components_).all()
    assert (model.components_[:, -1] < 1e-3).all()


def test_fractional_counts_are_tokens_of_less_weight():
    model = quick().fit(0.5 * X)
    order = align_topics(model.components_, TOPICS)
    assert np.abs(model.components_[order] - TOPICS).sum(axis=1).max() / 2 < 0.1
    np.testing.assert_allclose(model.topic_masses_.sum(axis=2), 0.5 * X.sum() + 12.0)
    with pytest.raises(ValueError, match="whole"):
        model.perplexity(0.5 * X, method="left_to_right")


def test_a_failed_fit_leaves_no_trace():
    model = quick()
    with pytest.raises(ValueError, match="no words"):
        model.fit(0 * X)
    assert not [name for name in vars(model) if name.endswith("_")]


# -- steps with batches ---------------------------------------------------------------------------

STEPS = {"n_warmup": 40, "thin": 5, "batch_size": 50, "n_draws": 5}
FORMS = [
    ("cir", "saga"),
    *(pytest.param(*form, marks=pytest.mark.slow) for form in (
        ("cir", "control_variate"), ("sgld", "minibatch"), ("cir", "minibatch"),
        ("sgrld", "saga"), ("sgld", "control_variate"),
    )),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:sampler='sgrld'")
@pytest.mark.parametrize(("sampler", "gradient"), FORMS)
@pytest.mark.slow
def test_known_topics_are_found_with_batches(sampler, gradient):
    model = quick(sampler=sampler, gradient=gradient, **STEPS).fit(X)
    distances = topic_distances(model.components_[align_topics(model.components_, TOPICS)], TOPICS)
    assert distances.max() < 0.07
    assert (model.sampler_, model.gradient_, model.batch_size_) == (sampler, gradient, 50)
    assert model.n_steps_ == 65
    assert 0.0 < model.step_size_ < np.inf
    np.testing.assert_array_equal(
        model.posterior_.flat,
        quick(sampler=sampler, gradient=gradient, **STEPS, n_jobs=2).fit(X).posterior_.flat,
    )


@pytest.mark.slow
def test_batches_and_sweeps_have_the_same_posterior():
    options = {"n_draws": 40, "thin": 6, "n_chains": 2}
    sweeps = quick(**options).fit(X)
    steps = quick(sampler="cir", batch_size=50, n_warmup=60, **options).fit(X)
    assert steps.gradient_ == "saga"
    common = sweeps.components_ > 0.02
    order = align_topics(steps.components_, sweeps.components_)
    z = (steps.components_[order] - sweeps.components_) / sweeps.components_std_
    ratio = steps.components_std_[order] / sweeps.components_std_
    assert np.sqrt((z[common] ** 2).mean()) < 0.25
    assert abs(np.median(ratio[common]) - 1.0) < 0.05


@pytest.mark.parametrize(
    "given", [{"gradient": "saga"}, {"batch_size": 10}, {"step_size": 0.1}, {"sampler": "cir"}]
)
def test_what_only_batches_have_makes_auto_take_them(given):
    model = quick(**given).fit(X[:50])
    assert model.sampler_ == "cir"
    assert quick().fit(X[:50]).sampler_ == "gibbs"
    if "sampler" not in given:
        (name,) = given
        with pytest.raises(ValueError, match=f"{name}=.* cannot be used with sampler='gibbs'"):
            quick(sampler="gibbs", **given).fit(X)


def test_large_corpora_are_for_batches(monkeypatch):
    monkeypatch.setattr(sampling, "GIBBS_TOKENS", 1000)
    model = quick().fit(X)
    assert (model.sampler_, model.gradient_) == ("cir", "minibatch")


@pytest.mark.slow
def test_mirrors_warn_of_their_bias():
    with pytest.warns(UserWarning, match="sgrld.* badly biased for a topic_word_prior as small"):
        quick(sampler="sgrld", **STEPS).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quick(sampler="sgrld", topic_word_prior=0.5, **STEPS).fit(X)


@pytest.mark.slow
def test_steps_that_are_too_large_are_named():
    with pytest.raises(SamplerDivergedError, match="chain 0 diverged at step"):
        quick(sampler="sgrld", topic_word_prior=0.5, step_size=1e6, n_warmup=5000).fit(X)
    model = quick(sampler="cir", step_size=1e6, **STEPS).fit(X)  # exact at every step
    assert np.isfinite(model.posterior_.flat).all()


@pytest.mark.slow
def test_grid_search_over_step_sizes():
    search = GridSearchCV(quick(**STEPS | {"n_chains": 1}), {"step_size": [0.01, 0.5]}, cv=2)
    assert search.fit(X).best_params_["step_size"] in (0.01, 0.5)


# -- streams --------------------------------------------------------------------------------------


@pytest.fixture
def short_buffer(monkeypatch):
    monkeypatch.setattr(streaming, "BUFFER", 400)


def streamed(documents, part, **options):
    model = quick(n_warmup="auto", thin="auto", **options)
    for first in range(0, documents.shape[0], part):
        model.partial_fit(documents[first : first + part])
    return model


@pytest.mark.parametrize("part", [pytest.param(90, marks=pytest.mark.slow), 1500])
def test_topics_of_a_stream_are_found(short_buffer, part):
    documents, topics, _ = made_corpus(3000, seed=2)
    model = streamed(documents, part)
    distances = topic_distances(model.components_[align_topics(model.components_, topics)], topics)
    assert distances.max() < 0.03
    assert model.n_documents_ == 3000
    assert model._stream.buffer is None  # nothing grows with the stream
    total = documents.sum() + 4 * 60 * 0.05
    np.testing.assert_allclose(model.topic_masses_.sum(axis=2), total, rtol=1e-9)
    assert model.transform(documents[:3]).shape == (3, 4)
    assert model.posterior_["components"].shape == (2, 3, 4, 60)


def test_small_streams_are_kept(short_buffer):
    model = streamed(X, 37)
    assert model._stream.buffer.n_documents == 300
    order = align_topics(model.components_, TOPICS)
    assert topic_distances(model.components_[order], TOPICS).max() < 0.05


def test_streams_repeat_themselves(short_buffer):
    documents, _, _ = made_corpus(600, seed=2)
    once, again, threads = (streamed(documents, 250, n_jobs=n) for n in (None, None, 2))
    np.testing.assert_array_equal(once.posterior_.flat, again.posterior_.flat)
    np.testing.assert_array_equal(once.posterior_.flat, threads.posterior_.flat)
    copied = pickle.loads(pickle.dumps(once))
    np.testing.assert_array_equal(
        copied.partial_fit(documents[:50]).posterior_.flat,
        once.partial_fit(documents[:50]).posterior_.flat,
    )


def test_a_part_of_a_stream_may_have_no_words(short_buffer):
    model = streamed(X, 150)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(np.zeros((3, 60), int))
    assert model.n_documents_ == 303
    assert np.isfinite(model.components_).all()


def test_more_words_than_fit_into_memory():
    with pytest.raises(MemoryError, match=r"topics of 1e\+15 words do not fit.*no amounts"):
        quick().fit(np.full((5, 2), 10**14))


@pytest.mark.slow
def test_fit_ends_a_stream(short_buffer):
    model = streamed(X, 150)
    assert model.fit(X).n_documents_ == 300
    assert model.partial_fit(X[:40]).n_documents_ == 40


def test_what_streams_refuse():
    model = streamed(X[:50], 50)
    with pytest.raises(
        ValueError, match="n_components was 4 at the first call of partial_fit and is 5 now"
    ):
        clone_with_stream(model, n_components=5).partial_fit(X)
    for name, before, now in (("doc_topic_prior", 0.1, 5.0), ("topic_word_prior", 0.05, 0.2)):
        changed = clone_with_stream(model, **{name: now})
        with pytest.raises(ValueError, match=f"{name} was {before} at the first call .* is {now} "):
            changed.partial_fit(X)
    with pytest.raises(ValueError, match="X has 59 features, but BayesianLDA is expecting 60"):
        model.partial_fit(X[:, 1:])
    for given in ({"sampler": "gibbs"}, {"gradient": "minibatch"}, {"thin": 3}, {"n_warmup": 3}):
        plain = BayesianLDA(4, **given)
        with pytest.raises(ValueError, match="cannot be used with partial_fit"):
            plain.partial_fit(X)
    with pytest.raises(ValueError, match="no words"):
        BayesianLDA(4).partial_fit(0 * X)


def clone_with_stream(model, **parameters):
    return copy.deepcopy(model).set_params(**parameters)


@pytest.mark.slow
def test_weights_that_are_no_counts_are_told():
    rng = np.random.default_rng(0)
    counts = rng.poisson(1.0, size=(20, 8))
    weights = TfidfTransformer().fit_transform(counts)
    model = BayesianLDA(2, n_draws=5, n_warmup=2, random_state=0)
    with pytest.warns(UserWarning, match="tf-idf and other weights") as told:
        model.fit(weights)
    if hasattr(model, "set_callbacks"):  # scikit-learn 1.9 calls fit by one function more
        assert told[0].filename == __file__
    few = counts.astype(float)
    few[0] *= 0.5
    for X in (counts, few):
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message="Most entries")
            model.fit(X)


# -- few draws, and prices -------------------------------------------------------------------------


@pytest.mark.slow
def test_chains_in_different_modes_are_told_by_the_default_number_of_draws():
    """Counts without any topics: each chain finds some of its own, and stays with them."""
    rng = np.random.default_rng(0)
    rows = rng.poisson(rng.gamma(0.3, 1.0, (40, 30)) * 300.0)
    with pytest.warns(SamplerConvergenceWarning, match="Chains may be in different modes"):
        BayesianLDA(random_state=0).fit(rows)


@pytest.mark.parametrize(
    ("n_tokens", "n_draws", "plan"),
    [
        (3, 5, (1000, 200, 5)), (10_000, 5, (500, 100, 5)), (70_000, 5, (70, 14, 5)),
        (100_000, 5, (50, 10, 5)), (10_000_000, 5, (50, 10, 5)), (3, 20, (250, 50, 20)),
        (3, 500, (50, 10, 500)), (3, 5000, (50, 10, 5000)), (0, 1, (1000, 200, 1)),
    ],
)  # fmt: skip
def test_sweeps_over_few_tokens_are_many(n_tokens, n_draws, plan):
    assert sampling.gibbs_plan(n_tokens, n_draws) == plan


@pytest.mark.slow
def test_the_price_of_many_tokens_is_told(monkeypatch):
    told = []
    monkeypatch.setattr(sampling, "warn_if_long", lambda seconds, *_: told.append(seconds))
    for options in ({}, {"n_warmup": 64}, {"sampler": "cir"}, {"n_chains": 4}):
        quick(**options).fit(X)
    tokens, visit = X.sum(), sampling.VISIT_SECONDS + 4 * sampling.TOPIC_SECONDS
    assert told[0] == pytest.approx(2 * tokens * 26 * visit)
    assert told[1] == pytest.approx(2 * tokens * 70 * visit)
    steps = 26 * sampling.VISITS + 50  # a batch is all 300 documents, on which chains start too
    assert told[2] == pytest.approx(2 * tokens * steps * visit)
    assert told[3] == pytest.approx(2.0 * told[0])
