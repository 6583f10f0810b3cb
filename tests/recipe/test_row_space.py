"""Posteriors with many more columns than rows: the map back, its law, and where it is used."""

import warnings

import numpy as np
import pytest
from problems import binary
from scipy import sparse

from skbayes_sg import BayesianLinearRegression, BayesianLogisticRegression
from skbayes_sg._base import streams
from skbayes_sg.diagnostics import convergence
from skbayes_sg.dynamics import HMC, Exact
from skbayes_sg.engine.target import Target
from skbayes_sg.models import LinearKnownNoise, Logistic, Softmax
from skbayes_sg.priors import Laplace, Normal
from skbayes_sg.recipe import row_space
from skbayes_sg.recipe.request import Request
from skbayes_sg.recipe.row_space import RowSpace, is_wide


def wide(model, n=12, d=320, prior=None, as_sparse=False, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.3)
    X[3] = X[2]  # of less than full rank
    K = model.n_linear
    y = {
        "Logistic": lambda: (np.arange(n) % 2).astype(float),
        "Softmax": lambda: (np.arange(n) % K).astype(float),
        "LinearKnownNoise": lambda: rng.normal(size=n),
    }[type(model).__name__]()
    scale = np.tile(rng.uniform(0.5, 2.0, d), K)
    table = np.concatenate(
        [(prior or Normal(scale=scale))._table((K * d,)), Normal(scale=3.0)._table((K,))]
    )
    X = sparse.csr_array(X) if as_sparse else X
    return Target(X, y, np.ones(n), model, table)


@pytest.fixture(params=["with V", "without V"])
def form(request, monkeypatch):
    """Both forms of the decomposition, whatever the size of X."""
    if request.param == "without V":
        monkeypatch.setattr(row_space, "DENSE", 0.0)
        monkeypatch.setattr(row_space, "SPARSE", 0.0)


@pytest.mark.parametrize("as_sparse", [False, True], ids=["dense", "sparse"])
def test_draws_are_the_formula(as_sparse, form):
    target = wide(Softmax(3), as_sparse=as_sparse)
    space = RowSpace(target)
    r, d, K = space.rank, target.n_features, 3
    assert r == 11
    S = (target.X.toarray() if as_sparse else target.X) * space.scale
    V = S.T @ space.svd.U / space.svd.root
    assert np.allclose(V.T @ V, np.eye(r), atol=1e-10)
    a = np.random.default_rng(1).normal(size=(2, 5, K * r + K))
    found, rng = space.draws(a, streams.of_complement(7)), streams.of_complement(7)
    assert found.shape == (2, 5, K * d + K)
    assert np.array_equal(found[..., K * d :], a[..., K * r :])
    for c in range(K):
        epsilon, own = rng.standard_normal((2, 5, d)), a[..., c * r : (c + 1) * r]
        z = epsilon + (own - epsilon @ V) @ V.T
        assert np.allclose(found[..., c * d : (c + 1) * d], space.scale * z, atol=1e-10)


@pytest.mark.parametrize(
    "model", [Logistic(), Softmax(3), LinearKnownNoise()], ids=["logistic", "softmax", "linear"]
)
def test_the_density_is_that_of_all_coefficients(model):
    """U(θ) is U of what the rows see, and half the squared length of what they do not."""
    target = wide(model)
    space = RowSpace(target)
    d, K = target.n_features, model.n_linear
    V = (target.X * space.scale).T @ space.svd.U / space.svd.root
    rng, constants = np.random.default_rng(2), []
    for _ in range(4):
        theta = rng.normal(size=K * d + K)
        z = theta[: K * d].reshape(K, d) / space.scale
        a = z @ V
        reduced = np.concatenate([a.ravel(), theta[K * d :]])
        unseen = 0.5 * ((z - a @ V.T) ** 2).sum()
        pairs = (target, theta), (space.reduced_target, reduced)
        whole, seen = (t.value_and_gradient(p)[0] for t, p in pairs)
        constants.append(whole - seen - unseen)
    assert np.ptp(constants) < 1e-8


def test_it_is_used_where_it_pays_and_is_exact():
    request = Request()
    assert is_wide(wide(Logistic()), request)
    assert not is_wide(wide(Logistic(), d=299), request)
    assert not is_wide(wide(Logistic(), n=200), request)
    assert not is_wide(wide(Logistic(), prior=Laplace(scale=1.0)), request)
    assert not is_wide(wide(Logistic(), prior=Normal(loc=1.0)), request)
    assert not is_wide(wide(Logistic()), Request(batch_size=5))
    assert not is_wide(wide(Logistic()), Request(keep=10))
    assert is_wide(wide(LinearKnownNoise()), Request(sampler=Exact()))
    assert not is_wide(wide(Logistic()), Request(sampler=HMC()))
    # Where linear regression has too many columns for a closed form, it has one with fewer rows.
    assert not is_wide(wide(LinearKnownNoise(), n=1100, d=1950), request)
    assert is_wide(wide(LinearKnownNoise(), n=1100, d=2050), request)
    assert not is_wide(wide(Logistic(), n=1100, d=2050), request)
    assert is_wide(wide(LinearKnownNoise(), n=2000, d=2050), request)
    assert not is_wide(wide(LinearKnownNoise(), n=2100, d=2050), request)
    unequal = wide(Softmax(3), prior=Normal(scale=np.linspace(1.0, 2.0, 960)))
    assert not is_wide(unequal, request)


@pytest.mark.slow
def test_matrices_and_arrays_of_scipy_give_the_same_draws():
    """Text is a `csr_matrix`, for which X * v is a product of matrices."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((450, 5000), density=0.002, rng=rng, format="csr")
    y = rng.integers(0, 2, 450)
    one, other = (
        BayesianLogisticRegression(n_draws=20, random_state=0).fit(form(X), y)
        for form in (sparse.csr_matrix, sparse.csr_array)
    )
    assert np.array_equal(one.posterior_.flat, other.posterior_.flat)
    assert np.array_equal(one.predict_proba(sparse.csr_matrix(X)), other.predict_proba(X))


def test_a_fit_has_the_posterior_of_a_single_direction():
    """All rows along one direction: a posterior of one parameter, by quadrature."""
    direction = np.linspace(-1.0, 2.0, 400)
    t, y = np.repeat([0.05, -0.02, 0.08], 10), np.arange(30) % 3 > 0
    model = BayesianLogisticRegression(prior=Normal(scale=1.5), fit_intercept=False, random_state=0)
    model.fit(np.outer(t, direction), y)
    assert "span of the rows" in model.seconds_
    along = model.posterior_["coef"].reshape(-1, 400) @ direction
    grid = np.linspace(-400.0, 400.0, 20_001)
    eta = np.outer(grid, t)
    spread = 1.5 * np.linalg.norm(direction)
    log_p = (y * eta - np.logaddexp(0.0, eta)).sum(axis=1) - 0.5 * (grid / spread) ** 2
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    mean = p @ grid
    sd = np.sqrt(p @ (grid - mean) ** 2)
    assert abs(along.mean() - mean) < 5.0 * sd / np.sqrt(len(along))
    assert abs(along.std() / sd - 1.0) < 5.0 / np.sqrt(2.0 * len(along))
    other = np.zeros(400)
    other[0] = 1.0
    other -= direction * (other @ direction) / (direction @ direction)
    unseen = model.posterior_["coef"].reshape(-1, 400) @ other
    assert abs(unseen.std() / (1.5 * np.linalg.norm(other)) - 1.0) < 5.0 / np.sqrt(2.0 * len(along))


def test_the_request_in_the_span_has_the_parameters_that_are_reported():
    space = RowSpace(wide(Logistic()))
    request = Request(seed=7, parameters=lambda theta: 2.0 * theta)
    a = np.random.default_rng(1).normal(size=(2, 5, space.rank + 1))
    theta = space.draws(a, streams.of_complement(7))
    np.testing.assert_array_equal(space.request(request).parameters(a), 2.0 * theta)


@pytest.mark.slow
def test_chains_are_judged_by_the_parameters_that_are_reported():
    """Whose sizes are those that `check` finds, and not those of coordinates of the span."""
    X, y = binary(40, 320)
    options = {"sampler": "auto", "n_draws": 60, "prior": Normal(scale=20.0), "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = BayesianLogisticRegression(**options).fit(X, y)
    assert "span of the rows" in model.seconds_
    assert model.sampler_ == "hmc"
    least, *_ = convergence.worst_of_chains(model.posterior_.flat)
    assert model.diagnostics_["min_ess"] == pytest.approx(least)


@pytest.mark.parametrize("as_sparse", [False, True], ids=["dense", "sparse"])
def test_a_column_that_exceeds_all_others_leaves_the_others(as_sparse, form):
    """Squares of singular values of 1e10 and 1 would leave nothing of the second."""
    target = wide(Logistic())
    X = target.X.copy()
    X[:, 0] = 1e10 * np.random.default_rng(3).normal(size=len(X))
    X = sparse.csr_array(X) if as_sparse else X
    space = RowSpace(Target(X, target.labels(), target.weight, Logistic(), target.prior))
    assert space.rank == 12
    a = np.random.default_rng(1).normal(size=(1, 5, 13))
    theta = space.draws(a, streams.of_complement(7))
    seen = (space.svd.U * space.svd.root) @ a[0, :, :12].T
    np.testing.assert_allclose(X @ theta[0, :, :320].T, seen, rtol=1e-6, atol=1e-3)


@pytest.mark.parametrize("n_heavy", [1, 6])
def test_columns_that_exceed_others_may_be_most_of_those_that_are_not_zero(n_heavy, form):
    target = wide(Logistic())
    X = np.zeros_like(target.X)
    X[:, :10] = np.random.default_rng(3).normal(size=(len(X), 10))
    X[:, :n_heavy] *= 1e8
    space = RowSpace(Target(X, target.labels(), target.weight, Logistic(), target.prior))
    assert space.rank == 10


def test_evidence_of_coefficients_is_the_worst_in_the_span_and_others_have_their_own():
    space = RowSpace(wide(Softmax(3)))
    value = np.append(np.arange(3.0 * space.rank), [70.0, 80.0, 90.0])
    found = space._worst(value)
    assert (found[:960] == 3.0 * space.rank - 1.0).all()
    assert found[960:].tolist() == [70.0, 80.0, 90.0]


@pytest.mark.parametrize("sampler", [pytest.param("auto", marks=pytest.mark.slow), "exact"])
def test_linear_regression_has_its_closed_form_in_the_span(sampler):
    """More columns than the closed form allows: means and sds by the textbook, noise known."""
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(20, 2200)), rng.normal(size=20)
    options = {"prior": Normal(scale=0.1), "fit_intercept": False, "noise": 0.5, "random_state": 0}
    model = BayesianLinearRegression(sampler=sampler, **options).fit(X, y)
    assert model.sampler_ == "exact"
    gain = 0.01 * X.T @ np.linalg.inv(0.01 * X @ X.T + 0.25 * np.eye(20))
    mean, draws = gain @ y, model.posterior_["coef"].reshape(-1, 2200)
    sd = np.sqrt(0.01 - 0.01 * np.einsum("ij,ji->i", gain, X))
    z = (draws.mean(axis=0) - mean) / sd * np.sqrt(len(draws))
    assert abs((z**2).mean() - 1.0) < 0.15
    ratio = draws.var(axis=0, ddof=1) / sd**2
    assert abs(ratio.mean() - 1.0) < 0.005
    assert abs(ratio - 1.0).max() < 5.0 * np.sqrt(2.0 / len(draws))


@pytest.mark.slow
def test_the_noise_is_that_of_the_closed_form_with_all_columns():
    """310 columns have both: in the span, and with a request that the span is not used for."""
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(40, 310)), rng.normal(size=40)
    options = {"prior": Normal(scale=0.05), "n_draws": 4000, "random_state": 0}
    span = BayesianLinearRegression(**options).fit(X, y)
    whole = BayesianLinearRegression(keep="moments", **options).fit(X, y)
    assert "span of the rows" in span.seconds_
    assert "span of the rows" not in whole.seconds_
    np.testing.assert_allclose(span.noise_std_, whole.noise_std_, rtol=0.01)
    np.testing.assert_allclose(span.coef_std_, whole.coef_std_, rtol=0.06)
    assert abs(span.coef_ - whole.coef_).max() < 5.0 * np.sqrt(2.0 / 16_000) * span.coef_std_.max()


@pytest.mark.parametrize("as_sparse", [False, True], ids=["dense", "sparse"])
def test_columns_of_zeros_leave_the_prior(as_sparse, form):
    X, y = np.zeros((20, 310)), np.random.default_rng(7).normal(size=20)
    model = BayesianLinearRegression(prior=Normal(scale=2.0), noise=1.0, random_state=0)
    model.fit(sparse.csr_array(X) if as_sparse else X, y)
    assert "span of the rows" in model.seconds_
    assert abs(model.coef_).max() < 5.0 * 2.0 / np.sqrt(4000)
    assert abs(model.coef_std_ / 2.0 - 1.0).max() < 5.0 / np.sqrt(2.0 * 4000)
    assert model.intercept_ == pytest.approx(y.mean(), abs=5.0 / np.sqrt(20 * 4000))
