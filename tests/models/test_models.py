"""Derivatives of models and priors: kernels against formulas of the tests' own.

The formulas are differentiated by complex step, which is exact to rounding (tolerance 1e-12); the
kernels' own values by central differences (1e-7), so that value and gradient belong together.
"""

import cases
import naive
import numpy as np
import probe
import pytest
from scenes import close, make_scene
from scipy import sparse, stats
from scipy.special import softmax

from skbayes_sg.engine import target as target_module
from skbayes_sg.engine.target import Target
from skbayes_sg.kernels.layout import FACT_WEIGHT, FACT_Y, frozen
from skbayes_sg.kernels.many_draws import TINY
from skbayes_sg.models import NegativeBinomial, Poisson, Softmax, predictive
from skbayes_sg.priors import Normal
from skbayes_sg.priors.table import prior_curvature, prior_gradient, prior_value

EXACT, DIFFERENCE = 1e-12, 1e-7
STORAGE = ["float64", "float32", "csr"]
models = pytest.mark.parametrize("model", cases.MODELS)
layouts = pytest.mark.parametrize(
    ("intercept", "weighted"), [(True, True), (True, False), (False, True)]
)


@pytest.fixture(autouse=True)
def _many_panels(monkeypatch):
    """Passes of several panels, chunks and blocks even on small data."""
    monkeypatch.setattr(target_module, "PANEL_BYTES", 8 * 3 * 300)
    monkeypatch.setattr(target_module, "CHUNK_BYTES", 1)


@pytest.mark.parametrize("size", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("name", [m for m in cases.MODELS if cases.MODELS[m].model.add_losses])
def test_losses_of_many_draws_are_those_of_one_after_the_other(name, size):
    case, rng, n = cases.MODELS[name], np.random.default_rng(0), 37
    model, labels = case.model, np.reshape(case.labels(rng, n).T, (-1, n))
    facts, rows = np.empty((n, 1 + len(labels))), np.arange(n)
    facts[:, FACT_Y], facts[:, FACT_WEIGHT] = labels[0], rng.uniform(0.1, 3.0, n)
    facts[:, FACT_WEIGHT + 1 :] = labels[1:].T
    base = size * rng.normal(size=(n, model.n_predictors))
    moved = size * rng.normal(size=(5, n, model.n_predictors))
    base[:, model.n_linear :] = rng.normal(size=model.n_extra)  # the same in all rows
    moved[..., model.n_linear :] = 3.0 * rng.normal(size=(5, 1, model.n_extra))
    found, columns = np.ones(5), frozen(base.T)
    own = np.ascontiguousarray(moved.transpose(2, 0, 1))
    model.add_losses(frozen(facts.T), columns, own, np.empty_like(columns), found)
    for value, own in zip(found, moved, strict=True):
        terms = [model.loss(facts, rows, k, k + 1, (base + own)[k : k + 1]) for k in rows]
        assert np.isclose(value, 1.0 + np.sum(terms), rtol=0.0, atol=1e-12 * np.abs(terms).sum())


def derivatives_of_many(model, facts, base, moved):
    """Weighted derivatives of rows at many draws, in the precision of `moved`, by the model."""
    columns, own = frozen(base.T, moved.dtype), moved.copy()
    model.replace_by_derivatives(frozen(facts.T), columns, own, np.empty_like(columns))
    return own


@pytest.mark.parametrize(("dtype", "error"), [("float64", 1e-14), ("float32", 1e-6)])
@pytest.mark.parametrize("size", [1e-3, 1.0, 5.0])
@pytest.mark.parametrize("n_classes", [2, 3, 11])
def test_derivatives_of_many_draws_are_those_of_the_formula(n_classes, size, dtype, error):
    model, rng, n = Softmax(n_classes), np.random.default_rng(0), 37
    facts = np.column_stack([rng.integers(0, n_classes, n), rng.uniform(0.1, 3.0, n)])
    base = size * rng.normal(size=(n, n_classes))
    moved = (size * rng.normal(size=(n_classes, 5, n))).astype(dtype)
    found = derivatives_of_many(model, facts[:, [FACT_Y, FACT_WEIGHT]], base, moved)
    expected = softmax(base.T[:, None] + moved.astype(float), axis=0)
    expected[facts[:, 0].astype(int), :, np.arange(n)] -= 1.0
    assert np.abs(found / facts[:, 1] - expected).max() < error


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_derivatives_of_far_draws_are_finite_and_not_subnormal(dtype):
    model, facts = Softmax(3), np.zeros((1, 2))
    facts[0, FACT_WEIGHT] = 1.0
    moved = np.array([[[700.0], [-1e4]], [[0.0], [0.0]], [[-90.0], [1e4]]], dtype)
    found = derivatives_of_many(model, facts, np.zeros((1, 3)), moved)[..., 0]
    assert np.allclose(found, [[0.0, -1.0], [0.0, 0.0], [0.0, 1.0]], rtol=0.0, atol=1e-30)
    assert (np.abs(found[found != 0.0]) > TINY).all()


@pytest.mark.parametrize("share", [0.0, 0.02, 0.5])
def test_sparse_designs_have_a_column_of_ones(share):
    X = sparse.random_array((40, 30), density=share, format="csr", rng=0, dtype=np.float32)
    found = target_module._with_ones(X)
    assert found.dtype == np.float64
    assert found.has_canonical_format
    assert (found.toarray() == np.column_stack([X.toarray(), np.ones(40)])).all()


# -- the posterior --------------------------------------------------------------------------------


@models
@layouts
@pytest.mark.parametrize("prior", cases.PRIORS)
def test_gradient_against_complex_step(model, intercept, weighted, prior):
    scene = make_scene(model, prior, n_rows=40, intercept=intercept, weighted=weighted)
    points = scene.points() if prior != "flat" else {"a point": scene.point()}
    for theta in points.values():
        _, g = scene.target.value_and_gradient(theta)
        close(g, scene.posterior.gradient(theta), EXACT, scene.posterior.scale(theta))


@models
@pytest.mark.parametrize("prior", cases.PRIORS)
def test_value_against_formula(model, prior):
    scene = make_scene(model, prior, n_rows=40)
    origin = scene.point(2)
    for theta in (scene.point(), 30.0 * scene.point()):
        change = scene.target.value_and_gradient(theta)[0]
        change -= scene.target.value_and_gradient(origin)[0]
        expected = scene.posterior.potential(theta) - scene.posterior.potential(origin)
        close(change, expected, EXACT, abs(scene.posterior.potential(theta)))


@models
@pytest.mark.parametrize("prior", cases.PRIORS)
def test_value_and_gradient_belong_together(model, prior):
    scene = make_scene(model, prior, n_rows=40)
    for theta in scene.points().values():
        if cases.PRIORS[prior].kink and np.abs(theta - 0.3).min() < 1e-3:
            continue  # the mode sits on a kink
        value, g = scene.target.value_and_gradient(theta)
        slopes = naive.central_difference(lambda t: scene.target.value_and_gradient(t)[0], theta)
        close(slopes, g, DIFFERENCE, max(np.abs(g).max(), abs(value)))


@models
def test_beyond_the_range_of_exp(model):
    # Predictors of thousands: e^eta overflows, probabilities are 0 and 1 to the last bit.
    scene = make_scene(model, n_rows=40, columns=[100.0, 1.0])
    theta = scene.points()["far"]
    assert np.abs(scene.posterior.predictors(theta)).max() > 1000.0
    if cases.MODELS[model].overflows:
        with np.errstate(over="ignore", invalid="ignore"):
            assert scene.target.value_and_gradient(theta)[0] == np.inf  # what a sampler refuses
        return
    value, g = scene.target.value_and_gradient(theta)
    close(g, scene.posterior.gradient(theta), EXACT, scene.posterior.scale(theta))
    assert np.isfinite(value)
    assert np.isfinite(scene.target.likelihood_hessian(theta)).all()


@models
@pytest.mark.parametrize("storage", STORAGE)
@pytest.mark.parametrize("intercept", [True, False])
def test_storage_makes_no_difference(model, storage, intercept):
    # The formulas see the same numbers: float32 values are rounded before both.
    scene = make_scene(model, n_rows=700, storage=storage, intercept=intercept)
    theta = scene.point()
    value, g = scene.target.value_and_gradient(theta)
    scale = scene.posterior.scale(theta)
    close(g, scene.posterior.gradient(theta), EXACT, scale)
    likelihood, gradient = scene.target.likelihood(theta)
    close(likelihood, -scene.posterior.log_likelihood(theta).sum(), EXACT, scale)
    close(gradient, scene.posterior.row_gradients(theta).sum(axis=0), EXACT, scale)
    H = scene.posterior.row_hessians(theta).sum(axis=0)
    close(scene.target.likelihood_hessian(theta), H, EXACT, np.abs(H).max())
    close(scene.target.likelihood_curvature(theta), np.diag(H), EXACT, np.abs(H).max())
    z = probe.Probe(scene.frame(theta))
    origin = np.zeros(len(theta))
    close(z.estimate(origin), scene.posterior.gradient(theta), EXACT, scale)
    constant = prior_value(scene.target.prior, theta)
    close(z.potential(origin), likelihood + constant, EXACT, scale)
    assert value == likelihood + constant


# -- kernels of a model ---------------------------------------------------------------------------


def row_kernels(scene, theta):
    """Predictors, terms and weights (n, K, K) of all rows, by the kernels."""
    K = scene.target.model.n_predictors
    facts, _, _ = scene.target.expansion(theta, dense=True)
    return facts[:, 2 : 2 + K], facts[:, 2 + K : 2 + 2 * K], scene.target.weights_at(theta)


@pytest.mark.slow_for("negative_binomial")
@models
def test_row_kernels_against_formulas(model):
    scene = make_scene(model, n_rows=600)
    posterior = scene.posterior
    unweighted = naive.Posterior(
        posterior.case, posterior.X, posterior.y, np.ones(600), True, posterior.log_prior
    )
    for theta in scene.points().values():
        eta, terms, weights = row_kernels(scene, theta)
        close(eta, posterior.predictors(theta), EXACT, np.abs(eta).max())
        close(terms, unweighted.terms(eta), EXACT, np.abs(terms).max())
        close(weights, posterior.curvatures(eta), EXACT, np.abs(weights).max())


@models
def test_formula_of_the_derivative_against_complex_step(model):
    # The tests' own derivative, which the other tests lean on.
    scene = make_scene(model, n_rows=30)
    for theta in scene.points().values():
        eta = scene.posterior.predictors(theta)
        for k in range(eta.shape[1]):
            shifted = eta + 1j * naive.STEP * np.eye(eta.shape[1])[k]
            slope = -np.imag(scene.posterior.case.log_likelihood(shifted, scene.posterior.y))
            expected = scene.posterior.case.derivative(eta, scene.posterior.y)[:, k]
            size = max(np.abs(eta).max(), np.abs(expected).max())
            close(slope / naive.STEP, expected, EXACT, size)


@models
def test_curvature_against_differences_of_the_derivative(model):
    scene = make_scene(model, n_rows=20)
    theta = scene.point()
    H = scene.target.likelihood_hessian(theta)
    for j, e in enumerate(np.eye(len(theta)) * 6e-6):
        ahead, behind = (scene.target.likelihood(t)[1] for t in (theta + e, theta - e))
        close((ahead - behind) / (2.0 * e.sum()), H[:, j], DIFFERENCE, np.abs(H).max())


@models
def test_curvature_is_positive_semidefinite(model):
    scene = make_scene(model, n_rows=100)
    for theta in scene.points().values():
        smallest = np.linalg.eigvalsh(scene.target.weights_at(theta)).min()
        assert smallest >= -1e-15 * len(theta) or not cases.MODELS[model].convex
    H = scene.target.likelihood_hessian(scene.mode())  # of all rows together, in any case
    assert np.linalg.eigvalsh(H).min() >= -1e-13 * np.abs(H).max()


# -- passes over all rows -------------------------------------------------------------------------


@models
@layouts
def test_expansion_against_formulas(model, intercept, weighted):
    scene = make_scene(model, n_rows=700, intercept=intercept, weighted=weighted)
    theta, K = scene.point(), scene.target.model.n_predictors
    scale, H = scene.posterior.scale(theta), scene.posterior.row_hessians(theta).sum(axis=0)
    facts, g, found = scene.target.expansion(theta, dense=True)
    labels = scene.posterior.y.reshape(700, -1)
    assert facts.shape == (700, 1 + 2 * K + labels.shape[1])
    np.testing.assert_array_equal(facts[:, 0], labels[:, 0])
    np.testing.assert_array_equal(facts[:, 2 + 2 * K :], labels[:, 1:])
    np.testing.assert_array_equal(facts[:, 1], scene.posterior.weight)
    close(g, scene.posterior.row_gradients(theta).sum(axis=0), EXACT, scale)
    close(found, H, EXACT, np.abs(H).max())
    _, again, diagonal = scene.target.expansion(theta, dense=False)
    np.testing.assert_array_equal(again, g)
    close(diagonal, np.diag(H), EXACT, np.abs(H).max())


@models
def test_passes_do_not_depend_on_the_number_of_threads(model):
    results = []
    for n_jobs in (1, 2):
        scene = make_scene(model, n_rows=2000, n_jobs=n_jobs)
        theta = scene.point()
        results.append(
            [*scene.target.value_and_gradient(theta), *scene.target.expansion(theta, dense=True)]
        )
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)


@models
@pytest.mark.parametrize("storage", STORAGE)
def test_some_rows_with_other_weights(model, storage):
    scene = make_scene(model, n_rows=50, storage=storage)
    rows, weight, theta = np.array([3, 3, 49, 0, 20]), np.arange(1.0, 6.0), scene.point()
    part = scene.target.take(rows, weight)
    p = scene.posterior
    expected = naive.Posterior(p.case, p.X[rows], p.y[rows], weight, True, p.log_prior)
    close(part.value_and_gradient(theta)[1], expected.gradient(theta), EXACT, p.scale(theta))
    rng, J, A = np.random.default_rng(0), expected.jacobian, part.design(slice(None))
    K, D = part.model.n_predictors, part.n_parameters
    terms, direction, W = rng.normal(size=(5, K)), rng.normal(size=D), rng.normal(size=(5, K, K))
    W = W + W.transpose(0, 2, 1)
    pairs = [
        (part.row_sum(A, terms), np.einsum("nk,nkj->j", terms, J)),
        (part.along(A, direction), J @ direction),
        (part.outer_sum(A, W), np.einsum("nbi,nbc,ncj->ij", J, W, J)),
        (part.hessian_product(W, direction), np.einsum("nbi,nbc,nc->i", J, W, J @ direction)),
    ]
    for found, sums in pairs:
        close(found, sums, EXACT, np.abs(sums).max())


@models
def test_weights_are_repetitions(model):
    # A row of weight two is the row twice; one of weight zero is no row.
    scene = make_scene(model, n_rows=30, weighted=False)
    p, t = scene.posterior, scene.target
    weight = np.arange(30.0) % 3
    rows = np.repeat(np.arange(30), weight.astype(int))
    theta = scene.point()
    ones = np.ones(len(rows))
    weighted = Target(p.X, p.y, weight, t.model, t.prior)
    repeated = Target(p.X[rows], p.y[rows], ones, t.model, t.prior)
    for one, two in zip(
        weighted.expansion(theta, dense=True)[1:], repeated.expansion(theta, dense=True)[1:],
        strict=True,
    ):  # fmt: skip
        close(one, two, EXACT, p.scale(theta))


# -- priors ---------------------------------------------------------------------------------------


def prior_kernels(case, points):
    """(-log density, gradient, curvature) of one parameter at each point."""
    table = case.prior._table((1,))
    found = []
    for t in points:
        g, theta = np.zeros(1), np.array([t])
        prior_gradient(table, theta, g)
        found.append((prior_value(table, theta), g[0], prior_curvature(table, theta)[0]))
    return np.array(found).T


PRIOR_POINTS = np.array([0.0, 0.3, -1.7, 2.2, 50.0, -50.0, 1e8])


@pytest.mark.parametrize("name", cases.PRIORS)
def test_prior_against_complex_step(name):
    case = cases.PRIORS[name]
    values, slopes, _ = prior_kernels(case, PRIOR_POINTS)
    for t, value, slope in zip(PRIOR_POINTS, values, slopes, strict=True):
        expected = -naive.complex_step(lambda x: case.log_density(x[0]), [t])[0]
        close(slope, expected, EXACT, abs(expected))
        expected = -(case.log_density(t) - case.log_density(0.0))
        close(value - values[0], expected, EXACT, abs(expected))


@pytest.mark.parametrize("name", [n for n, c in cases.PRIORS.items() if c.law is not None])
def test_prior_is_the_law_of_its_name(name):
    case, near = cases.PRIORS[name], PRIOR_POINTS[:5]
    values, _, _ = prior_kernels(case, near)
    expected = -case.law.logpdf(near) + case.law.logpdf(0.0)
    close(values - values[0], expected, EXACT, np.abs(expected).max())


@pytest.mark.parametrize("name", cases.PRIORS)
def test_curvature_of_a_prior_touches_it_from_above(name):
    # The quadratic with that value, slope and curvature bounds -log p from above (Student's t, of
    # which only this is promised), or is its second-order expansion (the normal law).
    case, t = cases.PRIORS[name], np.array([-2.0, 0.31, 0.9])
    grid = np.linspace(-20.0, 20.0, 401)
    values, slopes, curvatures = prior_kernels(case, t)
    if case.kink:
        np.testing.assert_array_equal(curvatures, 0.0)  # smoothed only where a centre is sought
        return
    everywhere, _, _ = prior_kernels(case, grid)
    for centre, value, slope, curvature in zip(t, values, slopes, curvatures, strict=True):
        quadratic = value + slope * (grid - centre) + 0.5 * curvature * (grid - centre) ** 2
        assert curvature >= 0.0
        assert (quadratic - everywhere >= -1e-12 * (1.0 + np.abs(everywhere))).all()


def test_curvature_of_the_normal_prior():
    _, _, curvatures = prior_kernels(cases.PRIORS["normal"], PRIOR_POINTS)
    close(curvatures, np.full(len(PRIOR_POINTS), 1.0 / 0.7**2), EXACT)


def test_smoothed_laplace_prior():
    # |z| replaced by sqrt(z² + ε²): value, slope and curvature by complex step of the formula.
    table, width = cases.PRIORS["laplace"].prior._table((1,)), 0.4
    table[0, probe.SHAPE] = width

    def formula(theta):
        return np.sqrt(((theta[0] - 0.3) / 0.7) ** 2 + width**2)

    def slope(theta):
        z = (theta[0] - 0.3) / 0.7
        return z / np.sqrt(z * z + width**2) / 0.7

    for t in (0.0, 0.3, -5.0):
        theta, g = np.array([t]), np.zeros(1)
        prior_gradient(table, theta, g)
        c = prior_curvature(table, theta)
        close(prior_value(table, theta), formula(theta), EXACT)
        close(g, naive.complex_step(formula, theta), EXACT)
        close(c, naive.complex_step(slope, theta), EXACT)


def test_prior_of_each_feature():
    # One value a feature, the same for every class; the intercepts have a prior of their own.
    prior = Normal(loc=[0.0, 1.0], scale=[0.5, 3.0])
    table = probe.prior_table(
        cases.MODELS["softmax"].model, 2, True, prior, cases.INTERCEPT_PRIOR.prior
    )
    theta, g = np.arange(9.0), np.zeros(9)
    prior_gradient(table, theta, g)
    loc = np.r_[np.tile([0.0, 1.0], 3), [-0.2] * 3]
    scale = np.r_[np.tile([0.5, 3.0], 3), [2.0] * 3]
    close(g, (theta - loc) / scale**2, EXACT, 30.0)


@pytest.mark.parametrize("y", [0.0, 5.0])
def test_densities_of_counts_far_from_all_reason(y):
    eta = np.array([-1e3, 0.3, 50.0, 1e3])
    found = NegativeBinomial.log_density(y, eta, 0.7)
    expected = [stats.nbinom.logpmf(y, 1.0 / 0.7, 1.0 / (1.0 + 0.7 * np.exp(e))) for e in eta[1:3]]
    np.testing.assert_allclose(found[1:3], expected, rtol=1e-9)
    np.testing.assert_allclose(found[3], found[2] - (1e3 - 50.0) / 0.7, rtol=1e-9)
    assert np.isfinite(found).all()
    found = Poisson.log_density(y, eta)
    np.testing.assert_allclose(found[1], stats.poisson.logpmf(y, np.exp(0.3)), rtol=1e-12)
    assert found[0] == -1e3 * y - (np.log(120.0) if y else 0.0)
    assert found[3] == -np.inf
    assert np.isfinite(Poisson.draw(np.random.default_rng(0), eta)).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("weights", [None, np.array([0.5, 1.5, 1.0])])
@pytest.mark.parametrize(
    ("model", "extras"), [(Poisson(), ()), (NegativeBinomial(), (np.full(3, 0.5),))]
)
def test_counts_of_any_size_are_predicted_without_a_warning(model, extras, weights):
    eta = np.array([[0.0, 1.0, 500.0], [0.0, 1.0, 800.0], [0.0, 1.0, 2.0]])
    epistemic, aleatoric = predictive.variances(model, eta, extras, weights)
    assert epistemic[:2].tolist() == [np.inf, np.inf]
    assert np.isfinite([epistemic[2], aleatoric[2]]).all()
    for eta_of_row in eta[1:]:
        assert (model.cdf(3.0, eta_of_row, *extras) <= 1.0).all()
        assert (model.log_density(3.0, eta_of_row, *extras) <= 0.0).all()
