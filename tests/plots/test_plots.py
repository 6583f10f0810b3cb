"""Displays: they show what the posterior has, where they are told to, and say what is missing."""

import sys
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegressor,
    Posterior,
    plots,
)
from skbayes_sg.plots import (
    AutocorrelationDisplay,
    CoefficientDisplay,
    CompareDisplay,
    EffectsDisplay,
    GradientNoiseDisplay,
    IntervalDisplay,
    PairDisplay,
    PredictiveCheckDisplay,
    ProbabilityDisplay,
    StepBiasDisplay,
    TraceDisplay,
)
from skbayes_sg.posterior import Summary

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

DISPLAYS = [getattr(plots, name) for name in plots.__all__]
ALL = [display for display in DISPLAYS if hasattr(display, "from_posterior")]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture
def posterior():
    draws = np.random.default_rng(0).normal(size=(2, 60, 4)) * [1.0, 2.0, 3.0, 4.0]
    evidence = {
        "mean_bias": np.array([0.1, 0.2, 0.3, 0.4]), "mean_bias_mcse": np.full(4, 0.01),
        "noise_share": np.array([0.01, 0.02, 0.03, 0.04]),
    }  # fmt: skip
    shapes = {"coef": (1, 3), "intercept": (1,)}
    return Posterior(draws, shapes, ["a", "b", "c", "intercept"], evidence=evidence)


class Fitted:
    def __init__(self, posterior):
        self.posterior_ = posterior


@pytest.mark.slow_for("PairDisplay", "TraceDisplay", "GradientNoiseDisplay")
@pytest.mark.parametrize("display", ALL)
def test_of_an_estimator_and_a_posterior_and_drawn_again(display, posterior):
    one = display.from_estimator(Fitted(posterior), names=["b", "intercept"])
    two = display.from_posterior(posterior, names=["b", "intercept"])
    for name in ("figure_", "ax_", "axes_"):
        assert hasattr(one, name)
    assert one.labels == two.labels == ["b", "intercept"]
    before = one.figure_
    assert one.plot() is one
    assert one.figure_ is not before
    one.figure_.canvas.draw()


@pytest.mark.parametrize("display", ALL)
def test_an_estimator_is_no_posterior(display, posterior):
    with pytest.raises(TypeError, match="needs a posterior, and got an estimator, Fitted"):
        display.from_posterior(Fitted(posterior))


@pytest.mark.parametrize("display", [IntervalDisplay, StepBiasDisplay, GradientNoiseDisplay])
def test_where_it_is_drawn_can_be_chosen(display, posterior):
    figure, axes = plt.subplots(1, 2)
    made = display.from_posterior(posterior, names=posterior.labels, ax=axes[1])
    assert made.ax_ is axes[1]
    assert made.figure_ is figure
    assert not axes[0].has_data()
    assert [text.get_text() for text in made.ax_.get_yticklabels()] == list(posterior.labels)
    with pytest.raises(ValueError, match="ax must contain 1 axes, got 2"):
        display.from_posterior(posterior, ax=axes)


def test_traces_are_the_draws(posterior):
    made = TraceDisplay.from_posterior(posterior, names="coef")
    lines = made.axes_[1].get_lines()
    assert len(lines) == 2
    assert np.array_equal(lines[1].get_ydata(), posterior.flat[1, :, 1])


def test_intervals_are_those_of_the_posterior(posterior):
    made = IntervalDisplay.from_posterior(posterior, masses=(0.4, 0.8))
    assert np.array_equal(made.outer, np.array(posterior.interval(0.8))[:, :3])
    assert np.array_equal(made.inner, np.array(posterior.interval(0.4))[:, :3])
    assert np.array_equal(made.ax_.get_lines()[0].get_xdata(), posterior.mean("coef").ravel())
    texts = [text.get_text() for text in made.ax_.get_legend().get_texts()]
    assert texts == ["80% interval", "40% interval", "posterior mean"]


def test_pairs_are_of_the_draws_by_their_weights(posterior):
    weights = np.r_[np.zeros(30), np.ones(30)]
    weighted = Posterior(posterior.flat, posterior.shapes, posterior.labels, weights=weights)
    made = PairDisplay.from_posterior(weighted, names=["a", "c"], max_draws=60)
    assert made.axes_.shape == (2, 2)
    heavy = posterior.flat[:, 30:][..., [0, 2]].reshape(-1, 2)
    assert np.array_equal(made.draws, heavy)


def test_autocorrelations_of_an_autoregression():
    rng, x = np.random.default_rng(0), np.zeros((4, 5000, 1))
    for k in range(1, 5000):
        x[:, k, 0] = 0.8 * x[:, k - 1, 0] + rng.normal(size=4)
    made = AutocorrelationDisplay.from_posterior(Posterior(x, {"coef": (1,)}, ["a"]), n_lags=4)
    assert np.allclose(made.correlations[:, 0], 0.8 ** np.arange(4), atol=0.03)


def test_long_names_take_several_lines():
    display = AutocorrelationDisplay(np.zeros((4, 1)), ["hours of " * 8]).plot()
    name = display.ax_.get_legend_handles_labels()[1][0]
    assert max(map(len, name.split("\n"))) <= 24


def test_biases_and_shares_are_shown(posterior):
    assert np.array_equal(
        StepBiasDisplay.from_posterior(posterior, names=["c"]).bias, np.array([0.3])
    )
    made = GradientNoiseDisplay.from_posterior(posterior)
    assert np.allclose(made.ax_.get_lines()[0].get_xdata(), [1.0, 2.0, 3.0, 4.0])
    assert made.ax_.get_xscale() == "log"


def test_what_was_not_measured_is_said(posterior):
    bare = Posterior(posterior.flat, posterior.shapes, posterior.labels)
    with pytest.raises(ValueError, match="no measured step bias"):
        StepBiasDisplay.from_posterior(bare)
    with pytest.raises(ValueError, match="no measured noise"):
        GradientNoiseDisplay.from_posterior(bare)
    with pytest.raises(KeyError, match="'weight'"):
        TraceDisplay.from_posterior(bare, names=["weight"])
    with pytest.raises(TypeError, match="A fitted estimator with a posterior_"):
        TraceDisplay.from_estimator(object())


def test_without_matplotlib(posterior, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install \"skbayes_sg\[plot\]\""):
        TraceDisplay.from_posterior(posterior)


def test_a_predictive_check_shows_where_the_observed_statistics_lie():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = rng.poisson(np.exp(1.0 + X[:, 0]) * rng.gamma(1.0, 1.0, 200))
    model = BayesianPoissonRegressor(n_draws=100, random_state=0).fit(X[:100], y[:100])
    made = PredictiveCheckDisplay.from_estimator(model, X[100:], y[100:], n_draws=50)
    assert [text.get_text() for text in made.ax_.get_yticklabels()] == made.labels
    replicated = made.check.replicated["dispersion"]
    away = (made.check.observed["dispersion"] - np.median(replicated)) / replicated.std()
    dot = made.ax_.lines[0]
    assert dot.get_xdata() == pytest.approx([away])
    assert made.ax_.get_xlim()[1] > away > 3.0
    _, axis = plt.subplots()
    assert PredictiveCheckDisplay(made.check).plot(axis).ax_ is axis
    axis.figure.canvas.draw()


def wide(n, **evidence):
    draws = np.random.default_rng(0).normal(size=(2, 30, n + 1))
    labels = [*(f"coef[x{j}]" for j in range(n)), "intercept"]
    return Posterior(draws, {"coef": (n,), "intercept": ()}, labels, evidence=evidence)


def title(display):
    return display.ax_.get_title(loc="left")


def test_intervals_are_of_coefficients_and_say_how_many_are_not_shown():
    made = IntervalDisplay.from_posterior(wide(30))
    assert made.labels == [f"x{j}" for j in range(20)]
    assert title(made) == "the first 20 of 30"
    assert title(IntervalDisplay.from_posterior(wide(5))) == ""
    assert IntervalDisplay.from_posterior(wide(5)).labels == ["x0", "x1", "x2", "x3", "x4"]
    assert title(IntervalDisplay.from_posterior(wide(30), names="coef")) == ""


@pytest.mark.parametrize(
    ("display", "names"),
    [(GradientNoiseDisplay, ["noise_share"]), (StepBiasDisplay, ["mean_bias", "mean_bias_mcse"])],
)
def test_of_many_parameters_the_worst_are_shown(display, names):
    values = np.random.default_rng(1).permutation(41) / 1000.0
    made = display.from_posterior(wide(40, **dict.fromkeys(names, values)))
    assert title(made) == "the largest 20 of 41"
    worst = np.argsort(-values)[:20]
    assert made.labels == [(*(f"coef[x{j}]" for j in range(40)), "intercept")[j] for j in worst]


def test_a_posterior_without_coefficients_is_named():
    posterior = Posterior(np.zeros((2, 10, 1)), {"weights": (1,)}, ["weights[0]"])
    for names in (None, ["weights[0]"]):
        with pytest.raises(ValueError, match=r"has none: its variables are .*weights.*Interval"):
            CoefficientDisplay.from_posterior(posterior, names=names)
    assert IntervalDisplay.from_posterior(posterior, names=["weights"]).labels == ["weights[0]"]


def test_no_noise_is_seen_as_such():
    made = GradientNoiseDisplay.from_posterior(wide(2, noise_share=np.array([0.0, 1e-5, 0.0])))
    dots, (left, right) = made.ax_.get_lines()[0].get_xdata(), made.ax_.get_xlim()
    assert np.allclose(dots, [1e-4, 1e-3, 1e-4])
    assert 0.0 < left < dots.min()
    assert right > 10.0


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 3)), columns=["age", "mass", "dose"])
    return X, np.where(X["age"] - X["dose"] + rng.logistic(size=200) > 0, "ill", "well")


@pytest.fixture(scope="module")
def search(table):
    pipe = make_pipeline(StandardScaler(), BayesianLogisticRegression(n_draws=50, random_state=0))
    return GridSearchCV(pipe, {"standardscaler__with_std": [True]}, cv=2).fit(*table)


def test_coefficients_of_a_search_have_the_names_of_columns_and_point_estimates(search, table):
    point = make_pipeline(StandardScaler(), LogisticRegression()).fit(*table)
    made = CoefficientDisplay.from_estimator(search, points={"point": point, "zero": np.zeros(3)})
    model = search.best_estimator_[-1]
    order = np.argsort(-model.coef_[0])
    assert made.labels == [table[0].columns[j] for j in order]
    assert np.array_equal(made.means, model.coef_[0, order])
    assert np.array_equal(made.points["point"], point[-1].coef_[0, order])
    assert np.array_equal(made.ax_.get_lines()[1].get_xdata(), np.zeros(3))
    best = CoefficientDisplay.from_posterior(model.posterior_, most=1)
    known = np.abs(model.coef_) / model.coef_std_
    assert best.labels == [f"x{known.argmax()}"]
    assert title(best) == "the best known 1 of 3"
    assert IntervalDisplay.from_estimator(search).labels == list(table[0].columns)


def test_names_that_a_pipeline_makes_twice(table):
    X, y = table
    twice = FunctionTransformer(feature_names_out=lambda step, names: ["age", "age", "dose"])
    pipe = make_pipeline(twice, BayesianLogisticRegression(n_draws=10, random_state=0))
    made = IntervalDisplay.from_estimator(pipe.fit(X.to_numpy(), y))
    assert made.labels[0] == "age"
    assert len(set(made.labels)) == 3


@pytest.mark.filterwarnings("error")
def test_coefficients_of_a_single_draw_are_in_the_order_of_their_values():
    draws = np.array([[[0.5, 0.0, -1.0]]])
    posterior = Posterior(draws, {"coef": (3,)}, ["coef[a]", "coef[b]", "coef[c]"])
    assert CoefficientDisplay.from_posterior(posterior).labels == ["a", "b", "c"]


def test_probabilities_of_a_search_in_their_order(search, table):
    X, y = table
    made = ProbabilityDisplay.from_estimator(search, X, y, confidence_level=0.5, max_rows=200)
    p = search.predict_proba(X)[:, 1]
    assert np.array_equal(made.probability, np.sort(p))
    assert np.array_equal(made.happened, (y == "well")[np.argsort(p, kind="stable")])
    rows = search.best_estimator_[:-1].transform(X)
    ends = search.best_estimator_[-1].predict_proba_interval(rows, 0.5)
    assert np.array_equal(np.sort(made.upper), np.sort(ends[1][:, 1]))
    assert made.event == "well"
    few = ProbabilityDisplay.from_estimator(search, X, threshold=0.2, max_rows=10)
    assert few.happened is None
    assert few.probability[[0, -1]] == pytest.approx([p.min(), p.max()])
    three = search.best_estimator_.fit(X, np.arange(200) % 3)
    made = ProbabilityDisplay.from_estimator(three, X, np.arange(200) % 3)
    assert made.event == "the predicted class"
    assert made.probability.min() >= 1 / 3


def test_comparisons_show_differences_and_rows_that_cannot_be_trusted():
    columns = {"elpd_diff": [0.0, -10.0], "diff_se": [0.0, 2.0], "high_k": [0, 3]}
    made = CompareDisplay.from_comparison(Summary(["a", "b"], columns, ""))
    assert np.array_equal(made.ax_.get_lines()[0].get_xdata(), [0.0, -10.0])
    assert [text.get_text() for text in made.ax_.get_yticklabels()] == ["a", "b (3)"]
    (ends,) = made.ax_.collections
    assert np.array_equal(ends.get_segments()[1][:, 0], [-14.0, -6.0])


def test_pairs_leave_the_upper_half_and_the_counts_out(posterior):
    made = PairDisplay.from_posterior(posterior, names="coef")
    assert [[axis.axison for axis in row] for row in made.axes_] == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]
    assert [made.axes_[k, 0].get_ylabel() for k in range(3)] == ["", "b", "c"]
    assert len(made.axes_[1, 1].get_yticks()) == 0
    assert made.axes_[2, 0].get_xlim() == made.axes_[0, 0].get_xlim()


@pytest.mark.slow
def test_effects_of_a_column_from_the_smallest_to_the_largest():
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(60), 4)
    X = pd.DataFrame({"store": np.array(list("cab"))[codes % 3], "customer": codes})
    y = np.array([5.0, 0.0, -5.0])[codes % 3] + 0.1 * rng.normal(size=240)
    options = {"n_draws": 20, "n_chains": 1, "random_state": 0}
    model = BayesianLinearRegression(group_effects=["store"], **options).fit(X[["store"]], y)
    display = EffectsDisplay.from_estimator(make_pipeline("passthrough", model))
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["b", "a", "c"]
    assert (np.diff(display.means) > 0.0).all()
    model.set_params(group_effects=["customer"]).fit(X[["customer"]], y)
    assert "60 levels" in EffectsDisplay.from_estimator(model).ax_.get_ylabel()
    odd = pd.DataFrame(
        {"a": X["store"], "a:b": np.char.add("$", X["store"].astype(str)), "x [m]": y}
    )
    slopes = {"group_slopes": {"a:b": ["x [m]"]}, "group_effects": ["a", "a:b"]}
    other = BayesianLinearRegression(**options | slopes).fit(odd, y)
    for column in ("a:b", "a:b:x [m]"):
        display = EffectsDisplay.from_estimator(other, column=column)
        assert sorted(display.levels) == ["$a", "$b", "$c"]
        display.figure_.canvas.draw()
    with pytest.raises(ValueError, match="There are no effects of 'shop'"):
        EffectsDisplay.from_estimator(model, column="shop")
    with pytest.raises(ValueError, match="keep=100"):
        EffectsDisplay.from_estimator(model.set_params(keep="moments").fit(X[["customer"]], y))
    with pytest.raises(ValueError, match="group_effects"):
        EffectsDisplay.from_estimator(BayesianLinearRegression(**options).fit(X[["customer"]], y))


LEVELS = {
    "dates": np.array(["2020-01-01", "2021-06-01"], dtype="datetime64[D]"),
    "numbers and texts": np.array([1, "1", 2, "2"], dtype=object),
    "truth and text": np.array([True, "True"], dtype=object),
    "truth": np.array([False, True]),
    "numbers": np.array([0.5, 1.0]),
    "bytes": np.array([b"a", b"b"]),
}


@pytest.mark.slow_except("dates", "numbers and texts")
@pytest.mark.parametrize("kind", LEVELS)
def test_levels_of_all_types_have_their_effects(kind):
    levels = LEVELS[kind]
    X = pd.DataFrame({"g": np.tile(levels, 12), "x": np.linspace(-1.0, 1.0, 12 * len(levels))})
    y = np.arange(len(X)) % len(levels) + X["x"] ** 2
    options = {"n_draws": 10, "n_chains": 1, "random_state": 0}
    model = BayesianLinearRegression(group_effects=["g"], **options).fit(X, y)
    made = EffectsDisplay.from_estimator(model)
    assert {f"g[{level}]" for level in made.levels} == set(model.effects_.labels)
    assert len(made.means) == len(set(made.levels)) == len(levels)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(IntervalDisplay, marks=pytest.mark.slow),
        CoefficientDisplay,
        pytest.param(PairDisplay, marks=pytest.mark.slow),
        pytest.param(TraceDisplay, marks=pytest.mark.slow),
    ],
)
def test_long_names_of_many_levels_fit_and_leave_room_for_the_axis(kind):
    names = [f"branch_branch office number {k} in the northern district" for k in range(200)]
    draws = np.random.default_rng(0).normal(size=(2, 20, 200))
    posterior = Posterior(draws, {"coef": (200,)}, [f"coef[{name}]" for name in names])
    made = kind.from_posterior(posterior)
    made.figure_.canvas.draw()
    drawn = made.figure_.get_tightbbox()
    assert drawn.x0 > -0.01
    assert drawn.x1 < made.figure_.get_figwidth() + 0.01
    assert made.ax_.bbox.width / made.figure_.dpi > (1.3 if kind is PairDisplay else 3.0)
    beneath = [axis.xaxis.label.get_window_extent() for axis in np.ravel(made.axes_)[-4:]]
    assert kind is not PairDisplay or not any(
        left.x1 > right.x0 for left, right in pairwise(beneath)
    )


@pytest.mark.parametrize("display", ALL)
def test_parameters_that_are_not_named(display, posterior):
    with pytest.raises(ValueError, match=r"names must name at least one parameter, got \[\]"):
        display.from_posterior(posterior, names=[])


@pytest.mark.parametrize("display", [AutocorrelationDisplay, PairDisplay, TraceDisplay])
def test_draws_that_were_not_kept(display, posterior):
    posterior.flat = posterior.flat[:, :0]
    with pytest.raises(ValueError, match="No draws were kept"):
        display.from_posterior(posterior)


@pytest.mark.parametrize(
    ("display", "options", "text"),
    [
        (IntervalDisplay, {"masses": (0.5,)}, r"masses must be two probabilities, got \(0.5,\)"),
        (CoefficientDisplay, {"masses": (0.5, 0.7, 0.9)}, "masses must be two probabilities"),
        (CoefficientDisplay, {"points": {"ml": np.ones(2)}}, r"points\['ml'\] must .* 3 coef.* 2"),
        (CoefficientDisplay, {"most": 0}, "most must be an int"),
        (AutocorrelationDisplay, {"n_lags": 0}, "n_lags must be an int"),
        (PairDisplay, {"max_draws": 0}, "max_draws must be an int"),
    ],
)
def test_options_that_cannot_be_drawn(display, options, text, posterior):
    with pytest.raises(ValueError, match=text):
        display.from_posterior(posterior, **options)


def test_estimators_that_lack_what_is_shown_are_named():
    X = np.linspace(-1.0, 1.0, 30)[:, None]
    numbers, classes = X[:, 0] + np.sin(40.0 * X[:, 0]), X[:, 0] > 0.0
    regressor = BayesianLinearRegression(n_draws=20, random_state=0).fit(X, numbers)
    classifier = BayesianLogisticRegression(n_draws=20, random_state=0).fit(X, classes)
    for display in (plots.ProbabilityDisplay, plots.ReliabilityDisplay):
        with pytest.raises(TypeError, match=r"predict_proba.*BayesianLinearRegression does not"):
            display.from_estimator(regressor, X, classes)
    with pytest.raises(TypeError, match=r"predict_quantiles, which BayesianLogisticRegression"):
        plots.CoverageDisplay.from_estimator(classifier, X, classes)


def test_labels_that_are_no_classes_are_not_drawn(search, table):
    X, y = table
    with pytest.raises(ValueError, match=r"labels that the estimator was not trained on, \['no'"):
        ProbabilityDisplay.from_estimator(search, X, np.where(y == y[0], "yes", "no"))
    with pytest.raises(ValueError, match="max_rows must be an int"):
        ProbabilityDisplay.from_estimator(search, X, y, max_rows=0)


ODD = ["price in $ or $", "_age", "_$x_{$", "intercept"]  # no formulas, and nothing to hide


def drawn(text):
    """The text as matplotlib draws it, and whether it is drawn as a formula."""
    return text._preprocess_math(text.get_text())


def texts_of(display):
    for axis in np.ravel(display.axes_):
        legend = axis.get_legend()
        yield from [*axis.get_yticklabels(), axis._left_title, axis.xaxis.label, axis.yaxis.label]
        yield from legend.get_texts() if legend else []


@pytest.mark.parametrize("display", ALL)
def test_names_are_no_formulas_and_none_is_hidden(display, posterior):
    named = Posterior(posterior.flat, posterior.shapes, ODD, evidence=posterior.evidence)
    points = {"_$5_{$": np.ones(3)} if display is CoefficientDisplay else {}
    options = {"points": points} if points else {}
    made = display.from_posterior(named, names="coef", **options)
    made.figure_.canvas.draw()
    found = dict(map(drawn, texts_of(made)))
    for name in [*ODD[:3], *points]:
        assert found[name] is False


def test_names_of_models_and_classes_are_no_formulas():
    columns = {"elpd_diff": [0.0, -10.0], "diff_se": [0.0, 2.0], "high_k": [0, 3]}
    compared = CompareDisplay.from_comparison(Summary(["a$x_{$", "b$y^{$"], columns, ""))
    of_class = ProbabilityDisplay(*np.full((3, 2), 0.5), None, "below $5_{$").plot()
    for made in (compared, of_class):
        made.figure_.canvas.draw()
    assert drawn(compared.ax_.get_yticklabels()[0]) == ("a$x_{$", False)
    assert drawn(of_class.ax_.yaxis.label) == ("probability of below $5_{$", False)


def test_points_are_of_coefficients_alone(posterior):
    options = {"points": {"ml": [7.0, 8.0, 9.0]}}
    made = CoefficientDisplay.from_posterior(posterior, names=["intercept", "b"], **options)
    assert np.array_equal(made.points["ml"], [np.nan, 8.0], equal_nan=True)
    made = CoefficientDisplay.from_estimator(Fitted(posterior), names="intercept", **options)
    assert np.isnan(made.points["ml"]).all()
    last = Posterior(posterior.flat, {"intercept": (), "coef": (3,)}, ["intercept", "a", "b", "c"])
    made = CoefficientDisplay.from_posterior(last, names=["c", "a"], **options)
    assert made.points["ml"].tolist() == [9.0, 7.0]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("shares", "ends", "dots"),
    [
        ([0.5, np.nan, 0.3], (1.0, 100.0), [50.0, np.nan, 30.0]),
        ([0.5, np.inf, 0.9], (1.0, 180.0), [50.0, 180.0, 90.0]),
        ([np.nan, np.nan, np.inf], (1.0, 100.0), [np.nan, np.nan, 100.0]),
    ],
)
def test_shares_that_are_not_finite(shares, ends, dots):
    made = GradientNoiseDisplay.from_posterior(wide(2, noise_share=np.array(shares)))
    made.figure_.canvas.draw()
    assert made.ax_.get_xlim() == pytest.approx(ends)
    assert np.allclose(made.ax_.get_lines()[0].get_xdata(), dots, equal_nan=True)
