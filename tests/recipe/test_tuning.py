"""The rules of the tuner on small posteriors, where noise and curvature have formulas."""

from types import SimpleNamespace

import cases
import numpy as np
import pytest
from scenes import make_scene, pulled_back
from scipy import stats

from skbayes_sg import BayesianPoissonRegressor
from skbayes_sg.dynamics import BAOAB, SGLD
from skbayes_sg.exceptions import StepSizeWarning
from skbayes_sg.gradients import SAGA, SVRG, ControlVariate, Full, Minibatch, Taylor
from skbayes_sg.recipe import tuning
from skbayes_sg.recipe.request import Request
from skbayes_sg.recipe.tuning import Refused, Tuner
from skbayes_sg.schedules import Constant
from skbayes_sg.subsampling import Adaptive, AllRows, Preferential, Uniform

N = 29
DRAWS = np.random.default_rng(5).standard_normal((16, 3))
DRAWS = np.concatenate([DRAWS, -DRAWS])  # of mean zero


def tuner_of(scene=None, kind="hessian", **asked):
    """A tuner that knows its rows, at a step of 0.3."""
    asked.setdefault("batch_size", 5)
    scene = make_scene("logistic", n_rows=N) if scene is None else scene
    frame = scene.frame(scene.mode(), kind=kind)
    tuner = Tuner(frame, Request(**asked), np.random.default_rng(0))
    tuner.sampled = np.arange(N), np.ones(N)
    if tuner.h is None:
        tuner.h = 0.3
    return tuner


def largest(covariance):
    """Its largest eigenvalue."""
    return np.linalg.eigvalsh(covariance).max()


def rows_at(scene, frame, phi):
    """∇ℓ_i in φ, at a position of a chain."""
    return pulled_back(frame, scene.posterior.row_gradients(frame.theta(phi)))


def noise_of_one_row(scene, frame, places, p):
    """Largest eigenvalue of Σ a aᵀ/p, averaged over places (θ, reference) of a chain, in φ."""
    total = 0.0
    for phi, past in places:
        a = rows_at(scene, frame, phi)
        if past is not None:
            a = a - rows_at(scene, frame, past)
        total = total + (a.T / p) @ a / len(places)
    return largest(total)


# -- gradients that remember, and adaptive rows ----------------------------------------------------


@pytest.mark.parametrize(
    "gradient", [SAGA(), pytest.param(SVRG(), marks=pytest.mark.slow)], ids=str
)
def test_noise_of_a_memory_is_that_of_an_independent_position(gradient):
    # In a Gaussian posterior, with references that have forgotten θ: over all pairs of draws.
    scene = make_scene("gaussian", n_rows=N)
    tuner = tuner_of(scene, gradient=gradient)
    tuner._find_noise(np.full(N, 1.0 / N), DRAWS)
    pairs = [(a, b) for a in DRAWS for b in DRAWS]
    expected = noise_of_one_row(scene, tuner.frame, pairs, np.full(N, 1.0 / N))
    np.testing.assert_allclose(tuner.noise, expected, rtol=1e-6)
    assert tuner.fixed_noise == 0.0


def anchor_noise(scene, frame, n_anchor):
    """Covariance of the sum at the anchor, from n rows without replacement, over all draws."""
    covariance = cases.SUBSAMPLING["uniform_without_replacement"].covariance
    found = [covariance(rows_at(scene, frame, phi), n_anchor, None) for phi in DRAWS]
    return np.mean(found, axis=0)


def test_noise_of_an_anchor_of_some_rows():
    # An error of covariance V that lasts m steps acts like noise of covariance m V: with the
    # default m = N/n this is divided by the rows a step, with a given m it is not.
    scene, n_anchor = make_scene("gaussian", n_rows=N), 20
    V = largest(anchor_noise(scene, tuner_of(scene).frame, n_anchor))
    plain = tuner_of(scene, gradient=SVRG())
    plain._find_noise(np.full(N, 1.0 / N), DRAWS)
    default = tuner_of(scene, gradient=SVRG(anchor_size=n_anchor))
    default._find_noise(np.full(N, 1.0 / N), DRAWS)
    # (N - 1)/N, and the largest eigenvalue of a sum for the sum of the largest: 5 % together
    np.testing.assert_allclose((default.noise - plain.noise) / 5, N / 5 * V, rtol=0.06)
    assert default.fixed_noise == 0.0
    for m in (3, 11):
        tuner = tuner_of(scene, gradient=SVRG(anchor_size=n_anchor, refresh=m))
        tuner._find_noise(np.full(N, 1.0 / N), DRAWS)
        np.testing.assert_allclose(tuner.fixed_noise, m * V, rtol=0.06)
        np.testing.assert_allclose(tuner.noise, plain.noise, rtol=1e-6)
    complete = tuner_of(scene, gradient=SVRG(anchor_size=N, refresh=3))
    complete._find_noise(np.full(N, 1.0 / N), DRAWS)
    assert complete.fixed_noise == 0.0


@pytest.mark.parametrize("relaxation", [0.8, 5.0, 40.0])
def test_noise_that_steps_share_by_the_variance_of_an_autoregression(relaxation):
    """x ← ρ x + ξ, with a ξ for every three steps, as if each step had a ξ of its own."""
    gradient, rho, lags = SVRG(anchor_size=20, refresh=3), np.exp(-1.0 / relaxation), 1000
    level, m = gradient.lasting_noise(N, 5)
    factor = np.exp(-np.arange(lags) / relaxation)
    by_phase = []
    for phase in range(m):
        sums = np.bincount((np.arange(lags) + phase) // m, weights=factor)
        by_phase.append(level * (sums**2).sum())
    alone = gradient.shared_noise(N, 5, relaxation) / (1.0 - rho * rho)
    assert np.isclose(np.mean(by_phase), alone, rtol=1e-9)


def test_fixed_noise_limits_the_step():
    # Half of the inflation allowed is for what more rows do not reduce.
    tuner = tuner_of(batch_size=None, gradient=SVRG(anchor_size=20, refresh=500))
    tuner.rounds = 1
    tuner._find_noise(np.full(N, 1.0 / N), DRAWS)
    inflation = tuner.dynamics.noise_inflation(tuner.h) * tuner.fixed_noise
    np.testing.assert_allclose(inflation, 0.5 * tuning.INFLATION, rtol=1e-10)


@pytest.mark.parametrize(("n_rows", "n"), [(29, 5), (1000, 10), (10**6, 10), (10**6, 10**4)])
def test_an_online_table_has_seen_nearly_all_rows_when_it_settles(n_rows, n):
    steps = SAGA(table="online").settling_steps(n_rows, n)
    unseen = (1.0 - n / n_rows) ** steps  # chance of a row, for uniform rows
    assert 1e-6 < unseen < 1e-3
    for settled in (SAGA(), SVRG(), Taylor()):
        assert settled.settling_steps(n_rows, n) == 0


def test_pilots_wait_for_the_table():
    # The last steps that are thrown away begin after the table has settled.
    seen = []
    for table in ("full_pass", "online"):
        tuner = tuner_of(gradient=SAGA(table=table))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tuning, "sample", lambda s, c, n, thin, **_: (seen.append(thin), c))
            with pytest.raises(TypeError):  # "draws" are the None of the list's append
                tuner._pilot(first=False)
    assert seen[2] - seen[0] == 10 * N // 5


def test_reach_is_the_95_percent_quantile():
    # Five in a hundred draws are further from the centre, and a batch of them is above its size.
    tuner = tuner_of(gradient=ControlVariate(), subsampling=Adaptive())
    squares = np.arange(1.0, 1001.0)
    tuner._find_reach(np.sqrt(squares)[:, None] * [0.6, 0.8, 0.0])
    assert (squares > tuner.setup().reach).mean() == 0.05
    np.testing.assert_allclose(tuner._reach_ratio(), 950.05 / 500.5)
    # Without draws, of the Laplace approximation: χ² with three degrees of freedom, 1000 draws.
    fresh = tuner_of(gradient=ControlVariate(), subsampling=Adaptive())
    expected = stats.chi2(3).ppf(0.95) / 3.0
    assert abs(fresh._reach_ratio() / expected - 1.0) < 5.0 * 0.06  # the error of that quantile
    assert tuner_of(subsampling=Uniform())._reach_ratio() == 1.0


def test_noise_of_adaptive_batches():
    # One parameter: the noise of a row is c φ², and φ² n/q rows make it c q/n at every place.
    scene = make_scene("gaussian", n_rows=N, n_features=1, intercept=False)
    asked = {"gradient": ControlVariate(), "batch_size": 5}
    tuner, uniform = tuner_of(scene, subsampling=Adaptive(), **asked), tuner_of(scene, **asked)
    draws, p = DRAWS[:, :1], np.full(N, 1.0 / N)
    tuner._find_reach(draws)
    for one in (tuner, uniform):
        one._find_noise(p, draws)
    q = np.quantile(draws**2, 0.95)
    at = noise_of_one_row(scene, tuner.frame, [(draws[0], 0.0 * draws[0])], p)
    np.testing.assert_allclose(tuner.noise, at / draws[0] ** 2 * q, rtol=1e-10)
    assert tuner.noise > 1.5 * uniform.noise


# -- chances of rows ------------------------------------------------------------------------------


def posterior_weights(scene, frame, points):
    """Root mean squares of the remainders of rows, the noise of the Taylor gradient."""
    taylor = cases.GRADIENTS["taylor"].row_vectors
    found = [pulled_back(frame, taylor(scene.posterior, frame.theta(z), frame)) for z in points]
    return np.sqrt(np.mean([(a**2).sum(axis=1) for a in found], axis=0))


def gradient_weights(scene, frame, points):
    """Equation 11 of Putcha and others."""
    return np.linalg.norm(rows_at(scene, frame, np.zeros(3)), axis=1)


def hessian_weights(scene, frame, points):
    """Equation 16: in Hessian coordinates Σ is F Fᵀ."""
    H = scene.posterior.row_hessians(frame.centre.theta)
    return np.array([np.linalg.norm(frame.F.T @ h @ frame.F) for h in H])


WEIGHTS = {"posterior": posterior_weights, "gradient": gradient_weights, "hessian": hessian_weights}


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("scheme", [Preferential, Adaptive])
def test_chances_follow_the_weights_that_were_asked_for(weights, scheme):
    scene = make_scene("logistic", n_rows=N)
    options = {"preferential": True} if scheme is Adaptive else {}
    piece = scheme(weights=weights, uniform_share=0.2, **options)
    tuner = tuner_of(scene, subsampling=piece, step_size=Constant(0.3), batch_size=12)
    tuner._choose_scheme()
    tuner._measure_noise(DRAWS)
    chances = {}
    for name, formula in WEIGHTS.items():
        w = formula(scene, tuner.frame, DRAWS)
        chances[name] = 0.8 * w / w.sum() + 0.2 / N
    np.testing.assert_allclose(tuner.chances, chances.pop(weights), rtol=1e-6)
    for other in chances.values():
        assert np.abs(tuner.chances / other - 1.0).max() > 0.1


def test_rows_are_uniform_while_ten_are_enough():
    scene = make_scene("gaussian", n_rows=N)
    tuner = tuner_of(scene, batch_size=10, gradient=Taylor())  # no noise at all
    tuner._choose_scheme()
    tuner = tuner_of(scene, batch_size=10, gradient=ControlVariate(), step_size=Constant(0.9))
    tuner._choose_scheme()
    assert isinstance(tuner.scheme, Preferential)
    assert tuner.chances.max() > tuner.chances.min()


# -- step and rows --------------------------------------------------------------------------------


def known(growth=0.0, noise=0.0, fixed=0.0, **asked):
    """A tuner with measurements that are given, of a posterior of unit curvature."""
    asked = {"gradient": Taylor(), "batch_size": None} | asked
    tuner = tuner_of(**asked)
    tuner.growth, tuner.noise, tuner.fixed_noise = growth, noise, fixed
    return tuner


@pytest.mark.parametrize(("growth", "h"), [(0.0, 1.0), (0.2, 1.0), (0.6, 0.5), (30.0, 0.01)])
def test_step_of_an_exact_dynamics_is_limited_by_the_growth_of_the_curvature(growth, h):
    tuner = known(growth)
    tuner._choose_step()
    np.testing.assert_allclose(tuner.h, h, rtol=1e-8)


@pytest.mark.parametrize("growth", [0.0, 1.0, 9.0])
def test_step_of_sgld_is_limited_by_its_bias(growth):
    # Its stationary variance along curvature a is 1/(1 - h a/4) of what it should be.
    tuner = known(growth, sampler=SGLD())
    tuner._choose_step()
    variance = 1.0 / (1.0 - tuner.h * (1.0 + growth) / 4.0)
    np.testing.assert_allclose(variance, 1.02, atol=5e-4)


def test_limits_of_the_step():
    tuner = known()
    tuner._choose_step(at_most=0.2)
    assert tuner.h == 0.2
    given = known(1e6, step_size=Constant(0.7))
    given._choose_step()
    assert given.h == 0.7


@pytest.mark.parametrize("asked", [{}, {"batch_size": 5}, {"sampler": SGLD()}], ids=str)
@pytest.mark.parametrize("much", [{"growth": 1e40}, {"noise": 1e90}, {"fixed": 1e90}], ids=str)
def test_guesses_at_the_posterior_leave_a_step_for_pilots(much, asked):
    # They reach regions where the mean of a count is 1e40, and the posterior does not.
    tuner = known(**much, **asked)
    tuner._choose_step()
    tuner._choose_rows()
    assert tuner.h >= tuning.PILOT_STEP
    tuner.rounds = 1
    tuner._choose_step()
    tuner._choose_rows()
    assert tuner.h < 1e-12


def test_noise_under_former_probabilities_does_not_limit_the_step(monkeypatch):
    tuner = known(noise=1e9)
    tuner.rounds, tuner.h, tuner._weights, left = 1, 0.25, np.ones(N), [1e9, 2.0]
    monkeypatch.setattr(Tuner, "_noise_at", lambda *_: (left.pop(0), 0.0))
    monkeypatch.setattr(Tuner, "_row_weights", lambda *_: lambda rows: np.ones(len(rows)))
    tuner.scheme = Preferential()
    tuner._measure_noise(DRAWS)
    np.testing.assert_allclose(tuner.h, (2.0 * 0.02 * 7 / 2.0) ** 2)


def test_rows_make_the_noise_two_percent():
    # Not more than a quarter of them, 7, where the step is free; BAOAB: noise C adds √h/2 C.
    tuner = known(noise=2.0)
    tuner.h = 0.25
    tuner._choose_rows()
    assert tuner.n == 7
    np.testing.assert_allclose(tuner.h, (2.0 * 0.02 * 7 / 2.0) ** 2)
    np.testing.assert_allclose(tuner._inflation(), 0.02)
    tuner = known(noise=2.0, step_size=Constant(0.25))
    tuner._choose_rows()
    assert (tuner.n, tuner.h) == (25, 0.25)  # 2/25/4 = 2 %


def test_rows_of_many():
    tuner = known(noise=30.0)
    tuner.target = SimpleNamespace(n_rows=10**6)
    tuner.h = 0.25
    tuner._choose_rows()
    assert tuner.n == 375  # 30/375/4 = 2 %
    assert tuner._is_quiet()
    tuner.n -= 1
    assert not tuner._is_quiet()
    tuner.fixed_noise = 0.04  # of which a quarter is 1 %: what is left takes twice the rows
    tuner._choose_rows()
    assert tuner.n == 750
    tuner.noise = 1e-9
    tuner._choose_rows()
    assert tuner.n == tuning.MIN_ROWS


def test_a_given_batch_makes_the_step_small():
    tuner = known(noise=1.0, batch_size=5)
    tuner._choose_step()
    np.testing.assert_allclose(tuner.h, (2.0 * 0.02 * 5) ** 2, rtol=1e-8)
    assert tuner._inflation() <= 0.02 * (1.0 + 1e-12)
    tuner._choose_rows()
    assert tuner.n == 5


def test_too_many_rows_are_refused_where_the_choice_is_open():
    for asked, n, refused in [({}, 8, True), ({}, 7, False), ({"gradient": Taylor()}, 8, False)]:
        tuner = tuner_of(batch_size=None, **{"gradient": None} | asked)
        tuner.scheme, tuner.n = Uniform(), n
        if refused:
            with pytest.raises(Refused):
                tuner._refuse_many_rows()
        else:
            tuner._refuse_many_rows()


@pytest.mark.parametrize(("dynamics", "ratio"), [(SGLD(), 2.0), (BAOAB(), 4.0)], ids=str)
def test_retreat_halves_the_time_step_and_takes_four_times_the_rows(dynamics, ratio):
    tuner = known(sampler=dynamics, gradient=Taylor())
    tuner.h, tuner.n = 0.4, 5
    tuner._retreat()
    assert (tuner.h, tuner.n) == (0.4 / ratio, 20)
    tuner._retreat()
    assert tuner.n == N
    given = known(step_size=Constant(0.4), batch_size=5)
    given._retreat()
    assert (given.h, given.n) == (0.4, 5)


def test_what_is_reported():
    tuner = known(growth=0.5, noise=2.0, fixed=0.1)
    tuner.h, tuner.n = 0.04, 20  # √h/2 = 0.1
    found = tuner.biases()
    assert found["curvature_growth"] == 0.5
    np.testing.assert_allclose(found["noise_inflation"], 0.1 * (2.0 / 20 + 0.1))
    assert found["step_inflation"] == 0.0
    sgld = known(sampler=SGLD())
    sgld.h = 0.08
    np.testing.assert_allclose(sgld.biases()["step_inflation"], 0.02, rtol=1e-8)


# -- pieces ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "gradient", "scheme"),
    [
        ({}, Full, AllRows),
        ({"gradient": Minibatch()}, Minibatch, Uniform),
        ({"subsampling": Preferential()}, Taylor, Preferential),
        ({"batch_size": 5}, Taylor, Uniform),
        ({"batch_size": N}, Full, AllRows),
        ({"gradient": Full()}, Full, AllRows),
        ({"subsampling": AllRows()}, Full, AllRows),
    ],
    ids=str,
)
def test_pieces_with_few_rows(asked, gradient, scheme):
    tuner = tuner_of(**{"batch_size": None} | asked)
    assert isinstance(tuner.gradient, gradient)
    assert type(tuner.scheme) is scheme
    assert tuner.full == (scheme is AllRows)
    assert (tuner.n == N) == tuner.full


def test_without_a_hessian_the_gradient_is_a_control_variate():
    scene = make_scene("logistic", n_rows=N)
    frame = scene.frame(kind="diagonal", dense=False)
    tuner = Tuner(frame, Request(batch_size=5), np.random.default_rng(0))
    assert isinstance(tuner.gradient, ControlVariate)


# -- pilots ---------------------------------------------------------------------------------------


def test_a_posterior_that_is_calm_and_quiet_needs_no_pilot(monkeypatch):
    monkeypatch.setattr(Tuner, "_pilot", lambda *_, **__: pytest.fail("a pilot"))
    tuner = tuner_of(make_scene("gaussian", n_rows=N), gradient=Taylor())
    positions = tuner.tune()
    assert positions.shape == (4, 3)
    assert tuner.h == 1.0 / tuner.frame.curvature_range[1]


def steps_of_pilots(monkeypatch, steps):
    """A tuner whose pilots measure these steps; None stands for a pilot that diverges."""
    tuner, left = tuner_of(gradient=Taylor()), list(steps)
    tuner.h = 0.5

    def pilot(self, first):
        assert first == (len(left) == len(steps))
        return None if left[0] is None and left.pop(0) is None else DRAWS.reshape(2, 16, 3)

    monkeypatch.setattr(Tuner, "_pilot", pilot)
    monkeypatch.setattr(Tuner, "_measure", lambda self, draws: vars(self).update(h=left.pop(0)))
    return tuner, left


def test_pilots_end_when_two_agree(monkeypatch):
    tuner, left = steps_of_pilots(monkeypatch, [0.01, 0.2, 0.1, 9.9])
    tuner._pilot_rounds()
    assert (tuner.rounds, left) == (3, [9.9])
    np.testing.assert_allclose(tuner.h, np.sqrt(0.2 * 0.1))


def test_one_pilot_is_never_enough(monkeypatch):
    tuner, _ = steps_of_pilots(monkeypatch, [0.5, 0.5])
    tuner._pilot_rounds()
    assert tuner.rounds == 2


def test_a_pilot_that_diverged_is_repeated_with_a_smaller_step(monkeypatch):
    tuner, _ = steps_of_pilots(monkeypatch, [None, 0.125, 0.125])
    tuner.request.batch_size = None
    tuner.n = 5
    tuner._pilot_rounds()
    assert (tuner.rounds, tuner.h) == (3, 0.125)


def test_the_step_of_a_last_pilot_that_diverged_is_not_used(monkeypatch):
    tuner, _ = steps_of_pilots(monkeypatch, [0.01, 0.2, 0.01, 0.16, None])
    with pytest.warns(StepSizeWarning, match="not settled"):
        tuner._pilot_rounds()
    np.testing.assert_allclose(tuner.h, np.sqrt(0.01 * 0.16 / 4.0))


def test_pilots_that_never_agree_are_told(monkeypatch):
    tuner, _ = steps_of_pilots(monkeypatch, [0.01, 0.2, 0.01, 0.2, 0.01])
    with pytest.warns(StepSizeWarning, match="not settled after 5 pilot runs"):
        tuner._pilot_rounds()


def test_steps_that_lead_nowhere_are_refused_before_pilots():
    """A column of 1e6 beside one of unit size, without a preconditioner."""
    rng = np.random.default_rng(0)
    rows = np.c_[1e6 + rng.integers(0, 10, 3000), rng.standard_normal(3000)]
    counts = rng.poisson(np.exp(0.1 * (rows[:, 0] - 1e6) + 0.3 * rows[:, 1] - 1.0))
    model = BayesianPoissonRegressor(preconditioner=None, n_draws=20, random_state=0)
    with pytest.raises(ValueError, match="preconditioner=None a chain needs"):
        model.fit(rows, counts)
    frame = make_scene("logistic", n_rows=30).frame(kind="none")
    tuner = Tuner(frame, Request(), np.random.default_rng(0))
    tuner.h = 1e-30
    with pytest.raises(Refused):
        tuner._refuse_hopeless_steps()
