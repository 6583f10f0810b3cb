"""Stochastic-gradient samplers of factorisations: gradients, the lazy prior, and their laws."""

import re
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import ratings
from numpy.testing import assert_allclose
from scipy import linalg

from skbayes_sg import BayesianPMF
from skbayes_sg.exceptions import InvalidParameterError, SamplerDivergedError, StepSizeWarning
from skbayes_sg.factorisation import (
    FixedNormal,
    Gibbs,
    NormalGamma,
    NormalWishart,
    SparseSGHMC,
    SparseSGLD,
    UserBlockSGLD,
    sparse,
)
from skbayes_sg.factorisation.chains import RatingModel, new_chain, predictions
from skbayes_sg.factorisation.lazy import bring_rows
from skbayes_sg.factorisation.problem import make_problem
from skbayes_sg.factorisation.request import FactorisationRequest
from skbayes_sg.factorisation.scores import scores
from skbayes_sg.factorisation.sparse import curvatures, likelihood_gradient, sparse_pass
from skbayes_sg.factorisation.start import narrowed, warm_start
from skbayes_sg.factorisation.user_block import _user_steps

SIZES = [(6,), (6, 5), (5, 4, 3)]
NEVER = 1e300  # patience


def scene(sizes, seed=0):
    n = min(25, int(np.prod(sizes)))
    problem = ratings.made_problem(sizes, n, seed=seed)
    return problem, ratings.made_chain(problem, seed)


def log_likelihood(F, problem, chain):
    omega = ratings.precision_of_ratings(problem, chain.noise)
    return -0.5 * (omega * (problem.y - ratings.expected(F, problem.codes)) ** 2).sum()


def likelihood_by_complex_step(F, problem, chain):
    def f(flat):
        return log_likelihood(flat.reshape(F.shape), problem, chain)

    return ratings.complex_step(f, F.ravel()).reshape(F.shape)


def one_pass(problem, chain, starts, B, *, c=0.6, step=0.3, kinetic=False, caution=-np.inf,
             centre=None, patience=NEVER, table=None):  # fmt: skip
    """Change of F (or of the velocity) by one pass of steps without the prior."""
    scaled = np.append(np.ones(problem.rank), c)
    F, velocity = chain.F / scaled, np.zeros_like(chain.F)
    before, H = F.copy(), np.linspace(1.0, 3.0, problem.n_rows)
    centre = np.empty((0, problem.width)) if centre is None else centre / scaled
    C, D = problem.n_columns, problem.width
    table = np.empty((0, C, D)) if table is None else table
    sparse_pass(
        (problem.codes, problem.y, table, np.empty(0, bool)), np.asarray(starts, np.int64), B,
        (F, velocity, np.zeros(problem.n_rows, np.int64)), 5, step, (kinetic, 1.0),
        (chain.noise.w, float(chain.noise.alpha)), c, H,
        (np.stack([np.eye(D)] * C), np.ones((C, D)), np.zeros((C, D)), False, centre),
        (patience, caution), chain.rng,
    )  # fmt: skip
    return (velocity if kinetic else F - before), H, scaled


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("kinetic", [False, True])
def test_a_step_of_all_ratings_follows_the_gradient(sizes, kinetic):
    problem, chain = scene(sizes)
    moved, H, scaled = one_pass(problem, chain, [3], problem.n_ratings, kinetic=kinetic)
    g = likelihood_by_complex_step(chain.F, problem, chain) * scaled
    assert_allclose(moved, (1.0 if kinetic else 0.5) * 0.3 * g / H[:, None], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("B", [1, 4])
def test_steps_are_unbiased_and_touch_no_other_rows(sizes, B):
    problem, chain = scene(sizes)
    N = problem.n_ratings
    moves = []
    for start in range(N):
        moved, H, scaled = one_pass(problem, chain, [start], B)
        batch = problem.codes[(start + np.arange(B)) % N]
        assert not moved[np.setdiff1d(np.arange(problem.n_rows), batch)].any()
        moves.append(moved)
    g = likelihood_by_complex_step(chain.F, problem, chain) * scaled
    assert_allclose(np.mean(moves, axis=0), 0.5 * 0.3 * g / H[:, None], rtol=1e-9, atol=1e-12)


def test_control_variates_are_differences_to_the_centre():
    problem, chain = scene((6, 5))
    centre = chain.F + 0.3
    there = ratings.made_chain(problem)
    there.F[:] = centre
    plain, _, _ = one_pass(problem, chain, [2], 4)
    at_centre, _, _ = one_pass(problem, there, [2], 4)
    moved, _, _ = one_pass(problem, chain, [2], 4, centre=centre)
    assert_allclose(moved, plain - at_centre, rtol=1e-9, atol=1e-12)
    assert not one_pass(problem, chain, [2], 4, centre=chain.F)[0].any()


def naive_saga(problem, chain, starts, B, step, c, H, prior, table):
    """Steps as the formulas say, rating by rating: positions, table and means of the rows."""
    V, lam, means = prior
    F, table, own = chain.F / np.append(np.ones(problem.rank), c), table.copy(), means.copy()
    last, rng = np.full(problem.n_rows, 5), np.random.default_rng(7)
    omega, N = ratings.precision_of_ratings(problem, chain.noise), problem.n_ratings
    for now, start in enumerate(starts, 5):
        batch = (start + np.arange(B)) % N
        pairs = [(i, a) for n in batch for i, a in enumerate(problem.codes[n])]

        def bring(until, pairs=pairs):
            for i, a in pairs:
                if last[a] < until:
                    decay = np.exp(-0.5 * step * (until - last[a]) * lam[i] / H[a])
                    noise = np.sqrt((1.0 - decay**2) / lam[i]) * rng.standard_normal(len(decay))
                    F[a] = own[a] + V[i] @ (decay * (V[i].T @ (F[a] - own[a])) + noise)
                    last[a] = until

        bring(now)
        kicks = []
        for n in batch:  # all gradients are of positions before the kicks
            rows = F[problem.codes[n]]
            factors = rows[:, :-1].sum(axis=0) - rows[:, :-1]
            f = c * rows[:, -1].sum() + 0.5 * (factors * rows[:, :-1]).sum()
            g = (problem.y[n] - f) * np.column_stack([factors, np.full(len(rows), c)])
            kept = n % 3 > 0
            kicks.append((n, omega[n] * (g - table[n]), omega[n] * (g * kept - table[n])))
            table[n] = g * kept
        for n, kick, _ in kicks:
            for i, a in enumerate(problem.codes[n]):
                F[a] += 0.5 * step * N / B / H[a] * kick[i]
        bring(now + 1)
        for n, _, change in kicks:
            for i, a in enumerate(problem.codes[n]):
                own[a] += V[i] @ ((V[i].T @ change[i]) / lam[i])
    return F, table, own


@pytest.mark.parametrize("sizes", SIZES)
def test_saga_follows_a_naive_statement(sizes):
    problem, chain = scene(sizes)
    N, C, D = problem.n_ratings, problem.n_columns, problem.width
    rng, c, step, H = np.random.default_rng(3), 0.6, 0.3, np.linspace(1.0, 3.0, problem.n_rows)
    lam, V = np.linalg.eigh(np.stack([A @ A.T + np.eye(D) for A in rng.normal(size=(C, D, D))]))
    means, table = rng.normal(size=(problem.n_rows, D)), rng.normal(size=(N, C, D))
    starts, B = np.array([2, 0, min(2, N - 1)]), min(4, N)
    wanted = naive_saga(problem, chain, starts, B, step, c, H, (V, lam, means), table)
    F, last = chain.F / np.append(np.ones(problem.rank), c), np.full(problem.n_rows, 5)
    kept = np.arange(N) % 3 > 0
    sparse_pass(
        (problem.codes, problem.y, table, kept), starts, B, (F, np.zeros_like(F), last), 5, step,
        (False, 1.0), (chain.noise.w, float(chain.noise.alpha)), c, H,
        (V, lam, means, True, np.empty((0, D))), (NEVER, -np.inf), np.random.default_rng(7),
    )  # fmt: skip
    for found, value in zip((F, table, means), wanted, strict=True):
        assert_allclose(found, value, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("sampler", [SparseSGLD(gradient="saga"), SparseSGHMC(gradient="saga")])
def test_means_of_the_rows_follow_the_table(sampler):
    problem = ratings.made_problem((10, 12), 90, seed=0)
    chain = ratings.made_chain(problem, 0)
    model = RatingModel(problem, FixedNormal(2.0), "known", 1.7)
    sampler.new_memory(model, chain)
    sampler.take_steps(model, chain, 0.01, True, 5)
    assert len(chain.memory.table) == 0  # the warm-up remembers nothing
    sampler.take_steps(model, chain, 0.01, False, 400)
    table, c = chain.memory.table, chain.memory.c
    many = problem.counts()[chain.memory.codes].min(axis=1) >= 8
    assert 10 < many.sum() < 80
    assert np.array_equal(np.abs(table).sum(axis=(1, 2)) > 0.0, many)
    scaled, G = np.append(np.ones(problem.rank), c), np.zeros_like(chain.F)
    omega = 1.7 * chain.noise.w[chain.memory.codes].prod(axis=1)
    for n, rows in enumerate(chain.memory.codes):
        G[rows] += omega[n] * table[n]
    _, (V, lam, moved, _, _) = sampler.take_steps(model, chain, 0.4, False, 0)
    for column in range(2):
        rows = problem.rows(column)
        pull = (moved[rows] - chain.hyper[column][0] / scaled) @ V[column] * lam[column]
        assert_allclose(pull @ V[column].T, G[rows], rtol=1e-9)
    _, (_, _, moved, _, _) = sampler.take_steps(model, chain, 0.01, False, 40)
    anew = sampler._prior(model, chain, False)[2]
    assert_allclose(moved, anew, rtol=1e-9)


def test_saga_asks_for_no_more_memory_than_there_is():
    problem, chain = scene((6, 5))
    model = RatingModel(problem, FixedNormal())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("skbayes_sg.factorisation.sparse.MOST_NUMBERS", 25 * 2 * 4 - 1)
        with pytest.raises(InvalidParameterError, match="gradients of all ratings"):
            SparseSGLD(gradient="saga").begin(model, chain)


@pytest.mark.parametrize(
    ("caution", "step"), [(1.0, 0.3), (0.0, 0.3), (0.0, 1e-4)], ids=["implicit", "long", "short"]
)
def test_steps_do_not_overshoot(caution, step):
    problem, chain = scene((6, 5))
    plain, H, _ = one_pass(problem, chain, [2], 1, step=step)
    short, _, _ = one_pass(problem, chain, [2], 1, step=step, caution=caution)
    u, i = problem.codes[2]
    omega = ratings.precision_of_ratings(problem, chain.noise)[2]
    z = [np.append(chain.F[own, :-1], 0.6) for own in (i, u)]
    beyond = 0.5 * step * 25 * omega * (z[0] @ z[0] / H[u] + z[1] @ z[1] / H[i])
    assert (beyond > 1.0) == (step == 0.3)
    assert_allclose(short * max(1.0, caution + beyond), plain, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    "parameters", [{}, {"gradient": "control_variate"}, {"gradient": "saga"}, {"sampler": "sghmc"}]
)
def test_one_rating_a_category_does_not_diverge(parameters):
    """Ten columns in which every value occurs once: steps that are not shortened overshoot."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 10)), rng.standard_normal(200)
    options = {"sampler": "sgld", "n_draws": 20, "n_chains": 2, "thin": 2, "n_warmup": 40}
    options |= {"random_state": 0} | parameters
    fit = BayesianPMF(rank=2, **options).fit(X, y)
    assert np.abs(fit.predict(X)).max() < 20.0 * np.abs(y).max()


def test_gradient_of_all_ratings():
    for sizes in SIZES:
        problem, chain = scene(sizes)
        g = np.zeros_like(chain.F)
        args = problem.codes, problem.y, chain.F, chain.noise.w, float(chain.noise.alpha), 1.0
        likelihood_gradient(*args, g)
        assert_allclose(g, likelihood_by_complex_step(chain.F, problem, chain), rtol=1e-9)


def test_scores_of_a_state():
    for sizes in SIZES:
        problem, chain = scene(sizes)
        found = scores(RatingModel(problem, FixedNormal()), chain)
        expected = likelihood_by_complex_step(chain.F, problem, chain)
        for column, (mean, precision) in enumerate(chain.hyper):
            for row in range(*problem.offsets[column : column + 2]):
                expected[row] -= precision @ (chain.F[row] - mean)
        assert_allclose(found, expected, rtol=1e-9)


def test_step_of_a_user():
    problem, chain = scene((6, 5))
    mean, precision = chain.hyper[0]
    F, grouped, H = chain.F.copy(), problem.groups[0], np.linspace(1.0, 3.0, 11)
    user, D = 2, problem.width
    _user_steps(
        grouped, np.array([user]), (F, np.zeros(11, np.int64)), 5, 0.3,
        (chain.noise.w, np.sqrt(chain.noise.w), float(chain.noise.alpha)), 1.0, H,
        (np.stack([np.eye(D)] * 2), np.ones((2, D)), np.zeros((2, D))),
        (precision @ mean, precision), (NEVER, False), np.zeros((1, D)), chain.rng,
    )  # fmt: skip
    mine = problem.codes[:, 0] == user
    alone = make_problem(problem.codes[mine], problem.y[mine], problem.offsets, problem.rank)
    expected = chain.F.copy()
    g = ratings.gradient(chain.F, problem, chain)[user]
    z = np.column_stack([chain.F[problem.codes[mine, 1], :-1], np.ones(mine.sum())])
    omega = ratings.precision_of_ratings(problem, chain.noise)[mine]
    expected[user] += linalg.solve(precision + (z.T * omega) @ z, g)  # Newton: the mean
    pull = likelihood_by_complex_step(expected, alone, chain)
    pull[user] = 0.0
    assert_allclose(F, expected + 0.5 * 0.3 * 6 * pull / H[:, None], rtol=1e-8)


# -- the prior, lazily ----------------------------------------------------------------------------


def settled(kinetic, x, v, time, seed=0, gamma=1.3):
    """A row after some time under N(mean, Λ⁻¹), and what that law is made of."""
    rng = np.random.default_rng(1)
    A, mean = rng.standard_normal((2, 2)), rng.standard_normal((1, 2))
    precision = A @ A.T + np.eye(2)
    lam, V = np.linalg.eigh(precision)
    F, velocity, H = np.array([x]), np.array([v]), np.array([1.7])
    state, prior = (F, velocity, np.array([4])), (V, lam, mean, False)
    rng = np.random.Generator(np.random.SFC64(seed))
    bring_rows(0, 1, state, 9, time / 5, (kinetic, gamma), H, prior, rng)
    return F[0], velocity[0], mean[0], precision, V, 1.7


@pytest.mark.parametrize("time", [1e-3, 0.7, 5.0, 1e4])
def test_a_row_left_alone_moves_by_its_prior_exactly(time):
    x = np.array([1.0, -2.0])
    moved, _, mean, precision, V, H = settled(False, x, np.zeros(2), time)
    c = np.exp(-0.5 * time * np.linalg.eigvalsh(precision) / H)
    noise = np.random.Generator(np.random.SFC64(0)).standard_normal(2)
    drift = mean + linalg.expm(-0.5 * time / H * precision) @ (x - mean)
    spread = V @ (np.sqrt((1.0 - c**2) / np.linalg.eigvalsh(precision)) * noise)
    assert_allclose(moved, drift + spread, rtol=1e-9)


@pytest.mark.parametrize("time", [1e-3, 0.7, 5.0, 1e3])
@pytest.mark.parametrize("gamma", [0.3, 1.3, 6.0])
def test_a_row_with_a_velocity_moves_by_its_prior_exactly(time, gamma):
    x, v = np.array([1.0, -2.0]), np.array([0.4, 0.9])
    moved, speed, mean, precision, V, H = settled(True, x, v, time, gamma=gamma)
    lam = np.linalg.eigvalsh(precision)
    z = np.random.Generator(np.random.SFC64(0)).standard_normal((2, 2))
    new = np.empty((2, 2))
    for j in range(2):
        E = linalg.expm(time * np.array([[0.0, 1.0], [-lam[j] / H, -gamma]]))
        stationary = np.diag([1.0 / lam[j], 1.0 / H])
        S = stationary - E @ stationary @ E.T
        drift = E @ [V[:, j] @ (x - mean), V[:, j] @ v]
        new[j] = drift + linalg.cholesky(S, lower=True) @ z[j]
    assert_allclose(moved, mean + V @ new[:, 0], rtol=1e-5, atol=1e-6)
    assert_allclose(speed, V @ new[:, 1], rtol=1e-5, atol=1e-6)


def test_curvatures_are_mean_precisions():
    problem = ratings.made_problem((6, 5), 20, seed=0)
    chain = ratings.made_chain(problem, 0)
    chain.noise.w[:] = 1.0
    c = 0.5
    chain.F[:, :-1] = np.sign(chain.F[:, :-1]) * 0.7  # all of the same size: the mean is exact
    H = curvatures(RatingModel(problem, FixedNormal()), chain, c)
    scaled = np.append(np.ones(3), c)
    counts = problem.counts()
    assert counts.min() < 4 < counts.max()
    for row in (counts.argmin(), counts.argmax()):
        column = int(row >= 6)
        others = problem.codes[problem.codes[:, column] == row, 1 - column]
        z = np.column_stack([chain.F[others, :-1], np.full(len(others), c)])
        full = chain.hyper[column][1] * np.outer(scaled, scaled) + chain.noise.alpha * z.T @ z
        if len(others) < 4:  # as if there were as many ratings as entries
            full = chain.hyper[column][1] * np.outer(scaled, scaled)
            full += 4 * chain.noise.alpha * np.diag([0.49, 0.49, 0.49, 0.25])
        assert H[row] == pytest.approx(np.trace(full) / 4)


# -- starts ---------------------------------------------------------------------------------------


def test_narrowed_problems_have_the_ratings_of_their_users():
    problem, _ = scene((6, 5))
    users = np.array([1, 4])
    small, rows = narrowed(problem, users)
    mine = np.isin(problem.codes[:, 0], users)
    assert np.array_equal(rows[small.codes], problem.codes[mine])
    assert np.array_equal(small.y, problem.y[mine])
    assert small.offsets.tolist() == [0, 2, 7]


def test_a_start_on_a_share_is_near_the_posterior():
    rng = np.random.default_rng(0)
    user, item = np.divmod(rng.permutation(150 * 20)[:2000], 20)
    P, Q = rng.standard_normal((150, 2)), rng.standard_normal((20, 2))
    y = (P[user] * Q[item]).sum(axis=1) + 0.3 * rng.standard_normal(2000)
    codes = np.column_stack([user, item + 150]).astype(np.int32)
    problem = make_problem(codes, y / y.std(), np.array([0, 150, 170]), 2)
    errors = {}
    for share in (0.1, "auto"):
        chain = new_chain(RatingModel(problem, NormalWishart()), 0, 0)
        warm_start(RatingModel(problem, NormalWishart()), chain, share=share)
        errors[share] = np.std(predictions(chain.F[codes]) - problem.y)
    assert errors[0.1] < 0.5
    assert errors["auto"] < 0.4


# -- laws -----------------------------------------------------------------------------------------


def tiny():
    """20 users, of whom the last has no rating, and 15 items."""
    rng = np.random.default_rng(0)
    user, item = np.divmod(rng.permutation(19 * 15)[:100], 15)
    P, Q = 0.7 * rng.standard_normal((20, 2)), 0.7 * rng.standard_normal((15, 2))
    y = (P[user] * Q[item]).sum(axis=1) + 0.6 * rng.standard_normal(100)
    codes = np.column_stack([user, item + 20]).astype(np.int32)
    return make_problem(codes, y, np.array([0, 20, 35]), 2)


N_DRAWS = 20_000
CELLS = np.stack(np.meshgrid(np.arange(20), np.arange(20, 35), indexing="ij"), -1).reshape(-1, 2)


def traced(sampler, n_draws, noise="known", seed=0):
    """Predictions of all cells: (n_draws, 300)."""
    model = RatingModel(tiny(), FixedNormal(2.0), noise, 2.5)
    chain = new_chain(model, seed, 0)
    chain.n_warmup = 200
    sampler.begin(model, chain)
    found = np.empty((n_draws, 300))
    for k in range(200 + n_draws):
        sampler.sweep(model, chain)
        chain.passes += 1
        found[max(0, k - 200)] = predictions(chain.F[CELLS])
    return found


class PriorTwice(SparseSGLD):
    """A planted bug: the prior acts twice."""

    def _prior(self, model, chain, warming):
        V, lam, *rest = super()._prior(model, chain, warming)
        return V, 2.0 * lam, *rest


class NoScale(SparseSGLD):
    """A planted bug: the gradient of a batch is not scaled up to all ratings."""

    def _steps(self, model, chain, h, warming):
        alpha, B = chain.noise.alpha, self.ratings_a_step(model.problem)
        chain.noise.alpha = alpha * B / model.problem.n_ratings
        super()._steps(model, chain, h, warming)
        chain.noise.alpha = alpha


def compared(sampler, reference, n_draws):
    """Median sd ratio of warm and of cold cells, rms distance of means in sd."""
    found = traced(sampler, n_draws, seed=1)
    ratio = found.std(axis=0) / reference.std(axis=0)
    off = (found.mean(axis=0) - reference.mean(axis=0)) / reference.std(axis=0)
    return np.median(ratio[:285]), np.median(ratio[285:]), np.sqrt((off**2).mean())


@pytest.fixture(scope="module")
def reference():
    return traced(Gibbs(), N_DRAWS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "sampler",
    [
        SparseSGLD(), SparseSGLD(step_size=0.2, patience=0.0), SparseSGHMC(), UserBlockSGLD(),
        SparseSGLD(gradient="control_variate"), SparseSGLD(gradient="saga"),
    ],
    ids=str,
)  # fmt: skip
def test_stationary_laws(sampler, reference):
    warm, cold, off = compared(sampler, reference, N_DRAWS)
    assert 0.97 < warm < 1.05
    assert 0.95 < cold < 1.05
    assert off < 0.1


@pytest.mark.slow
def test_gradients_remembered_in_small_tables_do_not_overshoot():
    # With the long steps of the warm-up, or with rows of hardly more ratings than entries, they do.
    for seed in range(3):
        found = traced(SparseSGLD(gradient="saga"), 1000, seed=seed)
        assert np.abs(found).max() < 20.0


def thin(rank=8, n_users=60, n_items=12):
    """Two ratings of each user: fewer than a row has entries."""
    rng = np.random.default_rng(0)
    user = np.repeat(np.arange(n_users), 2)
    item = np.concatenate([rng.permutation(n_items)[:2] for _ in range(n_users)])
    P, Q = (rng.standard_normal((n, rank)) / rank**0.25 for n in (n_users, n_items))
    y = (P[user] * Q[item]).sum(axis=1) + 0.5 * rng.standard_normal(len(user))
    codes = np.column_stack([user, item + n_users]).astype(np.int32)
    return make_problem(codes, y / y.std(), np.array([0, n_users, n_users + n_items]), rank)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_rows_with_few_ratings_are_nearly_as_wide_as_they_should_be(monkeypatch):
    problem = thin()

    def spread(sampler, n_draws):
        chain = new_chain(model := RatingModel(problem, FixedNormal(2.0), "known", 2.5), 0, 0)
        chain.n_warmup = 500
        sampler.begin(model, chain)
        found = np.empty((n_draws, problem.n_ratings))
        for k in range(500 + n_draws):
            sampler.sweep(model, chain)
            chain.passes += 1
            found[max(0, k - 500)] = predictions(chain.F[problem.codes])
        return found.std(axis=0)

    right = spread(Gibbs(), 6000)
    error = np.sqrt(np.mean((spread(SparseSGLD(), 12_000) / right) ** 2)) - 1.0
    assert 0.0 < error < 0.11
    mean_precisions = without_floor(problem)
    monkeypatch.setattr(sparse, "curvatures", mean_precisions)
    assert np.sqrt(np.mean((spread(SparseSGLD(), 12_000) / right) ** 2)) - 1.0 > 1.3 * error


def without_floor(problem):
    """A planted bug: mean precisions also for rows with fewer ratings than entries."""
    counts = problem.counts()

    def of_as_few(model, chain, c):
        H, none = curvatures(model, chain, c), np.zeros_like(counts)
        same = SimpleNamespace(rank=problem.rank, n_columns=2, n_rows=problem.n_rows,
                               rows=problem.rows, counts=lambda: none)  # fmt: skip
        prior = curvatures(SimpleNamespace(problem=same), chain, c)
        return prior + (H - prior) * counts / np.maximum(counts, problem.rank + 1)

    return of_as_few


@pytest.mark.slow
def test_few_ratings_for_all_numbers_are_told():
    """30 users, 20 items and two factors: 150 numbers."""
    g = np.random.default_rng(0)
    pairs = np.stack(np.divmod(g.permutation(600), 20), axis=1)
    few = {"rank": 2, "n_draws": 10, "random_state": 0}
    with pytest.warns(StepSizeWarning, match=r"only 1\.7 ratings for each number"):
        BayesianPMF(sampler="sgld", **few).fit(pairs[:250], g.standard_normal(250))
    with warnings.catch_warnings():
        warnings.simplefilter("error", StepSizeWarning)
        BayesianPMF(**few).fit(pairs[:250], g.standard_normal(250))
        BayesianPMF(sampler="sgld", noise=0.5, **few).fit(pairs[:250], g.standard_normal(250))
        BayesianPMF(sampler="sgld", **few).fit(pairs[:500], g.standard_normal(500))


@pytest.mark.slow
def test_rows_with_few_ratings_are_told():
    with pytest.warns(StepSizeWarning, match="63 of 72 categories have fewer ratings than the 9"):
        SparseSGLD().check(thin())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SparseSGLD().check(tiny())
        Gibbs().check(thin())
    rows = np.column_stack([thin().codes[:, 0], thin().codes[:, 1]])
    with pytest.warns(StepSizeWarning, match="fewer ratings") as told:
        BayesianPMF(rank=8, sampler="sgld", n_draws=10, random_state=0).fit(rows, thin().y)
    assert [w.filename for w in told if w.category is StepSizeWarning] == [__file__]


@pytest.mark.slow
@pytest.mark.parametrize("bug", [PriorTwice(), NoScale()], ids=str)
def test_wrong_laws_are_seen(bug, reference):
    warm, cold, off = compared(bug, reference, N_DRAWS)
    assert not (0.95 < warm < 1.05 and 0.95 < cold < 1.05 and off < 0.1)


# -- the estimator --------------------------------------------------------------------------------


def table():
    rng = np.random.default_rng(0)
    user, item = np.divmod(rng.permutation(1200)[:900], 30)
    P, Q = rng.standard_normal((40, 2)), rng.standard_normal((30, 2))
    y = 3.0 + (P[user] * Q[item]).sum(axis=1) + 0.3 * rng.standard_normal(900)
    return np.column_stack([user, item]), y


X, Y = table()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skbayes_sg.exceptions.SamplerConvergenceWarning")
@pytest.mark.parametrize(
    "options",
    [
        {"sampler": "sgld"}, {"sampler": "sghmc", "gradient": "minibatch"},
        {"sampler": "user_block"}, {"gradient": "control_variate"},
        {"gradient": "saga"}, {"sampler": "sghmc", "gradient": "saga"},
        {"step_size": 0.8, "batch_size": 0.01}, {"sampler": Gibbs(share=0.2)},
    ],
    ids=str,
)  # fmt: skip
def test_samplers(options):
    options = {"rank": 3, "thin": 1, "random_state": 0} | options
    model = BayesianPMF(**options).fit(X[:700], Y[:700])
    assert model.score(X[700:], Y[700:]) > 0.85
    again = BayesianPMF(n_jobs=2, **options).fit(X[:700], Y[:700])
    assert np.array_equal(again.draws_["F"], model.draws_["F"])
    assert model.sampler_ == options.get("sampler", "sgld") or model.sampler_ == "gibbs"
    if "gradient" in options:
        assert FactorisationRequest(model).sampler.gradient == options["gradient"]
    if "batch_size" in options:
        assert (model.batch_size_, model.step_size_, model.n_warmup_) == (7, 0.8, 20)


@pytest.mark.parametrize(
    "options",
    [
        {"sampler": "gibbs", "step_size": 0.1}, {"sampler": "user_block", "batch_size": 5},
        {"sampler": SparseSGLD(), "gradient": "minibatch"},
        {"sampler": "user_block", "gradient": "control_variate"},
    ],
    ids=str,
)  # fmt: skip
def test_what_does_not_go_together(options):
    with pytest.raises(ValueError, match="cannot be used with sampler="):
        BayesianPMF(**options).fit(X, Y)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"step_size": 4.0}, "'step_size' parameter of BayesianPMF"),
        ({"batch_size": 0}, "'batch_size' parameter of BayesianPMF"),
        ({"gradient": "svrg"}, "'gradient' parameter of BayesianPMF"),
        ({"sampler": SparseSGLD(gradient="svrg")}, "'gradient' parameter of SparseSGLD"),
        ({"sampler": SparseSGLD(step_size=-1)}, "'step_size' parameter of SparseSGLD"),
        ({"sampler": SparseSGHMC(batch_size=1.5)}, "'batch_size' parameter of SparseSGHMC"),
        ({"sampler": Gibbs(share=0.0)}, "'share' parameter of Gibbs"),
        *(
            ({"sampler": kind(patience=wrong)}, f"'patience' parameter of {kind.__name__}")
            for kind in (SparseSGLD, SparseSGHMC, UserBlockSGLD)
            for wrong in (-3, "x", True, np.nan, np.inf)
        ),
        *(
            ({"sampler": SparseSGHMC(friction=wrong)}, "'friction' parameter of SparseSGHMC")
            for wrong in (-1, 0, "x", True, np.nan, np.inf, None)
        ),
    ],
    ids=str,
)
def test_parameters_of_samplers(options, text):
    with pytest.raises(InvalidParameterError, match=text):
        BayesianPMF(**options).fit(X, Y)


@pytest.mark.filterwarnings("error")  # few ratings: the sampler would warn of them
def test_parameters_of_samplers_are_refused_before_anything_is_told():
    with pytest.raises(InvalidParameterError, match="'patience'"):
        BayesianPMF(sampler=SparseSGLD(patience=-1)).fit([[0, 0], [0, 1], [1, 0]], [1, 2, 3])


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (NormalWishart, "beta"), (NormalWishart, "scale"), (NormalGamma, "beta"),
        (NormalGamma, "shape"), (NormalGamma, "rate"), (FixedNormal, "precision"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("wrong", [-1, 0, "x", True, np.nan, np.inf, None], ids=repr)
def test_parameters_of_hyperpriors(kind, name, wrong):
    said = f"{name!r} parameter of {kind.__name__} must be a positive finite number. Got {wrong!r}"
    with pytest.raises(InvalidParameterError, match=said):
        BayesianPMF(prior=kind(**{name: wrong})).fit(X, Y)


class Runaway(Gibbs):
    """Rows grow beyond all bounds."""

    def sweep(self, model, chain, n_jobs=None):
        chain.F *= 100.0


class Singular(Gibbs):
    """Rows have no covariance that has a root."""

    def sweep(self, model, chain, n_jobs=None):
        np.linalg.cholesky(np.zeros((2, 2)))


@pytest.mark.parametrize(("sampler", "passes"), [(Runaway(), 4), (Singular(), 0)])
def test_divergence_is_told(sampler, passes):
    model = BayesianPMF(sampler=sampler, random_state=0)
    message = rf"chain 0 diverged in pass {passes} with sampler={sampler!r}"
    with pytest.raises(SamplerDivergedError, match=re.escape(message)):
        model.fit(X, Y)
    assert not hasattr(model, "draws_")
