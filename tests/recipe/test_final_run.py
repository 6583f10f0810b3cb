"""The final run: two types of draws, thinning, and the judgement."""

import dataclasses
import re
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scenes import make_scene

from skbayes_sg.diagnostics import convergence
from skbayes_sg.exceptions import LongRunWarning, SamplerConvergenceWarning, SamplerDivergedError
from skbayes_sg.gradients import Taylor
from skbayes_sg.recipe.final_run import (
    LONGEST,
    FinalDraws,
    Production,
    in_single_precision,
    outcome_of,
    raise_if_diverged,
)
from skbayes_sg.recipe.request import Request
from skbayes_sg.schedules import Constant, Cyclical, Polynomial


@pytest.fixture
def frame():
    return make_scene("logistic").frame(kind="hessian")


def draws_of(frame, slopes=True):
    rng = np.random.default_rng(0)
    phi = rng.standard_normal((2, 5, frame.target.n_parameters))
    found = {"thin": 1}
    slopes = rng.standard_normal(phi.shape) if slopes else None
    return FinalDraws(phi, slopes, None, np.ones((2, 5)), None, found, {"min_ess": 9.0}, "rows")


def test_the_outcome_is_in_the_parameters(frame):
    made = draws_of(frame)
    outcome = outcome_of(made, frame, {"coupled_distance": 0.1}, {"inflation": 0.2})
    np.testing.assert_array_equal(outcome.draws, frame.theta(made.phi))
    scores = frame.scores(made.slopes)
    np.testing.assert_array_equal(outcome.scores, scores.astype(np.float32))
    assert outcome.diagnostics == {"min_ess": 9.0, "coupled_distance": 0.1}
    assert outcome.evidence == {"inflation": 0.2}
    assert outcome_of(draws_of(frame, slopes=False), frame).scores is None


def test_nothing_is_changed_in_place(frame):
    made, same = draws_of(frame), draws_of(frame)
    outcome = outcome_of(made, frame, {"coupled_distance": 0.1})
    np.testing.assert_array_equal(made.phi, same.phi)
    np.testing.assert_array_equal(made.slopes, same.slopes)
    assert made.diagnostics == same.diagnostics
    for held in (made, outcome):
        with pytest.raises(dataclasses.FrozenInstanceError):
            held.weights = np.ones(5)


# -- thinning and the judgement -------------------------------------------------------------------


class Chains(Production):
    """A production whose draws are given: an autoregression ρ of one step, thinned."""

    rho = 0.0

    def _draw(self, chains, n_draws, watch=None, before=0):
        rng, rho = np.random.default_rng(len(self.made)), self.rho**self.thin
        draws = rng.standard_normal((4, n_draws, 2))
        for k in range(1, n_draws):
            draws[:, k] = rho * draws[:, k - 1] + np.sqrt(1.0 - rho**2) * draws[:, k]
        self.made.append((self.thin, n_draws))
        ends = chains[0].total + self.thin * np.arange(1, n_draws + 1)
        chains = [SimpleNamespace(total=ends[-1], used=np.full(n_draws, 10 * self.thin))] * 4
        return draws, None, ends, chains


def production(rho=0.0, share=0.5, **asked):
    """One that makes 4 x 400 draws."""
    setup = SimpleNamespace(is_metropolis=False, batch_size=10, n_rows=99, n_parameters=2,
        step_size=Constant(0.1), first_step=0.1, gradient=Taylor(), subsampling=None,
        dynamics=None)  # fmt: skip
    request = Request(n_draws=400, names=["age", "income"], **asked)
    frame = SimpleNamespace(kind="hessian", theta=lambda phi: phi)
    made = Chains(frame, setup, request, asked.get("thin") or 3, 30, share)
    made.rho, made.made = rho, []
    return made


def run(made):
    """What it has made, from chains at the start."""
    return made._keep_all([SimpleNamespace(total=0)] * 4, None)[0]


def test_enough_is_enough():
    made = production()
    found = run(made)
    assert made.made == [(3, 400)]
    assert found.chosen["thin"] == 3
    assert found.diagnostics["min_ess"] > 800
    np.testing.assert_array_equal(found.batch_sizes, np.full((4, 400), 10.0))


def test_chains_are_thinned_until_they_carry_half_of_the_draws():
    # ρ = 0.9: (1 - ρ³)/(1 + ρ³) = 0.157 of the draws, then 0.306, 0.557.
    made = production(0.9)
    found = run(made)
    assert made.made == [(3, 400), (6, 200), (12, 200)]
    assert found.phi.shape == (4, 400, 2)
    assert found.diagnostics["min_ess"] > 0.4 * 1600
    np.testing.assert_array_equal(found.batch_sizes, np.full((4, 400), 10.0))


def test_chains_are_judged_by_the_parameters_that_are_reported():
    made = production()
    made.request.parameters = np.square  # as σ is no linear function of log σ
    found = run(made)
    expected = convergence.ess_least(np.square(found.phi)).min()
    assert found.diagnostics["min_ess"] == expected
    assert expected != convergence.ess_least(found.phi).min()


def thinned(rho, share=0.5, seconds=0.0):
    """The values of `thin` of a run, and what it warned of."""
    made = production(rho, share)
    made.seconds = seconds
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run(made)
    return [thin for thin, _ in made.made], [w.category for w in caught]


@pytest.mark.parametrize(("seconds", "told"), [(7.0, "14"), (3.0, "12"), (2.0, None), (11.0, None)])
def test_doublings_that_make_a_run_long_are_told_once(seconds, told):
    """Two doublings; of 11 seconds it has been told before the run."""
    made = production(0.9)
    made.seconds = seconds / 1200.0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run(made)
    assert [thin for thin, _ in made.made] == [3, 6, 12]
    said = [str(w.message) for w in caught if w.category is LongRunWarning]
    assert len(said) == (told is not None)
    assert all(f"predicted to take {told} seconds or more" in text for text in said)


def test_thinning_towards_the_share_ends_after_three_times():
    # ρ²⁴ = 0.66, hence 0.2 of the draws: fewer than are aimed at, but enough to agree.
    assert thinned(0.983) == ([3, 6, 12, 24], [])


def test_chains_that_disagree_are_thinned_further():
    # ρ²⁴ = 0.89 leaves 0.06 of the draws, ρ⁴⁸ 0.12: above the limit of a tenth.
    assert thinned(0.995) == ([3, 6, 12, 24, 48], [])
    told = [SamplerConvergenceWarning]
    long = [LongRunWarning, *told]
    assert thinned(0.995, seconds=60.0 / (400 * 47)) == ([3, 6, 12, 24], long)


def test_a_draw_never_takes_more_steps_than_the_limit():
    made = production()
    draws = np.zeros((4, 400, 2))
    for thin, more in ((LONGEST // 2, True), (LONGEST // 2 + 1, False)):
        made.thin = thin
        assert made._should_double(0, draws, (20.0, 0, 1.0, 0)) == more


def test_chains_that_are_stuck_are_not_thinned_further():
    made = production()
    draws = np.zeros((4, 400, 2))
    for rhat, more in ((1.1, True), (1.5, False)):
        assert made._should_double(2, draws, (20.0, 0, rhat, 0))
        assert made._should_double(3, draws, (20.0, 0, rhat, 0)) == more


def test_thinning_ends_after_six_times(monkeypatch):
    made = production(0.9)
    monkeypatch.setattr(made, "_should_double", lambda *_: True)
    run(made)
    assert [thin for thin, _ in made.made] == [3, 6, 12, 24, 48, 96, 192]


def test_thinning_that_was_asked_for_is_kept():
    made = production(0.9, thin=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(made)
    assert made.made == [(2, 400)]


def test_excursions_count_though_ranks_hide_them():
    # Now and then the chains go far and stay for ten draws: that is nothing to the ranks, and most
    # of what the standard deviation is made of.
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((4, 1000, 2))
    for chain in range(4):
        for first in rng.choice(90, 4, replace=False) * 11:
            draws[chain, first : first + 10, 1] += 30.0
    bulk, least = convergence.ess_bulk(draws), convergence.ess_least(draws)
    assert bulk[1] > 2.0 * least[1]
    ess, slow, *_ = convergence.worst_of_chains(draws)
    assert (ess, slow) == (least[1], 1)
    assert least[1] < 0.2 * 4000 < 0.8 * least[0]
    assert production()._too_little(draws, (ess, 1, 1.0, 0))
    assert not production()._too_little(draws, (0.5 * 4000, 1, 1.0, 0))


def test_least_of_four_sizes():
    draws = np.random.default_rng(1).standard_normal((4, 500, 3)).cumsum(axis=1)
    draws[..., 1] = np.diff(draws[..., 1], prepend=0.0)
    sizes = [
        convergence.ess_bulk(draws), convergence.ess_tail(draws),
        *((draws.std(axis=(0, 1), ddof=1) / convergence.mcse_mean(draws)) ** 2)[None],
    ]  # fmt: skip
    assert (convergence.ess_least(draws) <= np.min(sizes, axis=0) * (1.0 + 1e-9)).all()
    weights = np.linspace(0.5, 1.5, 500)
    share = convergence.weight_efficiency(weights)
    np.testing.assert_allclose(
        convergence.ess_least(draws, weights), share * convergence.ess_least(draws)
    )


@pytest.mark.slow
def test_the_worst_of_many_parameters_is_among_those_looked_at():
    draws = np.random.default_rng(2).standard_normal((4, 200, 150))
    for k in range(1, 200):  # one that mixes slowly in its squares alone
        size = np.abs(draws[:, k - 1, 77])
        draws[:, k, 77] = np.sign(draws[:, k, 77]) * (0.95 * size + 0.3 * np.abs(draws[:, k, 77]))
    ess, slow, *_ = convergence.worst_of_chains(draws)
    assert slow == 77
    assert ess == convergence.ess_least(draws)[77] < 0.3 * convergence.ess_bulk(draws)[77]


@pytest.mark.parametrize(
    ("ess", "rhat", "told"),
    [(160.0, 1.05, False), (159.0, 1.0, True), (1600.0, 1.051, True), (1600.0, 1.0, False)],
)
def test_limits_of_the_judgement(ess, rhat, told):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = production()._judge(1600, (ess, 0, rhat, 1), [])
    assert found == {"min_ess": ess, "max_rhat": rhat}
    assert [w.category for w in caught] == [SamplerConvergenceWarning] * told
    for w in caught:
        assert "(age)" in str(w.message)
        assert f"R-hat {rhat:.3f} (income)" in str(w.message)


def test_a_chain_that_has_left_is_named(frame):
    where = np.zeros((2, frame.target.n_parameters))
    where[0, 1] = 1e7
    chain = SimpleNamespace(diverged=True, state=where, number=3, total=77)
    setup = SimpleNamespace(step_size=Constant(0.25), batch_size=3)
    away = np.abs(frame.F @ where[0]) / frame.width
    asked, auto = "step_size='auto', or one below 0.2,", "use step_size=0.025, a larger batch_size"
    noisy = "stable up to 1.5, so that it is the noise of batches of 3"
    for step_size, largest, remedy in ((0.25, 0.2, asked), (0.25, 1.5, noisy), (None, 1.5, auto)):
        request = Request(names=["a", "b", "c"], step_size=step_size)
        with pytest.raises(SamplerDivergedError, match=r"chain 3 diverged at step 77") as error:
            raise_if_diverged(frame, setup, [chain], request, largest)
        for text in ("step_size=0.25", "batch_size=3", f"{'abc'[away.argmax()]} was", remedy):
            assert text in str(error.value)
        assert ("batch_size='auto' or a larger one" in str(error.value)) == (remedy == noisy)
    where[0, 1] = np.nan
    with pytest.raises(SamplerDivergedError, match=r"[abc] was not finite\. "):
        raise_if_diverged(frame, setup, [chain], request, 1.5)


@pytest.mark.parametrize(
    ("sizes", "kind"),
    [([1.0, 0.0], np.float32), ([1e29, 1e-29], np.float32), ([1e31, 1.0], np.float64),
     ([1.0, 1e-31], np.float64)],
)  # fmt: skip
def test_scores_in_single_precision_where_they_fit(sizes, kind):
    assert in_single_precision(np.array(sizes) * np.ones((2, 3, 2))).dtype == kind


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"n_draws": 20}, "may be chance: raise n_draws"),
        ({"n_draws": 800}, r"Increase n_draws \(now 800\), thin or n_warmup \(now 3 and 30\)\.$"),
        ({"n_draws": 800, "thin": 1, "step_size": 0.1}, "or leave step_size and thin to 'auto'"),
        ({"n_draws": 800, "step_size": Cyclical(0.1, 50)}, "or leave step_size to 'auto'"),
    ],
)
def test_the_remedy_is_one_that_was_not_taken(given, said):
    run = production()
    run.request = dataclasses.replace(run.request, **given)
    with pytest.warns(SamplerConvergenceWarning, match=said):
        run._judge(1600, (10.0, 0, 1.5, 1), [])


def test_steps_of_a_schedule_that_have_become_small_are_named():
    """More draws would take smaller steps still; cycles come back to large ones."""
    chains = [SimpleNamespace(total=5000)]
    run, said = production(), []
    for schedule in (Polynomial(0.1), Cyclical(0.1, 50), Constant(0.1)):
        run.setup.step_size = schedule
        said.append(run._remedy(chains))
    assert re.search(r"fallen from 0\.1 to 0\.00\d+, .*use a constant step_size", said[0])
    assert "fallen" not in said[1] + said[2]
