"""The verdict on draws: silent where they are right, and it names what is wrong with others."""

import warnings
from functools import partial

import numpy as np
import pytest
from problems import STOCHASTIC, binary, quick

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianRobustRegression,
    Posterior,
)
from skbayes_sg.diagnostics import (
    check_draws,
    gaussian_kl,
    kernel_stein_discrepancy,
    score_moments,
    step_bias,
    verdict,
)
from skbayes_sg.diagnostics.step_bias import batch_error
from skbayes_sg.exceptions import SamplerConvergenceWarning
from skbayes_sg.posterior.moments import RunningMoments
from skbayes_sg.priors import HalfNormal, Laplace, Normal, StudentT
from skbayes_sg.recipe.request import Outcome


def gaussian(shift=0.0, ratio=1.0, d=3, rho=0.3, n=1000, seed=0):
    """Chains of an autoregression with standard deviations `ratio`, and scores of N(0, I)."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((4, d))
    draws = np.empty((4, n, d))
    for k in range(n):
        x = rho * x + np.sqrt(1.0 - rho**2) * rng.standard_normal((4, d))
        draws[:, k] = x
    draws = ratio * draws + shift
    return draws, -draws


def names(found):
    return {finding.name for finding in found.findings}


# -- moments by the scores ------------------------------------------------------------------------


def test_moments_of_a_gaussian_are_those_of_the_draws():
    # exactly: shift = mean - μ and ratio = empirical variance / σ², in one dimension
    rng = np.random.default_rng(0)
    draws = rng.uniform(2.0, 3.0, size=(2, 100, 1))
    found = score_moments(draws, -(draws - 1.0) / 0.5**2)
    assert np.isclose(found.shift[0], (draws.mean() - 1.0) / 0.5, rtol=1e-12)
    assert np.isclose(found.ratio[0], draws.var() / 0.25, rtol=1e-12)
    assert np.isclose(found.mean_ratio, found.ratio[0], rtol=1e-12)


def test_moments_of_a_correlated_gaussian():
    rng = np.random.default_rng(1)
    root = rng.normal(size=(3, 3)) * [[0.01], [1.0], [100.0]]
    cov, mu = root @ root.T, np.array([1.0, -2.0, 300.0])
    draws = mu + rng.normal(size=(4, 500, 3)) @ root.T
    wide = mu + 1.3 * (draws - mu) + 0.5 * np.sqrt(np.diag(cov))
    found = score_moments(wide, -(wide - mu) @ np.linalg.inv(cov))
    flat = wide.reshape(-1, 3)
    assert np.allclose(found.shift, (flat.mean(axis=0) - mu) / np.sqrt(np.diag(cov)), rtol=1e-6)
    assert np.allclose(found.ratio, flat.var(axis=0) / np.diag(cov), rtol=1e-6)
    assert np.isclose(found.mean_ratio, np.trace(np.linalg.inv(cov) @ np.cov(flat.T, ddof=0)) / 3)


def test_moments_with_weights_are_those_of_repeated_draws():
    rng = np.random.default_rng(2)
    draws, counts = rng.normal(size=(1, 60, 2)), np.arange(60) % 3 + 1
    scores = -draws + 0.2 * np.sin(draws)
    weighted = score_moments(draws, scores, weights=counts)
    repeated = score_moments(*(np.repeat(a, counts, axis=1) for a in (draws, scores)))
    assert np.allclose(weighted.shift, repeated.shift, rtol=1e-12)
    assert np.allclose(weighted.ratio, repeated.ratio, rtol=1e-12)


def test_errors_of_the_moments_are_what_they_scatter_by():
    found = [score_moments(*gaussian(n=400, seed=s)) for s in range(60)]
    shifts = np.array([f.shift for f in found]).ravel()
    stated = np.mean([f.shift_mcse for f in found])
    assert abs(shifts.std() / stated - 1.0) < 0.3  # 180 values: 5 %; 20 batches: 16 % each


# -- step bias ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("order", "factor"), [(1, 2.0), (2, 4.0 / 3.0)])
def test_step_bias_is_the_difference_extrapolated(order, factor):
    rng = np.random.default_rng(3)
    fine = rng.normal(size=(2, 300, 2))
    coarse = 1.1 * fine + [0.2, -0.1]
    found = step_bias(coarse, fine, sd=np.ones(2), order=order)
    assert np.allclose(found.mean, factor * (coarse - fine).mean(axis=(0, 1)), rtol=1e-12)
    assert np.allclose(found.sd, factor * np.log(1.1), rtol=1e-12)


@pytest.mark.slow
def test_step_bias_of_sgld_on_a_gaussian_is_that_of_the_law():
    # θ' = (1 - h/2) θ + √h ξ has the variance 1/(1 - h/4); two half steps on the same noise
    rng, h, n = np.random.default_rng(4), 0.5, 20_000
    x, y, found = np.zeros(4), np.zeros(4), np.empty((2, 4, n, 1))
    for k in range(n):
        one, two = rng.standard_normal((2, 4))
        x = (1.0 - h / 2) * x + np.sqrt(h) * (one + two) / np.sqrt(2.0)
        for xi in (one, two):
            y = (1.0 - h / 4) * y + np.sqrt(h / 2) * xi
        found[:, :, k, 0] = x, y
    bias = step_bias(*found[:, :, 100:], order=1)
    exact = np.log((1.0 - h / 8) / (1.0 - h / 4))  # 2 x half of the log of the variance ratio
    assert abs(bias.sd[0] - exact) < 5.0 * bias.sd_mcse[0] < 0.02
    assert abs(bias.mean[0]) < 5.0 * bias.mean_mcse[0]


def test_batch_errors():
    x = gaussian(rho=0.9, n=20_000)[0]
    expected = np.sqrt((1.0 + 0.9) / (1.0 - 0.9) / (4 * 20_000))
    assert (np.abs(batch_error(x) / expected - 1.0) < 0.5).all()
    assert np.isinf(batch_error(np.ones((1, 1, 2)))).all()


def test_step_bias_wants_pairs():
    with pytest.raises(ValueError, match="coarse and fine must have the same shape"):
        step_bias(np.zeros((2, 5, 1)), np.zeros((2, 4, 1)))
    with pytest.raises(ValueError, match="order must be positive, got 0"):
        step_bias(np.zeros((2, 5, 1)), np.zeros((2, 5, 1)), order=0)


# -- the verdict ----------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 3, 20])
def test_right_draws_are_trustworthy(d):
    found = check_draws(*gaussian(d=d))
    assert found.trustworthy
    assert found
    assert not found.findings
    assert repr(found).startswith("trustworthy\n  ok R-hat")


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("where", [np.s_[:], np.s_[1, 7, 2]])
def test_draws_that_are_no_numbers_are_not(value, where):
    draws, scores = gaussian()
    draws[where] = value
    for found in (
        check_draws(draws),
        check_draws(draws, scores),
        Posterior(draws, {"coef": (3,)}, ["a", "b", "c"], scores=scores).check(),
    ):
        assert not found
        assert names(found) == {"draws"}
        assert "parameters have draws that are NaN or infinite" in repr(found)


def test_draws_that_are_no_numbers_and_were_not_kept_are_not():
    draws, _ = gaussian()
    moments = RunningMoments(4, 1000, 3)
    moments.add(np.where(np.arange(1000)[:, None] == 3, np.nan, draws))
    assert names(check_draws(draws[:, 500:], moments=moments)) == {"draws"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"draws": np.zeros(9)}, r"draws must have the shape \(n_chains, n_draws, d\), got \(9,\)"),
        ({"draws": np.zeros((2, 0, 3))}, r"draws must have the shape .* got \(2, 0, 3\)"),
        ({"scores": np.zeros((4, 60, 2))}, r"same shape, got \(4, 60, 3\) and \(4, 60, 2\)"),
        ({"scores": np.full((4, 60, 3), np.nan)}, "scores must be finite"),
        ({"weights": np.ones(59)}, r"weights must have the shape \(60,\), got \(59,\)"),
        ({"weights": -np.ones(60)}, "weights must be finite and nonnegative"),
        ({"labels": ["a", "b"]}, r"labels must be 3 names, got \['a', 'b'\]"),
        ({"labels": "abc"}, "labels must be 3 names, got 'abc'"),
    ],
)
def test_arguments_that_do_not_match_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        check_draws(**{"draws": gaussian(n=60)[0]} | arguments)


# By what the planted bugs of a step or a gradient do to the stationary law of linear regression:
# shift of the mean in posterior standard deviations, ratio of standard deviations.
BUGS = {
    "noise sqrt(2h)": (0.0, 1.408), "noise h": (0.0, 0.245), "drift h": (0.0, 0.744),
    "no N/n": (0.65, 1.409), "N/(n+1)": (0.16, 1.127), "prior times N/n": (0.65, 0.733),
    "prior dropped": (0.45, 1.198), "prior over n": (0.20, 1.085),
    "full prior on every shard": (0.45, 0.97),
}  # fmt: skip


@pytest.mark.parametrize("bug", BUGS)
def test_laws_of_planted_bugs_are_not(bug):
    found = check_draws(*gaussian(*BUGS[bug]))
    assert not found
    assert names(found) & {"mean", "spread", "spread on average"}


def test_spread_is_looked_at_on_both_sides():
    for ratio in (0.5, 1.5):
        draws = ratio * gaussian(d=1)[0]
        assert "spread" in names(check_draws(draws, -draws))


def test_a_variance_that_is_off_is_never_in_order():
    # An error of 29 % matters. With many draws it is a finding, though it is below 20 % and five
    # Monte Carlo standard errors together; with few it is said that nobody knows.
    draws, scores = gaussian(ratio=np.array([1.0, 1.135, 1.0]), rho=0.0, n=1000)
    found = score_moments(draws, scores)
    assert verdict.RATIO < found.ratio[1] - 1.0 < verdict.RATIO + 5.0 * found.ratio_mcse[1]
    judged = check_draws(draws, scores)
    assert names(judged) == {"spread"}
    assert not judged
    few = check_draws(draws[:, :60], scores[:, :60])
    assert "spread" not in few.passed
    assert any(text.startswith("spread: a variance off by") for text in few.unknown)
    assert not names(few)


def test_excursions_that_ranks_hide_are_found():
    draws = gaussian(rho=0.0, n=1000)[0].copy()
    draws[:, 200:260, 1] += 40.0  # sixty of a thousand in a row
    assert "effective sample size" in names(check_draws(draws))


def test_gradient_noise_that_doubles_the_variance():
    draws, scores = gaussian(ratio=np.sqrt(2.0))
    noise = np.random.default_rng(1).normal(size=scores.shape)
    found = check_draws(draws, scores + noise, noisy=True)
    assert {"spread", "spread on average"} <= names(found)


def test_chains_that_have_not_arrived():
    draws, _ = gaussian(n=300)
    path = 8.0 * np.exp(-np.arange(300) / 60.0)[:, None]
    late = draws + np.array([1.0, -1.0, 0.5, 0.0])[:, None, None] * path
    assert "R-hat" in names(check_draws(late))
    assert not check_draws(late, -late)


def mixture(centre, rng, n=1000):
    """Draws of N(±centre, 1) with equal chances, and the scores of that mixture."""
    signs = rng.choice([-1.0, 1.0], size=(4, n, 1))
    draws = rng.standard_normal((4, n, 1)) + centre * signs
    return draws, lambda x: -x + centre * np.tanh(centre * x)


def test_a_mode_missed_is_seen_where_scores_tell_of_it():
    draws, score = mixture(1.5, np.random.default_rng(5))
    assert check_draws(draws, score(draws))
    one = np.abs(draws)  # as chains that never crossed
    found = check_draws(one, score(one))
    assert not found
    assert "KSD" in names(found)


def test_chains_in_different_modes():
    draws, score = mixture(6.0, np.random.default_rng(6))
    apart = np.abs(draws) * np.array([1.0, 1.0, 1.0, -1.0])[:, None, None]
    found = check_draws(apart, score(apart))
    assert "R-hat" in names(found)


def test_an_infinite_error_is_an_error():
    """It is not one that is not known, as NaN is."""
    draws, _ = gaussian()
    found = check_draws(draws, evidence={"update_error": np.full(3, np.inf)})
    assert names(found) == {"earlier rows"}
    assert check_draws(draws, evidence={"update_error": np.full(3, np.nan)})


@pytest.mark.parametrize(("error", "is_note", "found"), [(0.1, 0, 0), (0.3, 1, 1), (0.7, 0, 1)])
def test_errors_of_earlier_rows_are_noted_before_they_are_found(error, is_note, found):
    draws, _ = gaussian()
    verdict = check_draws(draws, evidence={"update_error": np.full(3, error)})
    own = [finding for finding in verdict.findings if finding.name == "earlier rows"]
    assert (len(own), sum(finding.is_note for finding in own)) == (found, is_note)
    assert bool(verdict) == (not found or bool(is_note))


def test_evidence_of_a_fit():
    draws = gaussian()[0]
    good = {
        "coupled_distance": 0.3, "mean_bias": np.array([0.1, 0.0, 0.0]),
        "mean_bias_mcse": np.full(3, 0.02), "noise_share": np.array([0.02, 0.01, 0.0]),
        "sd_bias": np.array([0.05, 0.0, -0.03]), "sd_bias_mcse": np.full(3, 0.02),
        "inflation": 0.02, "prior_conflict": np.zeros(3),
    }  # fmt: skip
    labels = ["age", "mass", "dose"]
    assert check_draws(draws, labels=labels, evidence=good)
    bad = {
        "step": {"coupled_distance": 0.7}, "noise": {"noise_share": np.array([0.0, 0.3, 0.0])},
        "step bias": {"mean_bias": np.array([0.0, 0.0, -0.5])},
        "step bias of spread": {"sd_bias": np.array([0.0, 0.3, 0.0])},
        "step and noise": {"inflation": 0.2},
    }  # fmt: skip
    for name, change in bad.items():
        found = check_draws(draws, labels=labels, evidence=good | change)
        assert names(found) == {name}
        assert not found
    assert (
        "noise adds 30.0% to a variance (mass)"
        in check_draws(draws, labels=labels, evidence=good | bad["noise"]).findings[0].text
    )


def test_a_conflict_of_prior_and_data_is_a_note():
    draws = gaussian()[0]
    found = check_draws(draws, evidence={"prior_conflict": np.array([0.0, 7.0, 1.0])})
    assert found
    assert names(found) == {"prior and data"}
    assert repr(found).startswith("trustworthy (with notes)\nnote prior and data: the data alone")


def test_conflict_is_the_distance_of_data_and_prior():
    # prior N(1, 2²), likelihood N(9, 1): posterior precision 1.25, mean (1/4 + 9)/1.25 = 7.4
    draws = 7.4 + np.sqrt(0.8) * np.array([[[-1.0], [1.0]]])
    outcome = Outcome(draws, {})
    found = outcome.conflict(Normal(loc=1.0, scale=2.0)._table((1,)))["prior_conflict"]
    assert np.isclose(found[0], (9.0 - 1.0) / np.sqrt(4.0 + 1.0), rtol=1e-12)
    assert outcome.conflict(Laplace(loc=1.0, scale=2.0)._table((1,)))["prior_conflict"][0] == 0.0


def test_where_the_prior_decides_the_mode_tells_what_data_alone_say():
    draws = 1.0 + 2.0 * np.array([[[-1.0], [1.0]]])  # those of the prior N(1, 2²)
    outcome = Outcome(draws, {}, by_data=(np.array([91.0]), np.array([6.0])))
    found = outcome.conflict(Normal(loc=1.0, scale=2.0)._table((1,)))["prior_conflict"]
    assert np.isclose(found[0], 90.0 / np.sqrt(4.0 + 36.0), rtol=1e-12)
    unknown = Outcome(draws, {}, by_data=(np.array([np.nan]), np.array([np.nan])))
    assert unknown.conflict(Normal(loc=1.0, scale=2.0)._table((1,)))["prior_conflict"][0] == 0.0


@pytest.mark.slow
def test_a_verdict_prints_on_one_screen_and_as_html():
    found = check_draws(*gaussian(0.5, 1.5, d=40), labels=[f"<b>{j}</b>" for j in range(40)])
    text = repr(found)
    assert len(text.splitlines()) < 25
    assert max(map(len, text.splitlines())) <= 100
    assert text.startswith("not trustworthy: ")
    assert "step_size='auto'" in text
    html = found._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>0" not in html
    assert html.count("<tr>") == html.count("</tr>") == len(found.findings) + len(found.passed)


def test_what_cannot_be_looked_at_is_said():
    assert check_draws(gaussian()[0]).unknown == (
        "mean, spread and KSD need scores, which were not kept",
    )


def test_a_parameter_that_stands_still_is_no_reason():
    draws, scores = gaussian()
    draws[..., 0], scores[..., 0] = 2.5, 0.0
    assert not names(check_draws(draws)) & {"R-hat", "effective sample size"}


@pytest.mark.parametrize("n", [1, 2])
def test_of_a_draw_or_two_nothing_is_known(n):
    """One draw stands still as well, which is no sign of agreement."""
    wrong = names(check_draws(gaussian(n=2)[0][:1, :n]))
    assert wrong >= {"R-hat", "effective sample size"}


# -- of a posterior, and in fits ------------------------------------------------------------------


def test_posterior_passes_on_what_it_knows():
    draws, scores = gaussian(ratio=1.5)
    shapes = {"coef": (3,)}
    weights = np.arange(1.0, 1001.0)
    posterior = Posterior(draws, shapes, ["a", "b", "c"], {}, weights, scores)
    direct = check_draws(draws, scores, weights=posterior.weights, labels=["a", "b", "c"])
    assert repr(posterior.check()) == repr(direct)
    n = 500
    kept = np.linspace(0, 999, n // 4).astype(int)
    expected = kernel_stein_discrepancy(
        draws[:, kept], scores[:, kept], weights=posterior.weights[kept]
    )
    assert np.isclose(posterior.ksd(n), expected, rtol=1e-12)
    assert (posterior.ksd(n).n_draws, posterior.ksd(n).scores) == (n, "all rows")
    noisy = posterior.with_scores(scores, "3 rows")
    assert noisy.ksd(n).squared < expected.squared  # without the diagonal
    assert gaussian_kl([0.0], [[1.0]], [0.0], [[1.0]]) == 0.0


def test_summary_shows_the_bias_by_the_step():
    draws = gaussian()[0]
    evidence = {
        "mean_bias": np.array([0.1, 0.2, 0.3]), "mean_bias_mcse": np.full(3, 0.01),
        "noise_share": np.array([0.02, 0.01, 0.0]),
    }  # fmt: skip
    posterior = Posterior(draws, {"coef": (3,)}, ["a", "b", "c"], evidence=evidence)
    summary = posterior.summary()
    assert list(summary.columns)[-3:] == ["bias", "bias_mcse", "noise"]
    assert np.array_equal(summary["bias"], [0.1, 0.2, 0.3])
    assert "0.02" in repr(summary)


def test_a_fit_measures_its_step():
    X, y = binary(300)
    options = {**STOCHASTIC, "n_draws": 200, "thin": 10, "step_size": 0.4, "batch_size": 30}
    model = quick(**options).fit(X, y)
    known = model.posterior_.evidence
    assert set(known) == {
        "coupled_distance", "inflation", "mean_bias", "mean_bias_mcse", "sd_bias", "sd_bias_mcse",
        "noise_share", "prior_conflict", "excursion",
    }  # fmt: skip
    assert known["coupled_distance"] == model.diagnostics_["coupled_distance"]
    scalars = {"coupled_distance", "inflation", "excursion"}
    assert all(np.shape(v) == (4,) for n, v in known.items() if n not in scalars)
    assert (known["noise_share"] > 0.0).all()
    # the largest share over directions is what was predicted, to the accuracy of 64 gradients
    assert known["noise_share"].max() < 2.0 * model.diagnostics_["noise_inflation"]
    assert known["noise_share"].max() > 0.2 * model.diagnostics_["noise_inflation"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skbayes_sg.exceptions.StepSizeWarning")
def test_a_fit_warns_of_draws_that_its_scores_speak_against():
    X, y = binary(300)
    options = {**STOCHASTIC, "sampler": "sgld", "batch_size": 250, "n_draws": 1000}
    with pytest.warns(SamplerConvergenceWarning, match="disagree with what is known .* spread"):
        model = quick(**options).set_params(step_size=2.5).fit(X, y)
    assert not model.posterior_.check()
    assert verdict.quick_findings(model.posterior_)


@pytest.mark.parametrize(
    ("evidence", "said"),
    [
        ({"noise_share": [0.02, 0.14, 0.0]}, "noise"),
        ({"noise_share": [0.02, 0.08, 0.0]}, None),
        ({"mean_bias": [0.0, 0.0, 0.3]}, "step bias"),
        ({"heavy_tail": [1.0, 0.0, 0.0]}, "heavy tail"),
        ({"heavy_tail": [0.25, 0.0, 0.0]}, None),
        ({"rounding": [0.0, 0.0, 2.0]}, "no noise"),
        ({"rounding": [0.0, 0.0, 0.5]}, None),
        ({"prior_conflict": [9.0, 0.0, 0.0]}, None),  # a note
    ],
)
def test_what_check_calls_bad_the_fit_warns_of(evidence, said):
    draws, scores = gaussian()
    evidence = {name: np.array(values) for name, values in evidence.items()}
    posterior = Posterior(draws, {"coef": (3,)}, list("abc"), scores=scores, evidence=evidence)
    found = verdict.quick_findings(posterior)
    assert [finding.name for finding in found] == ([said] if said else [])
    wrong = [f.name for f in posterior.check().findings if not f.is_note]
    assert wrong == [f.name for f in found]


@pytest.mark.parametrize(("slow", "said"), [(11.0, ["group effects"]), (9.0, [])])
def test_effects_that_mix_slowly_are_judged_while_they_are_drawn(slow, said):
    draws, _ = gaussian()
    posterior = Posterior(
        draws, {"coef": (3,)}, list("abc"), evidence={"effects_slow": np.array([slow])}
    )
    assert [finding.name for finding in posterior.check().findings] == said
    assert verdict.quick_findings(posterior) == []


def test_a_fit_warns_of_a_shape_that_no_moment_shows():
    # Two narrow clusters have the mean and the variance of N(0, 1), also by their scores.
    rng = np.random.default_rng(5)
    draws = rng.choice([-1.0, 1.0], size=(4, 1000, 1)) * rng.normal(1.0, 0.02, size=(4, 1000, 1))
    made = partial(Posterior, draws, {"coef": (1,)}, ["a"], scores=-draws)
    posterior, certified = made(), made(evidence={"pareto_k": np.array([0.3])})
    assert [finding.name for finding in verdict.quick_findings(posterior)] == ["KSD"]
    assert [finding.name for finding in posterior.check().findings] == ["KSD"]
    assert verdict.quick_findings(certified) == []


def test_equal_draws_are_no_two_draws_for_the_kernel():
    # A thousand independent draws, some of them several times, as resampling makes them.
    rng = np.random.default_rng(6)
    some = rng.normal(size=(1000, 20))
    for n in (500, 250):
        draws = some[rng.integers(n, size=1000)].reshape(4, 250, 20)
        assert "KSD" in check_draws(draws, -draws).passed
        alone = kernel_stein_discrepancy(draws, -draws)
        assert alone.z > 12.0  # which takes them for a thousand draws


@pytest.mark.parametrize("shape", ["constant", "line", "millionth", "more columns"])
def test_a_response_without_noise_is_told(shape):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 60 if shape == "more columns" else 2))
    line = -3.3 + X[:, 0]
    made = {"constant": np.full(40, -3.3), "line": line, "more columns": line}
    y = made.get(shape, line + 1e-6 * rng.standard_normal(40))
    told = {"constant", "line"}  # with more columns than rows any noise fits
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = BayesianLinearRegression(random_state=0).fit(X, y)
    said = ["no noise: so many rows are fitted exactly" in str(w.message) for w in caught]
    assert any(said) == (shape in told) == (not model.posterior_.check())
    known = model.posterior_.evidence["rounding"]
    assert (known[:-1] == 0.0).all()
    assert (known[-1] > 1.0) == (shape in told)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_robust_fit_of_mostly_equal_responses_has_no_noise():
    # 85 of 125 rows have the response 5, as answers on a scale do: the others become outliers.
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([1.0, 2.0, 3.0, 4.0, 5.0], [7, 5, 10, 18, 85]))
    X = rng.standard_normal((125, 2))
    for noise, told in ((0.0, True), (0.3, False)):
        model = BayesianRobustRegression(n_draws=300, random_state=0)
        model.fit(X, y + noise * rng.standard_normal(125))
        assert ("no noise" in names(model.posterior_.check())) == told


def separated(df):
    """Rows that a Student's t prior alone holds from infinity, and rows that need no prior."""
    x = np.round(np.random.default_rng(1).normal(size=60), 1)[:, None]
    mixed = np.random.default_rng(2).random(60) < 1.0 / (1.0 + np.exp(-x[:, 0]))
    options = {"fit_intercept": False, "n_draws": 1000, "n_warmup": "auto"}
    return quick(prior=StudentT(df=df), **options), x, x[:, 0] > 0, mixed


def test_limits_have_the_units_of_what_they_limit():
    evidence = {"inflation": np.array([0.3]), "heavy_tail": np.array([0.5])}
    draws = gaussian(rho=0.99, n=500)[0][..., :1]
    said = {f.name: f.text for f in check_draws(draws, evidence=evidence).findings}
    assert said["step and noise"].endswith("by 30.0%, the limit is 10%.")
    assert said["effective sample size"].endswith("of 2000 draws, the limit is 200.")
    assert said["heavy tail"].endswith("Student's t with df=2.")


@pytest.mark.filterwarnings("ignore::skbayes_sg.exceptions.SamplerConvergenceWarning")
@pytest.mark.parametrize("df", [1.0, 2.0])
def test_tails_of_a_prior_that_nothing_else_bounds_are_known(df):
    model, x, split, mixed = separated(df)
    assert model.fit(x, split).posterior_.evidence["heavy_tail"] == pytest.approx(1.0 / df)
    assert model.fit(x, mixed).posterior_.evidence["heavy_tail"] == 0.0


@pytest.mark.slow
def test_tails_of_the_common_shift_of_three_classes_are_no_tails():
    # Raw coefficients go far out together, where the priors of all three classes hold them back.
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 2))
    eta = 0.5 * X @ rng.normal(size=(3, 2)).T
    y = (eta + rng.gumbel(size=eta.shape)).argmax(axis=1)
    model = BayesianLogisticRegression(prior=StudentT(df=2.0, scale=0.2), random_state=3)
    assert model.fit(X, y).posterior_.evidence["heavy_tail"].max() == 0.0


@pytest.mark.slow
def test_a_class_that_a_column_separates_has_the_tail_of_its_prior():
    rng = np.random.default_rng(0)
    x = np.round(rng.normal(size=90), 1)[:, None]
    y = np.where(x[:, 0] > 0.0, 2, rng.random(90) < 0.5)
    model = BayesianLogisticRegression(prior=StudentT(df=1.0), random_state=0)
    with pytest.warns(SamplerConvergenceWarning, match="heavy tail"):
        model.fit(x, y)
    tails = dict(zip(model.posterior_.labels, model.posterior_.evidence["heavy_tail"], strict=True))
    assert tails["coef[2, x0]"] == 1.0


def test_heavy_tails_come_with_a_warning():
    model, x, split, mixed = separated(1.0)
    said = r"posterior itself is degenerate\. heavy tail: .* t with df=1\. Its"
    with pytest.warns(SamplerConvergenceWarning, match=said):
        model.fit(x, split)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(x, mixed)


def cauchy_pairs(seed):
    """Three pairs of columns, of which one of each pair is near the spike of its Cauchy prior."""
    rng = np.random.default_rng(seed)
    cause = rng.normal(size=(60, 3))
    X = np.repeat(cause, 2, axis=1) + 0.1 * rng.normal(size=(60, 6))
    return X, cause.sum(axis=1) + 0.5 * rng.normal(size=60)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [9103, 9104])
def test_the_outermost_of_several_modes_is_no_tail(seed):
    prior, noise = StudentT(df=1.0, scale=0.01), HalfNormal(1.0)
    model = BayesianLinearRegression(prior=prior, noise_prior=noise, random_state=0)
    assert model.fit(*cauchy_pairs(seed)).posterior_.evidence["heavy_tail"].max() == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("seed", [8511, 8512])
def test_draws_near_the_walls_of_separation_do_not_hide_a_heavy_tail(seed):
    X = np.random.default_rng(seed).normal(size=(40, 3))
    model = quick(prior=StudentT(df=1.0, scale=2.5), n_draws=1000, n_chains=4, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, X[:, 0] > 0.0)
    assert model.posterior_.evidence["heavy_tail"][0] == 1.0


def test_few_draws_are_no_reason_to_warn():
    draws, scores = gaussian(ratio=3.0)
    few = Posterior(draws[:, :49], {"coef": (3,)}, list("abc"), scores=scores[:, :49])
    assert verdict.quick_findings(few) == []
    assert "need 50 draws of each chain, of which 49 were kept" in repr(few.check())
    assert verdict.quick_findings(Posterior(draws, {"coef": (3,)}, list("abc"))) == []


@pytest.mark.parametrize(
    ("D", "S", "repeats"),
    [
        (5, 50, 40),
        pytest.param(20, 200, 20, marks=pytest.mark.slow),
        pytest.param(400, 50, 4, marks=pytest.mark.slow),
        pytest.param(1000, 100, 2, marks=pytest.mark.slow),
    ],
)
def test_correct_draws_of_many_parameters_raise_no_alarm(D, S, repeats):
    """Successive draws have the correlation 0.7. With errors of their own, 3 to 100 % did."""
    rng = np.random.default_rng(D)
    for _ in range(repeats):
        draws = rng.normal(size=(4, S + 30, D))
        for t in range(1, S + 30):
            draws[:, t] = 0.7 * draws[:, t - 1] + np.sqrt(1.0 - 0.7**2) * draws[:, t]
        draws = draws[:, 30:]
        posterior = Posterior(draws, {"coef": (D,)}, range(D), scores=-draws)
        assert verdict.quick_findings(posterior) == []


@pytest.mark.slow_for("300")
@pytest.mark.parametrize("D", [20, 300])
@pytest.mark.parametrize("what", ["mean", "spread"])
def test_one_wrong_parameter_of_many_is_found_by_check_and_fit(D, what):
    draws = np.random.default_rng(0).normal(size=(4, 1000, D))
    scores = -draws
    draws[..., 7] = draws[..., 7] + 0.4 if what == "mean" else 1.25 * draws[..., 7]
    scores[..., 7] = -draws[..., 7]
    posterior = Posterior(draws, {"coef": (D,)}, range(D), scores=scores)
    for findings in (verdict.quick_findings(posterior), posterior.check().findings):
        (found,) = [finding for finding in findings if finding.name == what]
        assert "(7)" in found.text


def test_many_numbers_are_checked_by_evenly_spaced_draws(monkeypatch):
    draws, scores = gaussian(ratio=3.0)
    whole = Posterior(draws, {"coef": (3,)}, list("abc"), scores=scores).check()
    monkeypatch.setattr(verdict, "MOST_NUMBERS", draws.size // 4)
    some = Posterior(draws, {"coef": (3,)}, list("abc"), scores=scores).check()
    names = [[finding.name for finding in found.findings] for found in (whole, some)]
    assert names[0] == names[1]
    limits = [found.findings[0].limit for found in (whole, some)]
    assert limits[1] > 1.3 * limits[0]  # twice, of a quarter of the draws


# -- better means ---------------------------------------------------------------------------------


def test_control_variates_of_a_posterior():
    rng = np.random.default_rng(7)
    draws = 3.0 + 2.0 * rng.normal(size=(4, 100, 3))
    scores = -(draws - 3.0) / 4.0
    posterior = Posterior(draws, {"coef": (1, 2), "intercept": (1,)}, list("abc"), scores=scores)
    for order in ("linear", "quadratic"):
        assert np.allclose(posterior.mean("coef", order), [[3.0, 3.0]], rtol=1e-12)
        assert np.allclose(posterior.mean(control_variate=order), 3.0, rtol=1e-12)
    assert np.allclose(posterior.std("intercept", "quadratic"), [2.0], rtol=1e-10)
    square = posterior.expectation(lambda p: p["coef"] ** 2, "quadratic")
    assert np.allclose(square, 13.0, rtol=1e-10)
    assert np.isclose(posterior.expectation(lambda p: p["a"]), posterior.mean("a"), rtol=1e-14)
    weights = posterior.control_weights("linear")
    assert np.isclose(weights.sum(), 1.0, rtol=1e-12)
    assert np.allclose(weights @ draws.reshape(-1, 3), 3.0, rtol=1e-12)
    with pytest.raises(ValueError, match="func must return an array whose shape"):
        posterior.expectation(lambda p: p.flat.sum())


def test_expectation_respects_weights():
    draws = np.array([[[0.0], [4.0]]])
    posterior = Posterior(draws, {"coef": (1,)}, ["a"], weights=[1, 3])
    assert posterior.expectation(lambda p: p["coef"]) == [3.0]


def test_standard_deviations_stay_above_zero_when_draws_are_few():
    rng = np.random.default_rng(8)
    draws = rng.standard_t(2, size=(2, 8, 2))
    posterior = Posterior(draws, {"coef": (2,)}, list("ab"), scores=rng.normal(size=draws.shape))
    assert (posterior.std(control_variate="quadratic") > 0.0).all()


@pytest.mark.slow
def test_predictions_by_control_variates():
    X, y = binary(300)
    means = []
    for seed in range(6):
        model = quick(sampler="hmc", n_draws=300, random_state=seed).fit(X, y)
        means.append(
            [model.predict_proba(X[:20], cv)[:, 1] for cv in (None, "linear", "quadratic")]
        )
    assert np.allclose(model.predict_proba(X, "quadratic").sum(axis=1), 1.0)
    scatter = np.std(means, axis=0).mean(axis=1)
    assert scatter[1] < 0.6 * scatter[0]
    assert scatter[2] < 0.6 * scatter[1]
    # two standard errors of the difference of two means of six
    assert np.abs(np.mean(means, axis=0)[0] - np.mean(means, axis=0)[2]).mean() < scatter[0]


def test_regressions_by_control_variates():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = X @ [1.0, -1.0] + rng.normal(size=60)
    options = {"noise": 1.0, "prior": "flat", "fit_intercept": False, "n_draws": 200}
    model = BayesianLinearRegression(sampler="hmc", random_state=0, **options).fit(X, y)
    exact = X @ np.linalg.lstsq(X, y)[0]
    assert np.abs(model.predict(X, control_variate="linear") - exact).max() < 1e-5  # float32
    assert np.abs(model.predict(X) - exact).max() > 1e-4


def test_few_draws_are_told_to_be_few():
    rng = np.random.default_rng(0)
    for n, said in ((20, "raise n_draws"), (200, "Raise n_warmup")):
        found = check_draws(rng.normal(size=(4, n, 1)) + 3.0 * np.arange(4)[:, None, None])
        assert found.findings[0].name == "R-hat"
        assert said in found.findings[0].remedy


@pytest.mark.slow
@pytest.mark.parametrize(("share", "trusted"), [(0.11, True), (0.09, False)])
def test_sizes_of_independent_draws_are_those_of_their_weights(share, trusted):
    """That which is measured of the worst of 200 parameters is smaller by chance."""
    draws = np.random.default_rng(0).standard_normal((4, 1000, 200))
    evidence = {"resampled_share": np.full(200, share)}
    assert not check_draws(draws, evidence=evidence)
    found = check_draws(draws, evidence=evidence | {"independent": np.ones(200)})
    assert bool(found) == trusted
    moments = RunningMoments(4, 1000, 200)
    moments.add(draws)
    of_all = check_draws(draws, evidence=evidence | {"independent": np.ones(200)}, moments=moments)
    for one in (found, of_all):
        assert f"{4000 * share:.0f} of 4000 draws" in str(one)


@pytest.mark.parametrize(("k", "trusted"), [(0.3, True), (0.8, False)])
def test_weights_that_hold_overrule_the_kernel(k, trusted):
    """A kernel Stein discrepancy that is too large is then a note, as fits do not compute it."""
    draws = np.random.default_rng(0).exponential(size=(4, 1000, 3)) - 1.0
    scores = -draws  # of a density with the same means and variances
    found = check_draws(draws, scores, evidence={"pareto_k": np.full(3, k)})
    kernel = [finding for finding in found.findings if finding.name == "KSD"]
    assert [finding.is_note for finding in kernel] == [trusted]
    assert bool(found) == trusted


@pytest.mark.parametrize(("shift", "noted"), [(0.19, False), (0.21, True)])
def test_a_shift_of_shards_that_may_be_chance_is_a_note(shift, noted):
    draws = np.random.default_rng(0).normal(size=(4, 500, 2))
    evidence = {"shards_disagree": np.zeros(1), "shards_shift": np.array([shift])}
    verdict = check_draws(draws, evidence=evidence)
    assert verdict
    assert [f.name for f in verdict.findings] == ["shards"] * noted
    assert str(verdict).startswith("trustworthy (with notes)" if noted else "trustworthy\n")
    assert "a mean that is off by 0.21 posterior sd" in str(verdict) or not noted
    with_scores = check_draws(draws, -draws, evidence=evidence)
    assert not with_scores.findings  # scores judge the means themselves


def test_shards_that_are_far_apart_are_a_note():
    draws = np.random.default_rng(0).normal(size=(4, 500, 2))
    evidence = {"shards_disagree": np.zeros(1), "shards_apart": np.array([1.4])}
    verdict = check_draws(draws, evidence=evidence)
    assert verdict
    assert [f.name for f in verdict.findings] == ["distance of shards"]
    assert "1.40 times as far apart" in str(verdict)
    assert not check_draws(draws, -draws, evidence=evidence).findings


@pytest.mark.parametrize("independent", [False, True])
def test_few_draws_are_noted(independent):
    """The Monte Carlo error of a mean, 1/√ESS posterior sd, is above .2 with 20 draws."""
    rng = np.random.default_rng(0)
    evidence = {"independent": np.ones(2)} if independent else {}
    for n, noted in ((5, True), (400, False)):
        verdict = check_draws(rng.normal(size=(4, n, 2)), evidence=evidence)
        found = [f for f in verdict.findings if f.name == "few draws"]
        assert bool(found) == noted
        assert all(f.is_note and f.value > 0.2 for f in found)
    single = check_draws(np.zeros((1, 1, 2)), evidence={"independent": np.ones(2)})
    assert [f.value for f in single.findings] == [1.0]
    assert single.trustworthy
