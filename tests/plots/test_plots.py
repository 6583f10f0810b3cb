"""Displays: they show what the posterior has, where they are told to, and say what is missing."""

import sys

import numpy as np
import pytest

from skbayes_sg import BayesianPoissonRegressor, Posterior, plots
from skbayes_sg.plots import (
    AutocorrelationDisplay,
    GradientNoiseDisplay,
    IntervalDisplay,
    PairDisplay,
    PredictiveCheckDisplay,
    StepBiasDisplay,
    TraceDisplay,
)

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


@pytest.mark.parametrize("display", [IntervalDisplay, StepBiasDisplay, GradientNoiseDisplay])
def test_where_it_is_drawn_can_be_chosen(display, posterior):
    figure, axes = plt.subplots(1, 2)
    made = display.from_posterior(posterior, ax=axes[1])
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
    assert np.array_equal(made.outer, posterior.interval(0.8))
    assert np.array_equal(made.inner, posterior.interval(0.4))
    assert np.array_equal(made.ax_.get_lines()[0].get_xdata(), posterior.mean())
    texts = [text.get_text() for text in made.ax_.get_legend().get_texts()]
    assert texts == ["80%", "40%", "mean"]


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


def test_biases_and_shares_are_shown(posterior):
    assert np.array_equal(
        StepBiasDisplay.from_posterior(posterior, names=["c"]).bias, np.array([0.3])
    )
    made = GradientNoiseDisplay.from_posterior(posterior)
    assert np.allclose([bar.get_width() for bar in made.ax_.patches], [1.0, 2.0, 3.0, 4.0])


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
