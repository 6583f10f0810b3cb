"""Every estimator of the gradient under every subsampling scheme, by enumeration of all batches.

The law of a batch is read out of the scheme's own kernel, fed with the cells of its uniform numbers
(`cases.SubsamplingCase.uniforms`). So mean and covariance of an estimate are exact sums over all
batches; they must be the gradient, and the textbook's covariance, to rounding.
"""

import dataclasses
import itertools

import cases
import naive
import numpy as np
import probe
import pytest
from batch_laws import N, enumerable, law, moments
from scenes import close, make_scene, position, pulled_back, some_warping

from skbayes_sg.gradients import Tabulated
from skbayes_sg.recipe.measure import Survey
from skbayes_sg.subsampling import Preferential

EXACT = 1e-12
BATCHES = 2_000  # at most, for which every gradient estimates

# -- laws of batches ------------------------------------------------------------------------------


def pairs():
    """(gradient, model) that belong together."""
    return [
        (g, m) for g, gradient in cases.GRADIENTS.items() for m, model in cases.MODELS.items()
        if gradient.serves(model.model) and not model.model.n_extra
    ]  # fmt: skip


stochastic = pytest.mark.parametrize(
    ("gradient", "model"),
    cases.with_marks([(g, m) for g, m in pairs() if not cases.GRADIENTS[g].all_rows]),
)


def framed(scene, gradient, kind="hessian"):
    """A frame around a point that is not the mode, with what the gradient needs."""
    frame = scene.frame(kind=kind)
    if not cases.GRADIENTS[gradient].grouped:
        return frame
    group = np.arange(scene.target.n_rows) % 3 - 1  # a third of the rows has none
    rows = np.flatnonzero(group >= 0)
    directions = np.random.default_rng(3).normal(0.0, 0.3, (2, scene.target.n_parameters))
    places = np.stack([np.linspace(-2.5, 2.6, 8) ** 3 / 8.0, np.linspace(-2.0, 2.0, 8)])
    return frame.grouped(rows, group[rows], directions, places, Survey(frame)._terms_at)


# -- the estimators -------------------------------------------------------------------------------


@pytest.mark.parametrize(("scheme", "n"), enumerable())
def test_chances_add_up_and_weighted_sums_are_unbiased(scheme, n):
    batches = law(scheme, n)
    assert abs(sum(batches.values()) - 1.0) < EXACT
    expected = np.zeros(N)  # of the total coefficient of each row
    for (rows, coefficients), chance in batches.items():
        assert len(rows) == n
        np.add.at(expected, list(rows), chance * np.array(coefficients))
        if not cases.SUBSAMPLING[scheme].replaces:
            assert len(set(rows)) == n
    close(expected, np.ones(N), EXACT)


@pytest.mark.parametrize(
    ("gradient", "model"),
    cases.with_marks(
        [(g, m) for g, m in pairs() if not cases.GRADIENTS[g].all_rows],
        (*cases.LIKE_LOGISTIC, "gaussian"),
    ),
)
@pytest.mark.parametrize("scheme", cases.SUBSAMPLING)
def test_mean_and_covariance_over_all_batches(gradient, model, scheme):
    piece, rule = cases.GRADIENTS[gradient], cases.SUBSAMPLING[scheme]
    scene = make_scene(model, "student_t")
    frame, posterior = framed(scene, gradient), scene.posterior
    theta = scene.point()
    z = position(frame, theta)
    a = pulled_back(frame, piece.row_vectors(posterior, theta, frame))
    expected, size = pulled_back(frame, posterior.gradient(theta)), np.abs(a).sum()
    for n in [n for s, n in enumerable() if s == scheme and len(law(s, n)) <= BATCHES]:
        kernels = probe.Probe(
            frame, piece.gradient, rule.scheme, batch_size=n, chances=rule.chances(N)
        )
        batches = law(scheme, n)
        estimates = np.array([kernels.estimate(z, *batch) for batch in batches])
        mean, covariance = moments(estimates, np.array(list(batches.values())))
        close(mean, expected, EXACT, posterior.scale(theta))
        close(covariance, rule.covariance(a, n, rule.chances(N)), EXACT, size**2)


@pytest.mark.parametrize(("gradient", "model"), cases.with_marks(pairs()))
@pytest.mark.parametrize("kind", ["hessian", "diagonal", "none"])
@pytest.mark.parametrize("point", ["near", "far"])
def test_all_rows_make_the_full_gradient(gradient, model, kind, point):
    scene = make_scene(model, "laplace", n_rows=30)
    frame = framed(scene, gradient, kind)
    theta = scene.point() * (1.0 if point == "near" else 20.0)
    if frame.groups is not None:
        places = frame.groups.tables.directions @ (theta - frame.centre.theta)
        assert (np.abs(places) < 2.0).all() == (point == "near")  # between knots, or beyond
    found = probe.Probe(frame, cases.GRADIENTS[gradient].gradient).estimate(position(frame, theta))
    size = np.abs(frame.F).max() * max(scene.posterior.scale(theta), 1e3)
    close(found, pulled_back(frame, scene.posterior.gradient(theta)), EXACT, size)


@stochastic
@pytest.mark.parametrize("storage", ["csr", pytest.param("float32", marks=pytest.mark.slow)])
def test_storage_makes_no_difference(gradient, model, storage):
    scene = make_scene(model, n_rows=30, storage=storage)
    frame = framed(scene, gradient)
    dense = probe.make_target(
        scene.target.model, scene.posterior.X, scene.posterior.y, scene.posterior.weight,
        scene.target.prior,
    )  # fmt: skip
    z, rows, coefficients = scene.point(), [29, 3, 3, 15], [1.0, 5.0, 0.5, 2.0]
    found = []
    for target in (scene.target, dense):
        same = dataclasses.replace(frame, target=target)
        kernels = probe.Probe(same, cases.GRADIENTS[gradient].gradient, batch_size=4)
        found.append(kernels.estimate(z, rows, coefficients))
    close(*found, EXACT, np.abs(found[0]).max())


@stochastic
def test_a_batch_of_many_blocks(gradient, model):
    # More rows than the kernels handle at once; some of them many times.
    scene = make_scene(model, n_rows=700)
    frame, theta, rng = framed(scene, gradient), scene.point(), np.random.default_rng(5)
    rows, coefficients = rng.integers(0, 700, 600), rng.uniform(0.0, 3.0, 600)
    piece = cases.GRADIENTS[gradient]
    a = pulled_back(frame, piece.row_vectors(scene.posterior, theta, frame))
    full = pulled_back(frame, scene.posterior.gradient(theta))
    expected = full - a.sum(axis=0) + coefficients @ a[rows]
    found = probe.Probe(frame, piece.gradient, batch_size=600).estimate(
        position(frame, theta), rows, coefficients
    )
    close(found, expected, EXACT, 3.0 * np.abs(a).sum() + scene.posterior.scale(theta))


@stochastic
@pytest.mark.parametrize("prior", cases.PRIORS)
def test_the_prior_is_never_rescaled(gradient, model, prior):
    # What a prior adds to an estimate is its gradient, whatever the batch.
    with_prior, without = make_scene(model, prior), make_scene(model, "flat")
    theta = with_prior.point()
    batches = [([0], [6.0]), ([5, 5], [3.0, 3.0]), ([1, 2, 3], [2.0, 2.0, 2.0])]
    for rows, coefficients in batches:
        found = []
        for scene in (with_prior, without):
            frame = framed(scene, gradient, "none")
            kernels = probe.Probe(frame, cases.GRADIENTS[gradient].gradient, batch_size=len(rows))
            found.append(kernels.estimate(position(frame, theta), rows, coefficients))
        expected = with_prior.posterior.prior_gradient(theta)
        expected -= without.posterior.prior_gradient(theta)
        close(found[0] - found[1], expected, EXACT, 6.0 * with_prior.posterior.scale(theta))


@pytest.mark.parametrize(
    "gradient", [g for g, c in cases.GRADIENTS.items() if not (c.grouped or c.remembers)]
)
def test_control_variates_have_no_noise_at_the_centre(gradient):
    # And the plain gradient has.
    scene = make_scene("logistic")
    frame, piece = framed(scene, gradient), cases.GRADIENTS[gradient].gradient
    kernels = probe.Probe(frame, piece, batch_size=1)
    origin = np.zeros(scene.posterior.dimension)
    estimates = np.array([kernels.estimate(origin, [i], [6.0]) for i in range(N)])
    noise = np.abs(estimates - estimates.mean(axis=0)).max()
    assert (noise < EXACT) if piece.uses_constant else (noise > 1.0)


# -- schemes --------------------------------------------------------------------------------------


def test_blocks_of_rows_in_random_order_are_uniform_without_replacement():
    # Over all orders of the rows and all starts, every set of n rows is equally likely.
    n_rows = 5
    for n in range(1, n_rows + 1):
        counts: dict = {}
        for order in itertools.permutations(range(n_rows)):
            for rows, _ in law("blocks", n, n_rows):
                members = frozenset(order[i] for i in rows)
                assert len(members) == n
                counts[members] = counts.get(members, 0) + 1
        assert len(counts) == len(list(itertools.combinations(range(n_rows), n)))
        assert len(set(counts.values())) == 1


def test_without_replacement_from_any_order_of_the_list():
    # The list of rows is left as the last batch shuffled it; the law must not depend on it.
    case = cases.SUBSAMPLING["uniform_without_replacement"]
    for order in itertools.islice(itertools.permutations(range(4)), 0, 24, 5):
        subsample = case.scheme.state(4, 2)._replace(order=np.array(order))
        counts: dict = {}
        for path in itertools.product(*case.uniforms(subsample)):
            rows, _ = probe.scripted_batch(case.scheme, subsample, [u for u, _ in path])
            counts[rows] = counts.get(rows, 0) + 1
        assert counts == dict.fromkeys(itertools.permutations(range(4), 2), 1)


def random_chances(rng):
    """A law of six rows, some of them rare."""
    p = rng.random(N) ** 3 + 1e-4
    return p / p.sum()


def test_preferential_is_unbiased_for_any_chances():
    scene = make_scene("logistic")
    frame, rng, theta = scene.frame(), np.random.default_rng(0), scene.point()
    rule = cases.SUBSAMPLING["preferential"]
    z = position(frame, theta)
    for _ in range(10):
        p = random_chances(rng)
        kernels = probe.Probe(
            frame, cases.GRADIENTS["minibatch"].gradient, rule.scheme, batch_size=1, chances=p
        )
        subsample = rule.scheme.state(N, 1, p)
        mean = np.zeros(len(z))
        for value, chance in cases.alias_cells(subsample):
            batch = probe.scripted_batch(rule.scheme, subsample, [value])
            mean += chance * kernels.estimate(z, *batch)
        close(mean, scene.posterior.gradient(theta), EXACT, scene.posterior.scale(theta))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_preferential_with_equal_chances_has_the_law_of_uniform_rows(n):
    scheme, found = Preferential(), {}
    subsample = scheme.state(N, n, np.full(N, 1.0 / N))
    for path in itertools.product(*[cases.alias_cells(subsample)] * n):
        values, chances = zip(*path, strict=True)
        rows, coefficients = probe.scripted_batch(scheme, subsample, values)
        close(coefficients, np.full(n, N / n), EXACT)
        found[rows] = found.get(rows, 0.0) + np.prod(chances)
    assert len(found) == N**n
    close(list(found.values()), np.full(N**n, 1.0 / N**n), EXACT)


def test_preferential_with_chances_like_norms_has_the_smallest_trace():
    scene = make_scene("logistic")
    theta, rng = scene.point(), np.random.default_rng(1)
    a = scene.posterior.row_gradients(theta)
    norms = np.linalg.norm(a, axis=1)
    covariance = cases.SUBSAMPLING["preferential"].covariance

    def trace_of_kernel(p):
        kernels = probe.Probe(
            scene.frame(), cases.GRADIENTS["minibatch"].gradient, Preferential(), batch_size=1,
            chances=p,
        )  # fmt: skip
        z = position(scene.frame(), theta)
        found = np.array([kernels.estimate(z, [i], [1.0 / p[i]]) for i in range(N)])
        return np.trace(moments(found, p)[1])

    best = (norms.sum() ** 2 - np.linalg.norm(a.sum(axis=0)) ** 2) / 1.0
    close(trace_of_kernel(norms / norms.sum()), best, EXACT, best)
    others = [np.trace(covariance(a, 1, random_chances(rng))) for _ in range(2000)]
    assert min(others) > best


def test_preferential_probabilities_are_mixed_with_the_uniform_law():
    weights = np.array([0.0, 1.0, 3.0])
    p = Preferential(uniform_share=0.25).probabilities(weights)
    close(p, 0.75 * weights / 4.0 + 0.25 / 3.0, 1e-16)
    close(Preferential().probabilities(np.zeros(3)), np.full(3, 1.0 / 3.0), 1e-16)


# -- tables of grouped rows, and warped coordinates -----------------------------------------------


def one_hot_scene():
    """Rows with two rare levels, one of them of a single class."""
    scene = make_scene("logistic", n_rows=300, n_features=4)
    X, y = scene.posterior.X, scene.posterior.y
    X[:, 2:] = 0.0
    X[:12, 2], X[12:40, 3] = 1.0, 1.0
    y[:12] = 1.0
    scene.target = probe.make_target(
        scene.target.model, X, y, scene.posterior.weight, scene.target.prior
    )
    return scene


def test_groups_that_a_survey_finds():
    scene = one_hot_scene()
    frame = scene.frame(scene.mode(), "hessian")
    points = frame.guess(np.random.default_rng(0).normal(size=(64, 5)))
    grouped = Survey(frame).group_rows(np.array([2, 3]), points)
    group = grouped.groups.facts[:, -1]
    assert set(group[:12]) == {1.0}  # more rows come first
    assert set(group[12:40]) == {0.0}
    assert set(group[40:]) == {-1.0}
    kernels = probe.Probe(grouped, Tabulated(), batch_size=300)
    for z in (points[0], 4.0 * points[1], np.zeros(5)):
        theta = grouped.theta(z)
        size = np.abs(grouped.F).max() * scene.posterior.scale(theta) * 10.0
        expected = pulled_back(grouped, scene.posterior.gradient(theta))
        close(kernels.estimate(z), expected, EXACT, size)


@pytest.mark.parametrize("gradient", cases.GRADIENTS)
@pytest.mark.parametrize("kind", ["hessian", "diagonal", "none"])
def test_gradient_in_warped_coordinates_belongs_to_the_potential(gradient, kind):
    scene = make_scene("logistic", "student_t", n_rows=30)
    frame = framed(scene, gradient, kind).warped(some_warping([0, 2]))
    kernels = probe.Probe(frame, cases.GRADIENTS[gradient].gradient)
    for z in (np.array([0.4, -0.2, -1.1]), np.array([-2.95, 1.0, 3.5]), np.array([5.0, 0.0, -4.0])):
        found = kernels.estimate(z)
        slopes = naive.central_difference(kernels.potential, z)
        close(slopes, found, 1e-7, np.abs(found).max())


def test_warped_estimates_are_unbiased():
    scene = make_scene("logistic", "student_t")
    for gradient, piece in cases.GRADIENTS.items():
        if piece.all_rows:
            continue
        frame = framed(scene, gradient).warped(some_warping([1]))
        kernels = probe.Probe(frame, piece.gradient, batch_size=2)
        z = np.array([0.5, -0.8, 0.3])
        batches = law("uniform", 2)
        estimates = np.array([kernels.estimate(z, *batch) for batch in batches])
        mean, _ = moments(estimates, np.array(list(batches.values())))
        exact = probe.Probe(frame).estimate(z)
        close(mean, exact, EXACT, np.abs(estimates).max())


def test_warped_positions():
    # Python's and the kernels' map are the same, and the inverse is one.
    frame = make_scene("logistic").frame().warped(some_warping([0, 2]))
    rng = np.random.default_rng(0)
    z = rng.normal(scale=2.0, size=(200, 3))
    phi = frame.warping.position(z)
    close(frame.warping.inverse(phi), z, 1e-2)
    for k in range(3):
        ahead, behind = z.copy(), z.copy()
        ahead[:, k] += 1e-5
        behind[:, k] -= 1e-5
        slopes = (frame.warping.position(ahead) - frame.warping.position(behind))[:, k] / 2e-5
        close(slopes, frame.warping.derivative(z, 1)[:, k], 1e-6)
