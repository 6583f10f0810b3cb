"""Every estimator of the gradient under every subsampling scheme, by enumeration of all batches.

The law of a batch is read out of the scheme's own kernel, fed with the cells of its uniform numbers
(`cases.SubsamplingCase.uniforms`). So mean and covariance of an estimate are exact sums over all
batches; they must be the gradient, and the textbook's covariance, to rounding.
"""

import dataclasses
import itertools

import cases
import numpy as np
import probe
import pytest
from batch_laws import N, enumerable, law, moments
from scenes import close, make_scene, position, pulled_back

from skbayes_sg.subsampling import Preferential

EXACT = 1e-12
BATCHES = 2_000  # at most, for which every gradient estimates

# -- laws of batches ------------------------------------------------------------------------------


def pairs():
    """(gradient, model) that belong together."""
    return [
        (g, m) for g, gradient in cases.GRADIENTS.items() for m, model in cases.MODELS.items()
        if not model.model.n_extra
    ]  # fmt: skip


stochastic = pytest.mark.parametrize(
    ("gradient", "model"),
    cases.with_marks([(g, m) for g, m in pairs() if not cases.GRADIENTS[g].all_rows]),
)


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


@pytest.mark.slow_except(
    "blocks",
    "control_variate",
    "uniform_without_replacement-minibatch",
    "uniform_without_replacement-taylor",
)
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
    frame, posterior = scene.frame(kind="hessian"), scene.posterior
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
    frame = scene.frame(kind=kind)
    theta = scene.point() * (1.0 if point == "near" else 20.0)
    found = probe.Probe(frame, cases.GRADIENTS[gradient].gradient).estimate(position(frame, theta))
    size = np.abs(frame.F).max() * max(scene.posterior.scale(theta), 1e3)
    close(found, pulled_back(frame, scene.posterior.gradient(theta)), EXACT, size)


@stochastic
@pytest.mark.parametrize("storage", ["csr", pytest.param("float32", marks=pytest.mark.slow)])
def test_storage_makes_no_difference(gradient, model, storage):
    scene = make_scene(model, n_rows=30, storage=storage)
    frame = scene.frame(kind="hessian")
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
    frame, theta, rng = scene.frame(kind="hessian"), scene.point(), np.random.default_rng(5)
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
            frame = scene.frame(kind="none")
            kernels = probe.Probe(frame, cases.GRADIENTS[gradient].gradient, batch_size=len(rows))
            found.append(kernels.estimate(position(frame, theta), rows, coefficients))
        expected = with_prior.posterior.prior_gradient(theta)
        expected -= without.posterior.prior_gradient(theta)
        close(found[0] - found[1], expected, EXACT, 6.0 * with_prior.posterior.scale(theta))


@pytest.mark.parametrize("gradient", [g for g, c in cases.GRADIENTS.items() if not c.remembers])
def test_control_variates_have_no_noise_at_the_centre(gradient):
    # And the plain gradient has.
    scene = make_scene("logistic")
    frame, piece = scene.frame(kind="hessian"), cases.GRADIENTS[gradient].gradient
    kernels = probe.Probe(frame, piece, batch_size=1)
    origin = np.zeros(scene.posterior.dimension)
    estimates = np.array([kernels.estimate(origin, [i], [6.0]) for i in range(N)])
    noise = np.abs(estimates - estimates.mean(axis=0)).max()
    assert (noise < EXACT) if piece.uses_constant else (noise > 1.0)


# -- schemes --------------------------------------------------------------------------------------


def test_blocks_are_uniform_over_random_orders():
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


def test_preferential_probabilities_without_uniform_rows():
    weights = np.array([0.1, 1.0, 2.9])
    with pytest.warns(UserWarning, match="up to 13.3 times that of a uniform row"):
        p = Preferential(uniform_share=0.0).probabilities(weights)
    close(p, weights / 4.0, 1e-16)
    with pytest.raises(ValueError, match="never draw 1 of 3 rows"):
        Preferential(uniform_share=0.0).probabilities([0.0, 1.0, 3.0])
    close(Preferential(uniform_share=0.0).probabilities(np.zeros(3)), np.full(3, 1.0 / 3.0), 1e-16)
