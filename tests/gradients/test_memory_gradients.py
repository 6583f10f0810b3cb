"""Gradients that remember: SAGA-LD, SVRG-LD and vrSG-MCMC, exactly.

Given what is remembered, an estimate is a finite sum over all batches (`test_gradient_estimators`);
here it is remembered from elsewhere, changes, and has a stationary law of its own. The table of
SAGA is in single precision: formulas round the remembered terms likewise.
"""

import copy
import itertools

import cases
import numpy as np
import probe
import pytest
from batch_laws import N, enumerable, law, moments
from memories import kernels_of, seeds_of_anchors
from scenes import close, make_scene, position, pulled_back
from scipy import stats

from skbayes_sg.gradients import SAGA, SVRG, saga

EXACT = 1e-12
models = pytest.mark.parametrize("model", ["logistic", "softmax"])
softmax_is_slow = pytest.mark.parametrize(
    "model", ["logistic", pytest.param("softmax", marks=pytest.mark.slow)]
)
schemes = pytest.mark.parametrize("scheme", cases.SUBSAMPLING)
FULL_PASS, ONLINE, ANCHOR = SAGA(), SAGA(table="online"), SVRG(refresh=7)


def single(x):
    """Rounded to single precision."""
    return x.astype(np.float32).astype(np.float64)


def remembered_rows(scene, theta):
    """α_i in θ: the gradients of the rows at a point, of terms in single precision."""
    posterior = scene.posterior
    terms = single(posterior.case.derivative(posterior.predictors(theta), posterior.y))
    return np.einsum("nk,nkj->nj", posterior.weight[:, None] * terms, posterior.jacobian)


def rows_of_table(scene, memory):
    """α_i in θ of the table as it is; zero for rows that were not seen."""
    table, posterior = np.nan_to_num(probe.remembered(memory).table), scene.posterior
    return np.einsum("nk,nkj->nj", posterior.weight[:, None] * table, posterior.jacobian)


def law_of_estimates(kernels, memory, z, batches):
    """Mean and covariance over all batches, and the mean of the table afterwards."""
    chances, estimates, tables = np.array(list(batches.values())), [], []
    for rows, coefficients in batches:
        after = copy.deepcopy(memory)
        estimates.append(kernels.estimate(z, rows, coefficients, memory=after))
        tables.append(probe.remembered(after).table)
    return *moments(np.array(estimates), chances), np.tensordot(chances, np.array(tables), 1)


# -- any table, any anchor ------------------------------------------------------------------------


@pytest.mark.slow_except("blocks", "uniform_without_replacement")
@softmax_is_slow
@schemes
@pytest.mark.parametrize("gradient", [FULL_PASS, ANCHOR], ids=["saga", "svrg"])
def test_mean_and_covariance_for_a_memory_of_elsewhere(gradient, model, scheme):
    scene = make_scene(model, "student_t")
    frame, posterior, rule = scene.frame(kind="hessian"), scene.posterior, cases.SUBSAMPLING[scheme]
    theta, past = scene.point(), scene.point(5)
    there = posterior.row_gradients(past)
    there = remembered_rows(scene, past) if gradient is FULL_PASS else there
    a = pulled_back(frame, posterior.row_gradients(theta) - there)
    expected, size = pulled_back(frame, posterior.gradient(theta)), np.abs(a).sum()
    for n in [n for s, n in enumerable() if s == scheme and n < 5]:
        kernels = kernels_of(frame, gradient, scheme, n)
        memory = kernels.memory_at(position(frame, past))
        found = law_of_estimates(kernels, memory, position(frame, theta), law(scheme, n))
        close(found[0], expected, EXACT, posterior.scale(theta))
        close(found[1], rule.covariance(a, n, rule.chances(N)), EXACT, size**2)


def online_rows(scene, theta, memory, seen):
    """a_i of an online table: rows never seen are taken for the mean of those that were."""
    rows = scene.posterior.row_gradients(theta)
    if not seen:
        return rows
    alpha = rows_of_table(scene, memory)
    alpha[np.setdiff1d(np.arange(N), seen)] = alpha[seen].mean(axis=0)
    return rows - alpha


@pytest.mark.slow_except("3", "blocks")
@models
@schemes
@pytest.mark.parametrize("seen", [[], [4], [0, 2, 5], [0, 1, 2, 3, 4, 5]], ids=len)
def test_online_table_for_any_rows_seen(model, scheme, seen):
    scene = make_scene(model, "student_t")
    frame, posterior, rule = scene.frame(kind="hessian"), scene.posterior, cases.SUBSAMPLING[scheme]
    theta, expected = scene.point(), pulled_back(frame, posterior.gradient(scene.point()))
    for n in [n for s, n in enumerable() if s == scheme and n < 4]:
        kernels = kernels_of(frame, ONLINE, scheme, n)
        memory = kernels.blank_memory()
        for place, i in enumerate(seen):  # each at a place of its own
            z = position(frame, scene.point(20 + place))
            kernels.estimate(z, [i], [1.0], memory=memory)
        assert probe.remembered(memory).n_seen == len(seen)
        a = pulled_back(frame, online_rows(scene, theta, memory, seen))
        found = law_of_estimates(kernels, memory, position(frame, theta), law(scheme, n))
        close(found[0], expected, EXACT, posterior.scale(theta))
        close(found[1], rule.covariance(a, n, rule.chances(N)), EXACT, np.abs(a).sum() ** 2)


@pytest.mark.slow_for("5")
@models
@pytest.mark.parametrize("n", [1, 2, 5])
def test_table_after_a_step(model, n):
    # Without replacement the expected table is (1 - n/N) α + (n/N) t.
    scene = make_scene(model)
    frame, posterior, theta = scene.frame(), scene.posterior, scene.point()
    kernels = kernels_of(frame, FULL_PASS, "uniform_without_replacement", n)
    memory = kernels.memory_at(position(frame, scene.point(5)))
    batches = law("uniform_without_replacement", n)
    table = law_of_estimates(kernels, memory, position(frame, theta), batches)[2]
    now = single(posterior.case.derivative(posterior.predictors(theta), posterior.y))
    before = probe.remembered(memory).table
    close(table, (1.0 - n / N) * before + n / N * now, EXACT)


def test_a_row_that_is_drawn_twice_changes_once():
    scene = make_scene("softmax")
    frame = scene.frame()
    kernels = kernels_of(frame, ONLINE, n=3)
    memory, theta = kernels.blank_memory(), scene.point()
    kernels.estimate(position(frame, scene.point(3)), [0, 5], [3.0, 3.0], memory=memory)
    kernels.estimate(position(frame, theta), [2, 2, 5], [2.0, 2.0, 2.0], memory=memory)
    alpha = np.zeros((N, scene.posterior.dimension))
    alpha[0] = remembered_rows(scene, scene.point(3))[0]
    alpha[[2, 5]] = remembered_rows(scene, theta)[[2, 5]]
    found = probe.remembered(memory)
    assert found.n_seen == 3
    close(rows_of_table(scene, memory), alpha, EXACT)
    close(found.total, alpha.sum(axis=0), EXACT)


@models
def test_many_blocks_of_rows(model, monkeypatch):
    # A table that is filled panel by panel, and written by a batch of several blocks with repeats.
    monkeypatch.setattr(saga, "PANEL", 300)
    scene, rng = make_scene(model, n_rows=700), np.random.default_rng(5)
    frame, theta = scene.frame(), scene.point()
    kernels = kernels_of(frame, FULL_PASS, n=600)
    memory, alpha = (
        kernels.memory_at(np.zeros(kernels.dimension)),
        remembered_rows(scene, frame.centre.theta),
    )
    close(rows_of_table(scene, memory), alpha, EXACT)
    close(probe.remembered(memory).total, alpha.sum(axis=0), EXACT, np.abs(alpha).sum())
    rows = rng.integers(0, 700, 600)
    kernels.estimate(position(frame, theta), rows, np.full(600, 7.0 / 6.0), memory=memory)
    alpha[rows] = remembered_rows(scene, theta)[rows]
    close(rows_of_table(scene, memory), alpha, EXACT)
    close(probe.remembered(memory).total, alpha.sum(axis=0), EXACT, np.abs(alpha).sum())


@models
def test_an_anchor_of_many_blocks(model):
    scene = make_scene(model, n_rows=700)
    kernels = kernels_of(scene.frame(), SVRG(refresh=7, anchor_size=600), n=5)
    found = probe.remembered(kernels.memory_at(np.zeros(kernels.dimension)))
    g = scene.posterior.row_gradients(kernels.frame.centre.theta)
    assert len(set(found.rows)) == 600
    expected = 700 / 600 * g[found.rows].sum(axis=0)
    close(found.total, expected, EXACT, 2.0 * np.abs(g).sum())


class WrittenFirst:
    """The estimate of SAGA by a naive formula, with the table as it is after the step."""

    def __init__(self, scene, theta, alpha):
        self.scene, self.theta, self.alpha = scene, theta, alpha

    def __call__(self, rows, coefficients):
        g, alpha = self.scene.posterior.row_gradients(self.theta), self.alpha.copy()
        alpha[list(rows)] = g[list(rows)]
        differences = (g - alpha)[list(rows)]
        return alpha.sum(axis=0) + np.array(coefficients) @ differences


@pytest.mark.slow_for("5")
@models
@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_table_that_is_written_before_it_is_used_is_biased(model, n):
    # By -(1 - n/N) Σ(g_i - α_i) exactly; the library's estimate is not (the mutant of that name).
    scene = make_scene(model, "flat")
    frame, theta = scene.frame(), scene.point()
    kernels = kernels_of(frame, FULL_PASS, "uniform_without_replacement", n)
    memory = kernels.memory_at(position(frame, scene.point(5)))
    g, alpha = scene.posterior.row_gradients(theta), rows_of_table(scene, memory)
    batches = law("uniform_without_replacement", n)
    wrong = WrittenFirst(scene, theta, alpha)
    mean = sum(chance * wrong(*batch) for batch, chance in batches.items())
    bias = -(1.0 - n / N) * (g - alpha).sum(axis=0)
    close(mean - g.sum(axis=0), bias, EXACT, np.abs(g).sum())
    assert np.abs(bias).max() > 0.05
    right = law_of_estimates(kernels, memory, position(frame, theta), batches)[0]
    close(right, scene.posterior.gradient(theta), EXACT, np.abs(g).sum())


@pytest.mark.slow
@softmax_is_slow
def test_running_total_does_not_drift(model):
    scene = make_scene(model)
    frame, rng = scene.frame(), np.random.default_rng(0)
    kernels = kernels_of(frame, FULL_PASS, n=2)
    memory, z = kernels.memory_at(np.zeros(kernels.dimension)), np.zeros(kernels.dimension)
    for _ in range(10_000):
        z = 0.9 * z + rng.normal(size=len(z))
        kernels.estimate(z, rng.integers(0, N, 2), [3.0, 3.0], memory=memory)
    alpha = rows_of_table(scene, memory)
    close(probe.remembered(memory).total, alpha.sum(axis=0), 1e-9, np.abs(alpha).sum())


# -- an anchor of some rows -----------------------------------------------------------------------


@pytest.mark.slow_for("4-2")
@softmax_is_slow
@pytest.mark.parametrize(("n1", "n2"), [(2, 1), (4, 2), pytest.param(5, 4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("scheme", ["uniform_without_replacement", "uniform", "preferential"])
def test_anchors_of_some_rows(scheme, model, n1, n2):
    # Given J the bias is the error of the anchor; over (J, I) there is none, and the covariances
    # of both add up.
    if law(scheme, n2) is None:
        pytest.skip("too many batches")
    scene, p = make_scene(model, "student_t"), cases.SUBSAMPLING[scheme].chances(N)
    frame, posterior = scene.frame(kind="hessian"), scene.posterior
    theta, past = scene.point(), scene.point(5)
    there = pulled_back(frame, posterior.row_gradients(past))
    d = pulled_back(frame, posterior.row_gradients(theta)) - there
    full, scale = pulled_back(frame, posterior.gradient(theta)), posterior.scale(theta)
    kernels = kernels_of(frame, SVRG(refresh=7, anchor_size=n1), scheme, n2)
    means, within = [], []
    for rows, seed in seeds_of_anchors(kernels).items():
        memory = kernels.memory_at(position(frame, past), seed)
        found = law_of_estimates(kernels, memory, position(frame, theta), law(scheme, n2))
        error = N / n1 * there[list(rows)].sum(axis=0) - there.sum(axis=0)
        close(found[0] - full, error, EXACT, scale)
        means.append(found[0])
        within.append(found[1])
    anchors = cases.SUBSAMPLING["uniform_without_replacement"].covariance(there, n1, None)
    mean, between = moments(np.array(means), np.full(len(means), 1.0 / len(means)))
    expected = anchors + cases.SUBSAMPLING[scheme].covariance(d, n2, p)
    close(mean, full, EXACT, scale)
    close(between + np.mean(within, axis=0), expected, EXACT, np.abs(there).sum() ** 2 * N)


@pytest.mark.slow
def test_all_anchors_are_equally_likely():
    # And consecutive ones, of which each begins with the list of rows of the last, independent.
    kernels = kernels_of(make_scene("logistic").frame(), SVRG(refresh=1, anchor_size=4), n=1)
    memory, pairs = kernels.blank_memory(), list(itertools.combinations(range(N), 4))
    drawn = []
    for _ in range(6_000):
        kernels.estimate(np.zeros(3), [], [], memory=memory)
        drawn.append(pairs.index(tuple(sorted(probe.remembered(memory).rows))))
    table = np.zeros((15, 15))
    np.add.at(table, (drawn[:-1], drawn[1:]), 1)
    assert stats.chisquare(np.bincount(drawn, minlength=15)).pvalue > 1e-6
    assert stats.chisquare(table.ravel()).pvalue > 1e-6


# -- refreshing -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("refresh", "period"), [(None, 3), (1, 1), (4, 4)])
def test_the_anchor_is_refreshed_every_so_many_steps(refresh, period):
    scene = make_scene("logistic")
    frame = scene.frame(kind="hessian")
    kernels = kernels_of(frame, SVRG(refresh=refresh), n=2)  # N/n = 3
    memory = kernels.blank_memory()
    for t in range(13):
        z = np.full(3, float(t))
        kernels.estimate(z, [0, 1], [3.0, 3.0], memory=memory)
        found, there = probe.remembered(memory), frame.theta(np.full(3, float(t - t % period)))
        close(found.anchor, there, EXACT, np.abs(there).max())
        total = scene.posterior.row_gradients(there).sum(axis=0)
        close(found.total, total, EXACT, scene.posterior.scale(there))


def paths(frame, gradients, n_batch=2, full=False):
    """Paths of θ on the same rows and noise, of gradients that begin with a blank memory."""
    rng, found = np.random.default_rng(0), []
    batches = [rng.permutation(N) if full else rng.integers(0, N, n_batch) for _ in range(30)]
    noises = rng.normal(size=(30, frame.target.n_parameters))
    for gradient in gradients:
        kernels = kernels_of(frame, gradient, n=len(batches[0]))
        state, memory = kernels.start(np.full(kernels.dimension, 0.5)), kernels.blank_memory()
        if isinstance(gradient, SAGA) and gradient.table == "full_pass":
            memory = kernels.memory_at(state[0])
        found.append([])
        for rows, noise in zip(batches, noises, strict=True):
            coefficients = np.full(len(rows), N / len(rows))
            state = kernels.step(state, rows, coefficients, noise, 0.2, memory=memory)
            found[-1].append(frame.theta(state[0]))
    return np.array(found)


@models
def test_all_rows_make_every_gradient_the_full_one_path_by_path(model):
    frame = make_scene(model, "student_t").frame(kind="hessian")
    gradients = [cases.GRADIENTS[g].gradient for g in ("full", "minibatch", "control_variate")]
    gradients += [SAGA(), ONLINE, SVRG(), SVRG(refresh=4), SVRG(refresh=4, anchor_size=N)]
    found = paths(frame, gradients, full=True)
    for path in found[1:]:
        close(path, found[0], EXACT, np.abs(found[0]).max())


@models
def test_anchors_that_are_always_fresh_are_the_full_gradient(model):
    frame = make_scene(model, "student_t").frame(kind="hessian")
    fresh, stale = paths(frame, [SVRG(refresh=1), SVRG(refresh=4)])
    kernels = probe.Probe(frame)
    rng, state, expected = np.random.default_rng(0), np.full((1, kernels.dimension), 0.5), []
    for _ in range(30):
        rng.integers(0, N, 2)  # as `paths` does, the rows of all steps first
    for noise in rng.normal(size=(30, kernels.dimension)):
        state = kernels.step(state, *kernels.all_rows, noise, 0.2)
        expected.append(frame.theta(state[0]))
    close(fresh, np.array(expected), EXACT, np.abs(expected).max())
    assert np.abs(stale - fresh).max() > 1e-3


@models
def test_an_anchor_of_all_rows_by_number(model):
    frame = make_scene(model, "student_t").frame(kind="hessian")
    one, two, some = paths(
        frame, [SVRG(refresh=4), SVRG(refresh=4, anchor_size=N), SVRG(refresh=4, anchor_size=5)]
    )
    np.testing.assert_array_equal(one, two)
    assert np.abs(some - one).max() > 1e-3


# -- chains ---------------------------------------------------------------------------------------


GRADIENTS = {
    "saga": FULL_PASS,
    "online": ONLINE,
    "svrg": SVRG(refresh=7),
    "vrsg": SVRG(refresh=7, anchor_size=9),
}
remembering = pytest.mark.parametrize("gradient", GRADIENTS)


def chain_kernels(gradient):
    """Thirty rows, three a step."""
    frame = make_scene("logistic", n_rows=30).frame(kind="hessian")
    return kernels_of(frame, GRADIENTS[gradient], n=3)


@remembering
def test_draws_do_not_depend_on_how_a_run_is_split(gradient):
    # 60 steps in one call of the kernel, against calls of 1 to 13 steps; and in two threads.
    kernels, options = chain_kernels(gradient), {"step_size": cases.schedules.Constant(0.2)}
    start = np.full((2, 3), 0.4)
    whole, _ = kernels.sample(start, 3, 60, n_jobs=1, **options)
    for sizes in ([1] * 60, [13, 5, 1, 11, 30], [7, 7, 46]):
        np.testing.assert_array_equal(kernels.sample_split(start, 3, 60, sizes, **options), whole)
    threads, _ = kernels.sample(start, 3, 60, n_jobs=2, **options)
    np.testing.assert_array_equal(threads, whole)


@remembering
def test_chains_follow_a_naive_statement(gradient):
    # Whole chains against single steps on the same streams of rows and noise.
    kernels, start = chain_kernels(gradient), np.array([0.5, -0.3, 0.1])
    draws, chains = kernels.sample(start, 12, 25, step_size=cases.schedules.Constant(0.2))
    children = np.random.SeedSequence(entropy=12, spawn_key=(0,)).spawn(3)
    rows, noise, _ = (np.random.Generator(np.random.SFC64(c)) for c in children)
    memory = kernels.setup.gradient.memory(kernels.setup, rows)
    if gradient == "saga":
        memory = kernels.memory_at(start)
    state = kernels.start(start)
    for t in range(25):
        batch = (rows.random(3) * 30).astype(int)
        xi = noise.standard_normal(3)
        state = kernels.step(state, batch, [10.0, 10.0, 10.0], xi, 0.2, memory=memory)
        close(draws[0, t], state[0], 1e-11)
    one, two = probe.remembered(memory), probe.remembered(chains[0].memory)
    for name in ("table", "total", "anchor", "n_seen", "left"):
        found, expected = (np.nan_to_num(getattr(m, name)) for m in (two, one))
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


@remembering
def test_twins_of_coupled_chains_go_on_with_other_anchors(gradient):
    kernels = chain_kernels(gradient)
    _, (chain,) = kernels.sample(np.zeros(3), 3, 5, step_size=cases.schedules.Constant(0.2))
    twin = probe.twin(chain)
    for one, two in zip(chain.memory, twin.memory, strict=True):
        if isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, two)
            assert one.size == 0 or not np.shares_memory(one, two)
    assert (twin.memory.rng.random(50) != chain.memory.rng.random(50)).all()
    assert (twin.rng_rows.random(50) != chain.rng_rows.random(50)).all()
