"""Runs on few rows: what is checked afterwards, and what follows from it."""

import warnings
from types import SimpleNamespace

import cases
import numpy as np
import pytest
from problems import binary
from scenes import make_scene, pulled_back

from skbayes_sg import BayesianLogisticRegression
from skbayes_sg.dynamics import BAOAB, SGLD
from skbayes_sg.exceptions import StepSizeWarning
from skbayes_sg.geometry.modes import Modes
from skbayes_sg.gradients import SAGA, SVRG, ControlVariate, Minibatch, Taylor
from skbayes_sg.inspection.full_scores import full_scores
from skbayes_sg.recipe import final_run, stochastic
from skbayes_sg.recipe.final_run import Production, step_of_draws
from skbayes_sg.recipe.request import Request
from skbayes_sg.recipe.stochastic import run_stochastic
from skbayes_sg.recipe.tuning import Refused, Tuner
from skbayes_sg.schedules import Constant, Polynomial, TwoPhase

N = 29


@pytest.fixture
def run(monkeypatch):
    """A run whose chains are not made: (h, n) of every attempt, for given results of the checks."""

    def run(distances, added=(0.0, 0.0), strayed=(0.0, 0.0), **asked):
        frame, found = make_scene("logistic", n_rows=1200).frame(kind="hessian"), []
        left, inflation, nats = list(distances), list(added), list(strayed)

        def produce(tuner, positions, request, watch):
            assert positions.shape == (4, 3)
            found.append((tuner.h, tuner.n))
            phi, chains = np.zeros((4, 8, 3)), [SimpleNamespace(state=np.ones((2, 3)))] * 4
            made = {"n_made": request.n_draws, "chosen": {"n_warmup": 0, "thin": 1}}
            return SimpleNamespace(**made, phi=phi, slopes=None), chains

        def measure(tuner, draws):  # inflation is √h/2 times this
            tuner.noise, tuner.fixed_noise = 0.0, inflation.pop(0) * 2.0 / np.sqrt(tuner.h)

        monkeypatch.setattr(stochastic, "_produce", produce)
        monkeypatch.setattr(stochastic, "_coupled", lambda *_: (left.pop(0), {}))
        monkeypatch.setattr(stochastic, "excursion", lambda *_: nats.pop(0))
        monkeypatch.setattr(stochastic, "outcome_of", lambda made, frame, *rest: rest)
        monkeypatch.setattr(
            Tuner, "tune", lambda self: vars(self).update(h=0.4) or np.zeros((4, 3))
        )
        monkeypatch.setattr(Tuner, "review", measure)
        modes = Modes((frame,), np.zeros(1))
        outcome = run_stochastic(modes, Request(**asked), np.random.default_rng(0))
        return found, outcome

    return run


def test_a_run_that_passes_is_kept(run):
    found, (diagnostics, evidence) = run([0.5])
    assert found == [(0.4, 10)]
    assert diagnostics["coupled_distance"] == evidence["coupled_distance"] == 0.5
    assert evidence["inflation"] == 0.0


@pytest.mark.parametrize(
    ("distances", "added", "strayed"),
    [
        ([0.51, 0.5], [0.0, 0.0], [0.0, 0.0]),
        ([0.1, 0.1], [0.11, 0.1], [0.0, 0.0]),
        ([0.1, 0.1], [0.0, 0.0], [12.5, 11.5]),
    ],
)
def test_a_run_that_fails_is_repeated_with_half_the_time_step_and_twice_the_rows(
    run, distances, added, strayed
):
    found, (diagnostics, evidence) = run(distances, added, strayed)
    assert evidence["excursion"] == strayed[1]
    np.testing.assert_allclose(found, [(0.4, 10), (0.1, 20)])
    assert diagnostics["coupled_distance"] == distances[1]


@pytest.mark.parametrize(
    ("distances", "added", "strayed"),
    [
        ([0.9, 0.6], [0.0, 0.0], [0.0, 0.0]),
        ([0.1, 0.1], [0.3, 0.2], [0.0, 0.0]),
        ([0.1, 0.1], [0.0, 0.0], [99.0, 12.5]),
    ],
)
def test_two_failures_call_for_all_rows(run, distances, added, strayed):
    with pytest.raises(Refused):
        run(distances, added, strayed)


def test_excursions_of_a_method_that_was_asked_for_are_evidence(run):
    found, (_, evidence) = run([0.1, 0.1], [0.0, 0.0], [99.0, 98.0], gradient=Taylor())
    assert len(found) == 2
    assert evidence["excursion"] == 98.0
    _, (_, evidence) = run([], [], [99.0], step_size=Polynomial(0.4))
    assert evidence["excursion"] == 99.0


def test_a_batch_that_was_asked_for_is_kept(run):
    found, _ = run([0.9, 0.1], batch_size=50)
    np.testing.assert_allclose(found, [(0.4, 50), (0.1, 50)])


def test_an_anchor_limits_the_rows(run):
    found, _ = run([0.9, 0.1], gradient=SVRG(anchor_size=15))
    np.testing.assert_allclose(found, [(0.4, 10), (0.1, 14)])


def test_a_step_that_was_asked_for_is_kept_and_judged(run):
    with pytest.warns(StepSizeWarning, match="not safe here"):
        found, _ = run([0.9], step_size=Constant(0.4))
    assert len(found) == 1
    with pytest.warns(StepSizeWarning, match="about 5% too large"):
        run([0.1], [0.11], step_size=Constant(0.4))


def test_methods_that_were_asked_for_are_judged(run):
    with pytest.warns(StepSizeWarning, match="not safe here"):
        found, _ = run([0.9, 0.9], gradient=Taylor())
    assert len(found) == 2


def test_steps_that_vary_are_not_compared(run):
    found, (diagnostics, _) = run([], [], step_size=Polynomial(0.4))
    assert len(found) == 1
    assert "coupled_distance" not in diagnostics


# -- the final run --------------------------------------------------------------------------------


def tuner_of(scene, h, n=5, **asked):
    """A tuner with everything settled, at the mode."""
    frame = scene.frame(scene.mode(), kind="hessian")
    request = Request(step_size=Constant(h), batch_size=n, **asked)
    return Tuner(frame, request, np.random.default_rng(0))


def test_messages_about_large_steps_do_not_stop_at_first_order():
    scene = make_scene("logistic", n_rows=1200)
    tuner = tuner_of(scene, 2.0, 1200, sampler=SGLD())
    tuner.h = 2.0
    assert tuner.biases()["step_inflation"] == pytest.approx(0.5)
    assert stochastic._told(tuner) == pytest.approx(1.0)
    with pytest.warns(StepSizeWarning, match=r"about 41% too large .*first order: step 0\.5,"):
        stochastic._warn_biased(tuner)
    tuner.h = 0.39
    assert stochastic._told(tuner) == pytest.approx(0.39 / 4.0)  # below the limit, as before
    tuner.h = 4.1
    assert stochastic._told(tuner) == pytest.approx(4.1 / 4.0)  # the law does not exist


@pytest.mark.parametrize(
    ("asked", "h", "thin", "warmup"),
    [
        ({"sampler": SGLD()}, 0.1, 20, 100),  # 2/h steps forget, and five times as many
        ({"sampler": SGLD()}, 1e-5, 1000, 100_000),
        ({"sampler": BAOAB()}, 1.0, 2, 10),
        ({"sampler": SGLD(), "gradient": SAGA(table="online")}, 0.1, 20, 100 + 10 * N // 5),
        ({"sampler": SGLD(), "thin": 3, "n_warmup": 7}, 0.1, 3, 7),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::skbayes_sg.exceptions.StepSizeWarning")
def test_warm_up_and_thinning(monkeypatch, asked, h, thin, warmup):
    steps = []
    monkeypatch.setattr(final_run, "sample", lambda s, c, n, t, **_: steps.append(n * t) or (0, c))
    monkeypatch.setattr(Production, "run", lambda self, *_: (self.thin, []))
    tuner = tuner_of(make_scene("gaussian", n_rows=N), h, **asked)
    made, _ = stochastic._produce(tuner, np.zeros((4, 3)), tuner.request, None)
    assert (made, sum(steps)) == (thin, warmup)


@pytest.mark.parametrize(("h", "slow"), [(1e-3, False), (4.1e-4, False), (3.9e-4, True)])
def test_chains_that_forget_slowly_are_told(monkeypatch, h, slow):
    # 2/h steps forget: 5000 of them leave tanh(1000/10 000) = 0.1 of the draws 1000 steps apart
    monkeypatch.setattr(final_run, "sample", lambda s, c, n, t, **_: (0, c))
    monkeypatch.setattr(Production, "run", lambda *_: 0)
    tuner = tuner_of(make_scene("gaussian", n_rows=N), h, sampler=SGLD())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        stochastic._produce(tuner, np.zeros((4, 3)), tuner.request, None)
    assert [w.category for w in caught] == [StepSizeWarning] * slow


@pytest.mark.slow
def test_share_of_the_noise(monkeypatch):
    # √h/2 times the covariance of a minibatch, along each parameter, over its variance.
    monkeypatch.setattr(stochastic, "NOISE_PROBES", 8000)
    scene, h = make_scene("gaussian", n_rows=N), 1e-4
    tuner = tuner_of(scene, h, gradient=Minibatch())
    phi = np.random.default_rng(0).standard_normal((2, 4000, 3))
    positions = phi[:, 0]
    setup = tuner.setup()
    chains = stochastic.new_chains(setup, positions, 0)
    rng = [stochastic.streams.child(chain.rng_rows) for chain in chains]
    slopes = [
        stochastic.slopes_at(setup, chain, x, r)
        for chain, x, r in zip(chains, phi, rng, strict=True)
    ]
    made = SimpleNamespace(phi=phi, slopes=np.stack(slopes))
    found = stochastic._noise_share(tuner, chains, made)
    C = 0.0
    for x in phi.reshape(-1, 3)[::100]:
        a = pulled_back(tuner.frame, scene.posterior.row_gradients(tuner.frame.theta(x)))
        C = C + cases.SUBSAMPLING["uniform"].covariance(a, 5, None) / 80
    F = tuner.frame.F
    expected = 0.5 * np.sqrt(h) * np.diag(F @ C @ F.T) / np.diag(F @ F.T)
    np.testing.assert_allclose(found, expected, rtol=0.1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skbayes_sg.exceptions.StepSizeWarning")
@pytest.mark.parametrize(
    ("n_anchor", "refresh", "h", "n_draws"), [(400, 50, 0.03, 800), (800, 20, 0.008, 3000)]
)
def test_share_of_the_noise_of_an_anchor_that_lasts(n_anchor, refresh, h, n_draws):
    """Rows of the anchor that are drawn anew every m steps: nearly m times their noise."""
    X, y = binary(4000, 3, seed=2)
    options = {"sampler": "sgld", "batch_size": 40, "random_state": 0, "n_draws": n_draws}
    gradient = SVRG(refresh=refresh, anchor_size=n_anchor)
    noisy = BayesianLogisticRegression(gradient=gradient, step_size=h, **options).fit(X, y)
    exact = BayesianLogisticRegression(random_state=0).fit(X, y)
    true = 1.0 - (exact.coef_std_ / noisy.coef_std_).ravel() ** 2
    said = noisy.posterior_.evidence["noise_share"][:3]
    assert true.mean() > 0.1
    assert said.mean() == pytest.approx(true.mean(), abs=0.08)


def test_scores_of_few_rows_are_exact():
    X, y = binary(300, 3)
    options = {"n_draws": 40, "n_chains": 2, "random_state": 0}
    model = BayesianLogisticRegression(gradient=ControlVariate(), **options).fit(X, y)
    posterior = model.posterior_
    assert posterior.scores_of == "all rows"
    exact = full_scores(model, X, y).scores
    np.testing.assert_allclose(posterior.scores, exact, atol=1e-5 * np.abs(exact).max())


def test_steps_of_the_warm_up_do_not_count():
    """A first phase with large steps that ends in the warm-up makes no draw too wide."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, 3))
    y = (X @ [1.0, 2.0, 0.0] + rng.normal(size=200) > 0).astype(int)
    options = {"sampler": "sghmc", "batch_size": 50, "n_draws": 300, "n_warmup": 400}
    found = []
    for switch in (200, 10_000):
        model = BayesianLogisticRegression(
            step_size=TwoPhase(0.5, 0.05, switch), random_state=1, **options
        )
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model.fit(X, y)
        wide = [w for w in told if "standard deviations about" in str(w.message)]
        found.append((len(wide), model.posterior_.evidence["inflation"]))
    (none, little), (one, much) = found
    assert (none, one) == (0, 1)
    assert little < 0.05 < 0.15 < much


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [(Constant(0.3), 0.3), (TwoPhase(9.0, 0.1, 4), 0.1), (TwoPhase(9.0, 0.5, 24), 8.575)],
)
def test_the_step_that_widens_draws_as_all_steps_do(schedule, expected):
    """Σh²/Σh over the steps after the warm-up, for weights ∝ h: (9² + 0.5²)/(9 + 0.5) here."""
    made = SimpleNamespace(chosen={"n_warmup": 4, "thin": 2}, n_made=20)
    assert step_of_draws(schedule, made) == pytest.approx(expected, rel=1e-2)
