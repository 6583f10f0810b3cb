"""The posterior: access to draws, what is computed from them, how they print; diagnostics."""

import copy
import pickle

import numpy as np
import pytest
from arviz_stats.base import array_stats

from skbayes_sg import Posterior
from skbayes_sg.diagnostics import convergence
from skbayes_sg.plots._base import chosen_parameters

LABELS = ["coef[a]", "coef[b]", "coef[c]", "coef[d]", "coef[e]", "coef[f]", "i0", "i1"]


@pytest.fixture
def posterior():
    flat = np.random.default_rng(0).normal(size=(4, 250, 8)) * np.arange(1, 9)
    shapes = {"coef": (2, 3), "intercept": (2,)}
    return Posterior(flat, shapes, LABELS, {"sampler": "hmc", "thin": 2})


def test_variables_and_parameters_by_name(posterior):
    assert posterior.names == ("coef", "intercept")
    assert list(posterior) == ["coef", "intercept"]
    assert len(posterior) == 2
    assert (posterior.n_chains, posterior.n_draws) == (4, 250)
    assert posterior["coef"].shape == (4, 250, 2, 3)
    assert posterior["intercept"].shape == (4, 250, 2)
    assert np.array_equal(posterior["coef"][..., 1, 0], posterior.flat[..., 3])
    assert np.array_equal(posterior["intercept"], posterior.flat[..., 6:])
    assert np.array_equal(posterior["coef[d]"], posterior.flat[..., 3])
    assert "coef" in posterior
    assert "i1" in posterior
    assert "noise" not in posterior


def test_unknown_name(posterior):
    with pytest.raises(KeyError, match=r"'noise'.*\['coef', 'intercept'\]"):
        posterior["noise"]
    with pytest.raises(KeyError, match="'noise'"):
        posterior.mean("noise")


def test_unknown_names_have_suggestions():
    draws = np.zeros((1, 2, 3))
    one = Posterior(draws, {"coef": (2,), "intercept": ()}, ["coef[age]", "coef[bmi]", "intercept"])
    for look in (one.__getitem__, one.mean, lambda name: chosen_parameters(one, name)):
        with pytest.raises(KeyError, match=r"Did you mean 'coef\[age\]'\?"):
            look("age")
    with pytest.raises(KeyError, match=r"Did you mean 'intercept'\?"):
        one["intercpt"]
    with pytest.raises(KeyError) as caught:
        one["zzz"]
    assert "mean" not in str(caught.value)
    labels = ["coef[no, age]", "coef[yes, age]", "coef[maybe, age]"]
    with pytest.raises(KeyError, match=r"'coef\[no, age\]' or 'coef\[yes, age\]' or"):
        Posterior(draws, {"coef": (3, 1)}, labels)["age"]


def test_moments_and_quantiles_are_those_of_the_pooled_draws(posterior):
    pooled = posterior.flat.reshape(-1, 8)
    for name, columns, shape in (("coef", slice(0, 6), (2, 3)), ("intercept", slice(6, 8), (2,))):
        own = pooled[:, columns]
        assert np.allclose(posterior.mean(name), own.mean(axis=0).reshape(shape), atol=1e-13)
        assert np.allclose(posterior.std(name), own.std(axis=0).reshape(shape), rtol=1e-13)
        median = np.sort(own, axis=0)[[499, 500]].mean(axis=0).reshape(shape)
        assert np.allclose(posterior.quantile(0.5, name), median, rtol=1e-13)
    assert posterior.mean().shape == posterior.std().shape == (8,)
    assert np.isclose(posterior.mean("coef[b]"), pooled[:, 1].mean())
    assert posterior.quantile([0.1, 0.5, 0.9], "coef").shape == (3, 2, 3)


def test_interval_leaves_out_as_much_below_as_above(posterior):
    lower, upper = posterior.interval(0.8, name="coef")
    draws = posterior["coef"]
    assert lower.shape == upper.shape == (2, 3)
    assert np.allclose((draws < lower).mean(axis=(0, 1)), 0.1, atol=0.001)
    assert np.allclose((draws > upper).mean(axis=(0, 1)), 0.1, atol=0.001)


@pytest.mark.parametrize("mass", [0.0, 1.0, -0.5, 90, np.nan])
def test_interval_wants_a_probability(posterior, mass):
    with pytest.raises(ValueError, match=f"mass must lie strictly between 0 and 1, got {mass}"):
        posterior.interval(mass)


@pytest.mark.parametrize("q", [-0.1, 1.1, [0.5, 2.0], np.nan])
def test_quantile_wants_probabilities(posterior, q):
    with pytest.raises(ValueError, match=r"q must lie in \[0, 1\]"):
        posterior.quantile(q)


# -- the table --------------------------------------------------------------------------------


def test_summary_columns(posterior):
    summary = posterior.summary(mass=0.8)
    assert list(summary.columns) == [
        "mean", "sd", "10%", "90%", "rhat", "ess_bulk", "ess_tail", "mcse_mean", "mcse_sd",
    ]  # fmt: skip
    assert np.array_equal(summary["mean"], posterior.mean())
    assert np.array_equal(summary["sd"], posterior.std())
    assert np.array_equal(summary["90%"], posterior.interval(0.8)[1])
    assert (np.abs(summary["rhat"] - 1.0) < 0.02).all()  # independent draws
    assert (np.abs(summary["ess_bulk"] / 1000 - 1.0) < 0.25).all()
    assert np.allclose(summary["mcse_mean"], summary["sd"] / np.sqrt(1000), rtol=0.15)


def test_summary_as_text(posterior):
    lines = repr(posterior.summary()).split("\n")
    assert lines[0] == "4 chains x 250 draws: sampler hmc, thin 2"
    assert lines[1].split() == [
        "mean", "sd", "5%", "95%", "rhat", "ess_bulk", "ess_tail", "mcse_mean", "mcse_sd",
    ]  # fmt: skip
    assert [line.split()[0] for line in lines[2:]] == LABELS
    assert len({len(line) for line in lines[1:]}) == 1  # columns are aligned
    assert lines[2].split()[1] == f"{posterior.mean()[0]:.3g}"


@pytest.mark.slow
def test_summary_of_many_parameters_is_cut_in_the_middle():
    flat = np.random.default_rng(0).normal(size=(2, 20, 100))
    many = Posterior(flat, {"coef": (1, 100)}, [f"x{j}" for j in range(100)])
    lines = repr(many.summary()).split("\n")
    assert len(lines) == 2 + 60 + 1
    assert lines[2 + 30].strip() == "..."
    assert [lines[2].split()[0], lines[-1].split()[0]] == ["x0", "x99"]
    assert len(many.summary().to_frame()) == 100


def test_summary_as_html_escapes_labels():
    flat = np.random.default_rng(0).normal(size=(2, 20, 1))
    html = Posterior(flat, {"coef": (1, 1)}, ["<b>age</b>"]).summary()._repr_html_()
    assert "&lt;b&gt;age&lt;/b&gt;" in html
    assert "<b>" not in html
    assert html.count("<tr>") == html.count("</tr>") == 2


def test_summary_as_frame(posterior):
    frame = posterior.summary().to_frame()
    assert list(frame.index) == LABELS
    assert frame.loc["i1", "mean"] == posterior.mean()[7]


def test_repr(posterior):
    assert repr(posterior) == (
        "<Posterior of coef (2, 3), intercept (2,); 4 chains x 250 draws: sampler hmc, thin 2>"
    )


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))]
)
def test_copies(posterior, duplicate):
    twin = duplicate(posterior)
    assert np.array_equal(twin.flat, posterior.flat)
    assert (twin.names, twin.labels, twin.origin) == (
        posterior.names, posterior.labels, posterior.origin,
    )  # fmt: skip


# -- diagnostics ------------------------------------------------------------------------------


def autoregression(rho, n_chains=4, n_draws=20_000, seed=0):
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((n_draws, n_chains))
    x = np.empty_like(noise)
    x[0] = noise[0]
    for t in range(1, n_draws):
        x[t] = rho * x[t - 1] + np.sqrt(1.0 - rho * rho) * noise[t]
    return x.T[..., None]


@pytest.mark.parametrize("rho", [-0.5, 0.0, 0.5, 0.9])
def test_effective_sample_size_of_an_autoregression(rho):
    draws = autoregression(rho)
    expected = draws.size * (1.0 - rho) / (1.0 + rho)
    # relative error of the estimate: 3 % by 40 repetitions at rho = 0.9, less elsewhere
    assert abs(convergence.ess_bulk(draws)[0] / expected - 1.0) < 0.12
    sd = np.sqrt(1.0 / expected)
    assert abs(convergence.mcse_mean(draws)[0] / sd - 1.0) < 0.06
    assert abs(convergence.rhat(draws)[0] - 1.0) < 0.01


def test_identical_chains_have_rhat_one():
    one = np.random.default_rng(0).normal(size=(1, 1000, 2))
    assert np.allclose(convergence.rhat(np.repeat(one, 4, axis=0)), 1.0, atol=2e-3)


def test_chains_apart():
    draws = np.random.default_rng(0).normal(size=(4, 500, 3))
    draws[0, :, 1] += 3.0
    assert convergence.rhat(draws)[1] > 1.2
    assert convergence.ess_bulk(draws)[1] < 50
    ess, slow, rhat, apart = convergence.worst(draws)
    assert (slow, apart) == (1, 1)
    assert (rhat, apart) == convergence.worst_rhat(draws)
    assert rhat > 1.2
    assert ess < 50


def test_a_single_chain_is_compared_with_itself():
    still = np.random.default_rng(0).normal(size=(1, 400, 1))
    drifting = still + np.linspace(0.0, 10.0, 400)[:, None]
    assert abs(convergence.rhat(still)[0] - 1.0) < 0.02
    assert convergence.rhat(drifting)[0] > 1.5


def test_a_constant_parameter_has_a_defined_value():
    draws = np.random.default_rng(0).normal(size=(4, 100, 2))
    draws[..., 0] = 2.5
    with np.errstate(all="raise"):
        summary = Posterior(draws, {"coef": (1, 2)}, ["a", "b"]).summary()
    assert summary["mean"][0] == 2.5
    assert summary["sd"][0] == 0.0
    assert summary["mcse_mean"][0] == 0.0
    assert summary["ess_bulk"][0] == 400  # ArviZ's value: the mean is known exactly
    assert "2.5" in repr(summary)
    ess, slow, rhat, apart = convergence.worst(draws)
    assert (slow, apart) == (1, 1) or np.isfinite([ess, rhat]).all()


@pytest.mark.parametrize("n_draws", [1, 2, 3])
def test_too_few_draws_have_no_diagnosis(n_draws):
    draws = np.random.default_rng(0).normal(size=(2, n_draws, 3))
    assert np.isnan(convergence.rhat(draws)).all()
    assert np.isnan(convergence.worst(draws)[0])
    assert "nan" in repr(Posterior(draws, {"coef": (1, 3)}, list("abc")).summary())


def test_not_finite_draws_do_not_crash():
    draws = np.random.default_rng(0).normal(size=(2, 50, 1))
    draws[0, 3] = np.nan
    assert np.isnan(convergence.rhat(draws)).all()


def test_the_shortest_interval_is_that_of_arviz(posterior):
    for mass in (0.5, 0.9):
        lower, upper = posterior.hdi(mass)
        for j, x in enumerate(posterior.flat.reshape(-1, 8).T):
            wanted = array_stats.hdi(x, mass, axis=0, method="nearest")
            assert np.array_equal([lower[j], upper[j]], wanted)
    lower, upper = posterior.hdi(0.9, "coef")
    assert lower.shape == upper.shape == (2, 3)
    assert np.array_equal(lower.ravel(), posterior.hdi(0.9)[0][:6])
    with pytest.raises(ValueError, match="mass"):
        posterior.hdi(1.5)


def test_the_shortest_interval_of_weights_is_that_of_repeated_draws():
    rng = np.random.default_rng(0)
    x, times = rng.exponential(size=(1, 300, 1)), rng.integers(0, 4, 300)
    weighted = Posterior(x, {"s": ()}, ["s"], weights=times)
    repeated = Posterior(np.repeat(x, times, axis=1), {"s": ()}, ["s"])
    width = np.ptp([repeated.hdi(0.8, "s")])
    assert np.ptp([weighted.hdi(0.8, "s")]) == pytest.approx(width, rel=0.03)
    lower, upper = weighted.hdi(0.8, "s")
    inside = (x >= lower) & (x <= upper)
    assert (inside * times[:, None]).sum() >= 0.8 * times.sum()
    few = Posterior(np.array([[[1.0], [2.0]]]), {"s": ()}, ["s"])
    assert few.hdi(0.9, "s") == (1.0, 2.0)


@pytest.mark.parametrize("mass", [0.3, 0.8, 0.97])
def test_the_shortest_interval_of_weights_is_the_shortest_of_all(mass):
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=40).round(1), rng.exponential(size=40) ** 2
    posterior = Posterior(x[None, :, None], {"s": ()}, ["s"], weights=w)
    share = {(a, b): w[(x >= a) & (x <= b)].sum() / w.sum() for a in x for b in x if a <= b}
    shortest = min(b - a for (a, b), held in share.items() if held >= mass)
    lower, upper = (float(end) for end in posterior.hdi(mass, "s"))
    assert upper - lower == pytest.approx(shortest)
    assert share[lower, upper] >= mass


def test_a_draw_with_most_of_the_weight_is_the_shortest_interval():
    w = [0.95, 0.02, 0.01, 0.01, 0.01]
    posterior = Posterior(np.arange(5.0)[None, :, None], {"s": ()}, ["s"], weights=w)
    assert posterior.hdi(0.9, "s") == (0.0, 0.0)
    assert posterior.hdi(0.96, "s") == (0.0, 1.0)


def test_draws_as_a_table(posterior):
    frame = posterior.to_frame()
    assert list(frame.columns) == LABELS
    assert frame.index.names == ["chain", "draw"]
    assert np.array_equal(frame.loc[2].to_numpy(), posterior.flat[2])
    weighted = Posterior(posterior.flat, posterior.shapes, LABELS, weights=np.arange(250))
    assert np.array_equal(weighted.to_frame().loc[3, "weight"], weighted.weights)


def test_notebooks_show_the_summary_and_what_is_wrong(posterior):
    shown = posterior._repr_html_()
    assert shown.count("<tr>") == 1 + 8 + 1 + 2
    assert "4 chains x 250 draws" in shown
    noisy = {"noise_share": np.full(8, 0.9)}
    bad = Posterior(posterior.flat, posterior.shapes, LABELS, evidence=noisy)
    assert "<b>" in bad._repr_html_()
    assert "<b>" not in shown
    named = Posterior(posterior.flat, posterior.shapes, ["<i>", *LABELS[1:]])
    assert "<i>" not in named._repr_html_()
    wide = Posterior(np.zeros((1, 2, 600)), {"coef": (600,)}, [f"c{j}" for j in range(600)])
    assert "(600,)" in wide._repr_html_()
    assert "rhat" not in wide._repr_html_()


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        (
            {"flat": np.zeros((2, 3))},
            r"flat must be numbers of shape .*, got float64 of shape \(2,",
        ),
        ({"flat": [[["a", "b", "c"]]]}, "flat must be numbers of shape .*, got <U1"),
        ({"flat": [[[1.0, 2.0, 3.0], [1.0]]]}, "flat must be numbers of shape .*inhomogeneous"),
        ({"shapes": {"coef": (2,)}}, r"shapes must .* 3 parameters .* got \{'coef': \(2,\)\}"),
        ({"shapes": {"coef": (2, 2)}}, r"shapes must .* 3 parameters .* got \{'coef': \(2, 2\)\}"),
        ({"shapes": {"coef": 3}}, r"shapes must have a tuple .* got \{'coef': 3\}"),
        ({"labels": ["a", "b"]}, "labels must be 3 names, one for each parameter, got 2"),
        ({"labels": "abc"}, "labels must be 3 names, one for each parameter, got the text 'abc'"),
        ({"labels": ["a", "b", "a"]}, "labels must differ from each other, got 'a' more than once"),
        ({"edges": ["noise"]}, "edges must be among the labels, got 'noise'"),
        ({"scores": [[[1.0, 2.0]]]}, r"scores must have the shape \(2, 4, 3\) of the draws"),
    ],
)
def test_what_makes_no_posterior(changed, text):
    given = {"flat": np.zeros((2, 4, 3)), "shapes": {"coef": (3,)}, "labels": ["a", "b", "c"]}
    with pytest.raises(ValueError, match=text):
        Posterior(**(given | changed))


def test_other_labels_that_are_no_names_of_the_parameters(posterior):
    with pytest.raises(ValueError, match="labels must be 8 names, one for each parameter, got 7"):
        posterior.with_labels(LABELS[:7])
    with pytest.raises(ValueError, match="labels must differ from each other, got 'i0' more"):
        posterior.with_labels([*LABELS[:7], "i0"])
    assert posterior.with_labels(iter("abcdefgh")).labels == tuple("abcdefgh")


def test_lists_and_arrays_of_draws_are_the_same():
    draws = [[[1, 2.5], [3, 4]], [[5, 6], [7, 8]]]
    made = Posterior(draws, {"coef": [2]}, iter(["a", "b"]), scores=draws)
    assert made["a"].tolist() == [[1, 3], [5, 7]]
    assert made["coef"].shape == made.scores.shape == (2, 2, 2)
    assert made.summary()["mean"].tolist() == [4.0, 5.125]


def test_a_parameter_with_the_name_of_the_weights():
    draws = np.arange(4.0).reshape(1, 2, 2)
    plain = Posterior(draws, {"coef": (2,)}, ["weight", "chain"])
    assert plain.to_frame()["weight"].tolist() == [0.0, 2.0]
    weighted = Posterior(draws, {"coef": (2,)}, ["weight", "chain"], weights=[1.0, 3.0])
    with pytest.raises(ValueError, match=r"A parameter has the label 'weight'.* with_labels"):
        weighted.to_frame()
    frame = weighted.with_labels(["mass", "chain"]).to_frame()
    assert list(frame.columns) == ["mass", "chain", "weight"]
    assert frame["weight"].tolist() == [0.5, 1.5]
