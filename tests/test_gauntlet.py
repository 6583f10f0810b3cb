"""The gauntlet: its references agree with each other, its gates let right draws pass and see
planted errors, and a share of it finds no bug in the package."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from one_row import by_sums
from scipy import stats

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "examples" / "benchmarks" / "gauntlet.py"
sys.path.insert(0, str(SCRIPT.parent))

import gauntlet  # noqa: E402
from _gauntlet import references  # noqa: E402
from _gauntlet.density import Density  # noqa: E402
from _gauntlet.earlier import EARLIER  # noqa: E402
from _gauntlet.families import (  # noqa: E402
    FAMILIES,
    LDA,
    LINEAR,
    LOGISTIC,
    PMF,
    Case,
    make_dense,
)
from _gauntlet.later import LATER, after_drift, densities_of  # noqa: E402
from _gauntlet.real import REAL  # noqa: E402
from _gauntlet.sweeps import sweeps  # noqa: E402
from _gauntlet.tables import make  # noqa: E402
from _gauntlet.verdict import (  # noqa: E402
    agree,
    as_reported,
    compare,
    identities,
    is_poor,
    reported,
)
from _gauntlet.worker import _described  # noqa: E402

from skbayes_sg.priors import HalfNormal, Laplace, Normal, StudentT  # noqa: E402

WITHOUT_DENSITY = ("large", "ratings", "topics", "unusable", "wide")  # or too large for a test
SMALL = [name for name in FAMILIES if name not in WITHOUT_DENSITY]


def density_of(family, seed):
    return Density(make(family, seed))


def test_a_case_is_made_by_family_and_seed():
    one, other = make("plain", 3), make("plain", 3)
    assert str(one) == str(other)
    assert np.array_equal(one.y, other.y)
    assert len(FAMILIES) >= 20
    assert all(make(family, 0).X.shape[0] >= 10 for family in EARLIER)
    assert not set(LATER) & set(FAMILIES)
    assert {make(family, 0).estimator for family in ("ratings", "topics")} == {PMF, LDA}


@pytest.mark.parametrize("family", REAL)
def test_real_tables_are_rows_of_known_ones(family):
    for seed in range(20):
        made, again = make(family, seed), make(family, seed)
        np.testing.assert_array_equal(make_dense(made.X), make_dense(again.X))
        assert len(made.y) == made.X.shape[0] >= 5
        assert np.isfinite(make_dense(made.X)).all()
        if made.estimator == LOGISTIC:
            assert len(np.unique(made.y)) >= 2


@pytest.mark.parametrize("family", SMALL)
def test_slopes_are_those_of_the_density(family):
    density = density_of(family, 0)
    rng = np.random.default_rng(0)
    phi, direction = 0.1 * rng.normal(size=(2, density.D)), rng.normal(size=density.D)
    direction *= 1e-5 / np.linalg.norm(direction)
    U, g = density(phi)
    rise = density.value(phi + direction) - density.value(phi - direction)
    assert np.allclose(rise, 2.0 * g @ direction, rtol=1e-5, atol=1e-8 * np.abs(U).max())


@pytest.mark.parametrize("family", LATER)
def test_slopes_of_later_densities(family):
    """Of all that are integrated; and parameters that are reported tell where they were."""
    rng = np.random.default_rng(0)
    for seed in range(2):
        for density in densities_of(make(family, seed)):
            phi, direction = 0.1 * rng.normal(size=(2, density.D)), rng.normal(size=density.D)
            direction *= 1e-5 / np.linalg.norm(direction)
            U, g = density(phi)
            rise = density.value(phi + direction) - density.value(phi - direction)
            assert np.allclose(rise, 2.0 * g @ direction, rtol=1e-5, atol=1e-8 * np.abs(U).max())
            if getattr(density, "has_inverse", False):
                assert np.allclose(density.phi(density.theta(phi)), phi, atol=1e-10)


def normal_draws(rng, D=20, mean=0.0, sd=1.0):
    return mean + sd * rng.normal(size=(4, 1000, D))


def against_normal(draws):
    rng = np.random.default_rng(99)
    D = draws.shape[2]
    exact = references.Reference(
        "normal", rng.normal(size=(20_000, D)), np.full(20_000, 1 / 20_000), 20_000
    )
    fit = {"draws": draws, "labels": [f"x{j}" for j in range(D)], "independent": True}
    return compare(fit, exact).excess


@pytest.mark.slow
def test_gates_let_exact_draws_pass():
    rng = np.random.default_rng(0)
    assert max(against_normal(normal_draws(rng)) for _ in range(8)) < 1.0


@pytest.mark.parametrize("tail", [True, False])
def test_one_sample_of_a_heavy_tail_may_lack_what_another_has(tail):
    rng, own = np.random.default_rng(0), np.random.default_rng(1)
    z, draws = rng.normal(size=(4000, 1)), own.normal(size=(4, 1000, 1))
    draws[:, :6] = 12.0
    if tail:
        z[:4] = 12.0  # kurtosis 19, that of the draws 38
    reference = references.Reference("made", z, np.full(4000, 1 / 4000), 4000)
    fit = {"draws": draws, "labels": ["x0"], "independent": True}
    assert (compare(fit, reference).excess <= 1.0) == tail


@pytest.mark.parametrize("planted", [{"mean": 0.25}, {"sd": 1.2}, {"sd": 0.85}])
def test_gates_see_planted_errors(planted):
    draws = normal_draws(np.random.default_rng(0))
    draws[..., 7:8] = normal_draws(np.random.default_rng(1), D=1, **planted)
    assert against_normal(draws) > 1.0


@pytest.mark.slow
def test_what_all_classes_have_in_common_is_not_compared():
    rng = np.random.default_rng(0)
    labels = [*(f"coef[{k}, x{j}]" for k in range(3) for j in range(2)), "intercept[0]"]
    labels += ["intercept[1]", "intercept[2]"]
    draws, shift = normal_draws(rng, D=9), rng.normal(size=(4, 1000, 1))
    exact = references.Reference(
        "normal", rng.normal(size=(20_000, 9)), np.full(20_000, 1 / 20_000), 20_000
    )

    def excess(draws):
        fit = {"draws": draws, "labels": labels, "independent": True, "classes": True}
        return compare(reported(fit), as_reported(exact, fit)).excess

    common, one = draws.copy(), draws.copy()
    common[..., 1:6:2] += 5.0 + 3.0 * shift
    assert excess(draws) == pytest.approx(excess(common))
    one[..., 1:2] += 5.0 + 3.0 * shift
    assert excess(draws) < 1.0 < excess(one)


def with_one_predictor_moved(by):
    """A posterior of 40 columns by 12 rows, and its draws moved along its first predictor.

    By so many standard deviations of the predictor, of which each parameter gets little.
    """
    rng = np.random.default_rng(0)
    X, options = rng.normal(size=(12, 40)), {"noise": 1.0, "prior": Normal(scale=3.0)}
    density = Density(Case(LINEAR, X, rng.normal(size=12), options=options))
    exact = references.conjugate(density, rng)
    draws = exact.points[rng.permutation(len(exact.points))[:4000]]
    eta, labels = density.predictors(draws)
    gap = eta[:, 0] - eta[:, 0].mean()
    along = gap @ (draws - draws.mean(axis=0)) / (gap @ gap)
    draws = (draws + by * gap.std() * along).reshape(4, 1000, -1)
    assert len(labels) == 12
    names = [f"coef[x{j}]" for j in range(40)] + ["intercept"]
    return density, exact, {"draws": draws, "labels": names, "independent": True, "classes": False}


@pytest.mark.slow
def test_predictors_show_what_no_parameter_shows():
    for by, right in [(0.0, True), (0.6, False)]:
        density, exact, fit = with_one_predictor_moved(by)
        assert compare(reported(fit), as_reported(exact, fit)).excess <= 1.0
        seen = reported(fit, density)
        found = compare(seen, as_reported(exact, seen, density))
        assert (found.excess <= 1.0) == right
        assert right or "predictor[0, 0]" in found.text


@pytest.mark.slow
def test_draws_that_are_wrong_drift():
    for by, right in [(0.0, True), (0.6, False)]:
        density, _, fit = with_one_predictor_moved(by)
        seen = reported(fit, density)
        gone = [as_reported(r, seen, density) for r in after_drift(density, fit["draws"], 0)]
        assert [compare(seen, one).excess <= 1.0 for one in gone] == [right, right]
        assert agree(seen, *gone)
        assert (identities(fit, density).excess <= 1.0) == right


class Cliff:
    """A density that is nowhere a number, so that every move is refused."""

    A, origin, D = np.eye(2), np.zeros(2), 2

    def seconds(self, n):
        return 0.0

    def __call__(self, psi):
        return np.full(len(psi), np.nan), np.full(psi.shape, np.nan)


def test_chains_that_cannot_move_are_no_reference():
    rng = np.random.default_rng(0)
    assert references.drifted(Cliff(), rng, rng.normal(size=(400, 2))) is None


@pytest.mark.parametrize(
    ("means", "verdict"),
    [
        ((0.0, 3.0), "right"),
        ((3.0, 0.0), "no reference"),
        ((3.0, -3.0), "no reference"),  # they are wrong in different ways
        ((3.0,), "no reference"),
        ((3.0, 3.0), "bug"),
        ((3.0, -3.0, 3.0), "bug"),
    ],
)
def test_a_bug_needs_two_references_that_agree(monkeypatch, means, verdict):
    rng = np.random.default_rng(0)
    z, weights = rng.normal(size=(8000, 2)), np.full(8000, 1 / 8000)
    found = [references.Reference("made", z + mean, weights, 8000) for mean in means]
    monkeypatch.setattr(gauntlet, "posterior_of", lambda case, seed: (None, iter(found)))
    fit = {"draws": normal_draws(rng, D=2), "labels": ["a", "b"], "independent": True}
    case = SimpleNamespace(y=np.zeros(3))
    assert gauntlet.judged(case, fit | {"classes": False}, [], 0)[0] == verdict


def test_draws_that_are_right_by_luck():
    draws = normal_draws(np.random.default_rng(0), D=2)
    ours = {"draws": draws, "independent": False}
    assert not is_poor(ours)
    apart = draws + 3.0 * np.array([1.0, 1.0, -1.0, -1.0])[:, None, None]  # sides of a symmetry
    assert is_poor(ours | {"draws": apart})
    few = np.repeat(draws[:, ::20], 20, axis=1)
    assert is_poor(ours | {"draws": few})
    resampled = few.reshape(-1, 2)[np.random.default_rng(1).permutation(4000)].reshape(4, 1000, 2)
    assert is_poor({"draws": resampled, "independent": True})


def test_gates_see_a_tail_that_is_missing():
    draws = normal_draws(np.random.default_rng(0))
    draws[..., 3] = np.clip(draws[..., 3], -1.2, 1.2)
    assert against_normal(draws) > 1.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "seed"),
    [("tiny", 1), ("noise_priors", 1), pytest.param("bimodal", 0, marks=pytest.mark.slow)],
)
def test_references_agree(family, seed):
    """Closed form, quadrature, importance sampling and Hamiltonian runs, as far as they apply."""
    found = list(references.references(density_of(family, seed), seed))
    assert len(found) >= 2
    first = found[0]
    unit = np.sqrt(first.weights @ (first.points - first.weights @ first.points) ** 2)
    for other in found[1:]:
        ours, theirs = (r.weights @ r.points for r in (first, other))
        assert np.abs(ours - theirs).max() < (0.15 * unit).max(), (first.kind, other.kind)


@pytest.mark.parametrize(
    ("family", "seed"),
    [
        pytest.param("groups_linear", 6, marks=pytest.mark.slow),
        ("learned_scale", 2),
        pytest.param("horseshoe", 0, marks=pytest.mark.slow),
    ],
)
def test_scales_with_and_without_coefficients(family, seed):
    """Coefficients integrated out by algebra, and by importance sampling or Hamiltonian runs."""
    collapsed, joint = densities_of(make(family, seed))
    rng = np.random.default_rng(0)
    found = [next(references.in_turn(references.Free(d, rng), rng)) for d in (collapsed, joint)]
    ours, theirs = (r.weights @ np.log1p(np.abs(r.points)) for r in found)
    first = np.log1p(np.abs(found[0].points))
    unit = np.sqrt(found[0].weights @ (first - ours) ** 2)
    assert np.abs((ours - theirs) / unit).max() < 0.15, [r.kind for r in found]


@pytest.mark.slow
def test_a_mixture_by_two_references():
    """Weighted draws around one order of the labels, and chains that may change it."""
    (density,) = densities_of(make("mixtures", 2))
    rng = np.random.default_rng(0)
    white = references.Free(density, rng)
    found = [method(white, rng) for method in (references.importance, references.hamiltonian)]
    ours, theirs = (r.weights @ r.points for r in found)
    unit = np.sqrt(found[0].weights @ (found[0].points - ours) ** 2)
    assert np.abs((ours - theirs) / unit).max() < 0.15


def test_quadrature_of_a_closed_form():
    """One coefficient of known noise: a normal posterior."""
    case = make("plain", 0)
    case.estimator, case.X = "BayesianLinearRegression", case.X[:, :1]
    case.options = {"noise": 0.7, "fit_intercept": False, "prior": "flat"}
    found = references.quadrature(
        references.Whitened(Density(case), np.random.default_rng(0)), None
    )
    x, mean = case.X[:, 0], found.weights @ found.points[:, 0]
    sd = np.sqrt(found.weights @ (found.points[:, 0] - mean) ** 2)
    assert np.isclose(mean, x @ case.y / (x @ x), rtol=1e-6)
    assert np.isclose(sd, 0.7 / np.linalg.norm(x), rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("prior", [Laplace(scale=0.7), StudentT(df=3.0, scale=0.7)])
def test_sweeps_have_the_law_of_a_grid(prior):
    case = make("few_rows", 0)
    case.estimator, case.X, case.y = "BayesianLinearRegression", np.ones((1, 1)), np.array([1.5])
    case.options = {"prior": prior, "fit_intercept": False, "noise_prior": HalfNormal(scale=0.8)}
    b, noise = sweeps(Density(case), np.random.default_rng(0)).points.T
    laws = by_sums("laplace" if isinstance(prior, Laplace) else "student_t", 1.5)
    for found, (places, below) in zip((noise, b), laws, strict=True):
        share = np.interp(np.quantile(found, [0.05, 0.5, 0.95]), places, below)
        assert np.abs(share - [0.05, 0.5, 0.95]).max() < 0.03


@pytest.mark.slow
def test_sweeps_of_robust_regression_have_the_law_of_a_grid():
    case = make("few_rows", 0)
    case.estimator, case.X, case.y = "BayesianRobustRegression", np.ones((1, 1)), np.array([1.5])
    case.options = {
        "prior": Normal(scale=0.7),
        "fit_intercept": False,
        "noise_prior": HalfNormal(scale=0.8),
    }
    b, noise, _ = sweeps(Density(case), np.random.default_rng(0)).points.T
    for found, (places, below) in zip((noise, b), by_sums("normal", 1.5, True), strict=True):
        share = np.interp(np.quantile(found, [0.05, 0.5, 0.95]), places, below)
        assert np.abs(share - [0.05, 0.5, 0.95]).max() < 0.03


def two_modes(share, modes):
    """A density with modes at 0 and ten standard deviations away, of which some are known."""

    class Two:
        D, n, K, p, kind = 2, 1, 1, 1, "linear"

        def value(self, psi):
            laws = [(0.0, 1.0 - share), (10.0, share)]
            parts = [stats.norm(m).logpdf(psi[:, 0]) + np.log(w) for m, w in laws]
            return -np.logaddexp(*parts) - stats.norm.logpdf(psi[:, 1])

    white = references.Whitened.__new__(references.Whitened)
    white.density, white.D, white.origin, white.A = Two(), 2, np.zeros(2), np.eye(2)
    white.modes, white.factors = modes, [np.eye(2)] * len(modes)
    white.point = lambda psi: psi
    return white


def share_beyond(found):
    return found.weights @ (found.points[:, 0] > 5.0)


def test_two_modes_are_weighed():
    white = two_modes(0.7, [np.zeros(2), np.array([10.0, 0.0])])
    found = references.importance(white, np.random.default_rng(0))
    assert abs(share_beyond(found) - 0.7) < 4.0 * np.sqrt(0.21 / found.ess)


@pytest.mark.parametrize("share", [0.004, 1e-9])
def test_what_lies_where_draws_are_is_weighed(share):
    """Four of a thousand draws are far from the only mode that is known, rightly and wrongly."""
    white, rng = two_modes(share, [np.zeros(2)]), np.random.default_rng(0)
    draws = rng.normal(size=(4000, 2))
    draws[:16, 0] += 10.0
    found = references.importance_about(white, rng, draws)
    assert abs(share_beyond(found) - share) < 4.0 * np.sqrt(share / found.ess) + 1e-6


def test_a_crash_is_not_a_refusal():
    def described(work):
        try:
            work()
        except Exception as error:
            return _described(error)

    from skbayes_sg import BayesianLinearRegression

    assert described(lambda: BayesianLinearRegression(n_draws=-1).fit([[1.0]], [1.0]))["refused"]
    assert not described(lambda: np.linalg.cholesky(-np.eye(2)))["refused"]
    assert not described(lambda: np.zeros(2) + np.zeros(3))["refused"]


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_share_of_the_gauntlet_finds_no_bug(tmp_path):
    once = len(FAMILIES) + len(LATER)  # each family
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--fits", str(once), "--seed", "100"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert f"\n0 bugs in {once} fits" in done.stdout, done.stdout[-8000:] + done.stderr[-2000:]
