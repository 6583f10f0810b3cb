"""Displays of calibration: what they show is what the metrics say; the band holds the scatter."""

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegressor,
)
from skbayes_sg.plots import CoverageDisplay, ReliabilityDisplay
from skbayes_sg.plots.calibration import _band

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def made(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, X @ [1.0, -0.5] + rng.normal(size=n), rng


def test_reliability_of_a_pipeline():
    X, y, _ = made(900)
    labels = np.where(y > 0.0, "up", "down")
    pipe = make_pipeline(StandardScaler(), BayesianLogisticRegression(n_draws=50, random_state=0))
    pipe.fit(X[:300], labels[:300])
    display = ReliabilityDisplay.from_estimator(pipe, X[300:], labels[300:], n_bins=6)
    p = pipe.predict_proba(X[300:])[:, 1]
    share, stated = calibration_curve(labels[300:] == "up", p, n_bins=6, strategy="quantile")
    assert np.array_equal(display.happened_share, share)
    assert np.array_equal(display.stated, stated)
    assert (display.counts == 100).all()
    assert display.error == pytest.approx(np.abs(share - stated).mean())
    three = pipe.fit(X[:300], np.digitize(y[:300], [-0.5, 0.5]))
    with pytest.raises(ValueError, match="two classes, got 3"):
        ReliabilityDisplay.from_estimator(three, X, y)


class Stated:
    """A classifier whose probabilities are its only column."""

    classes_ = np.array([0, 1])

    def predict_proba(self, X):
        return np.column_stack([1.0 - X[:, 0], X[:, 0]])


@pytest.mark.parametrize("n_bins", [1, 3, 7])
@pytest.mark.parametrize("unit", [1.0, 1 / 3])
def test_probabilities_at_the_edges_of_bins_are_in_one_bin(n_bins, unit):
    p = unit * np.array([0.0, 0.0, 0.25, 0.5, 0.75, 0.75, 0.75])
    y = np.arange(7) % 2
    made = ReliabilityDisplay.from_estimator(Stated(), p[:, None], y, n_bins=n_bins)
    assert made.counts.sum() == 7
    assert made.counts @ made.stated == pytest.approx(p.sum())
    assert made.counts @ made.happened_share == pytest.approx(y.sum())
    off = made.counts @ np.abs(made.stated - made.happened_share) / 7
    assert made.error == pytest.approx(off)


def test_reliability_refuses_what_are_no_bins():
    for n_bins in (0, 2.5):
        with pytest.raises(ValueError, match="n_bins must be an int"):
            ReliabilityDisplay.from_estimator(Stated(), np.ones((2, 1)), [0, 1], n_bins=n_bins)


def test_coverage_of_a_pipeline():
    X, y, _ = made(2300)
    model = BayesianLinearRegression(n_draws=100, random_state=0)
    pipe = make_pipeline(StandardScaler(), model).fit(X[:300], y[:300])
    display = CoverageDisplay.from_estimator(pipe, X[300:], y[300:], levels=[0.2, 0.5, 0.9])
    rows = pipe[:-1].transform(X[300:])
    for level, found in zip(display.levels, display.coverage, strict=True):
        lower, upper = pipe[-1].predict_interval(rows, level)
        assert found == ((lower <= y[300:]) & (y[300:] <= upper)).mean()
        assert abs(found - level) < 5.0 * np.sqrt(level * (1.0 - level) / 2000) + 0.02
    narrow = CoverageDisplay.from_estimator(pipe, X[300:], 3.0 * y[300:], levels=[0.5])
    assert narrow.coverage[0] < 0.3


def test_coverage_of_counts_with_exposures():
    X, _, rng = made(900)
    exposure = rng.uniform(20.0, 200.0, 900)
    y = rng.poisson(0.1 * exposure * np.exp(0.3 * X[:, 0]))
    model = BayesianPoissonRegressor(n_draws=100, random_state=0)
    model.fit(X[:300], y[:300], exposure=exposure[:300])
    rows = X[300:], y[300:]
    display = CoverageDisplay.from_estimator(model, *rows, levels=[0.9], exposure=exposure[300:])
    assert abs(display.coverage[0] - 0.9) < 0.06
    assert "of counts" in display.ax_.get_legend_handles_labels()[1][-1]
    with pytest.warns(UserWarning, match="CoverageDisplay was given none"):
        assert CoverageDisplay.from_estimator(model, *rows, levels=[0.9]).coverage[0] < 0.5


def test_the_band_holds_nine_in_ten():
    rng = np.random.default_rng(0)
    lower, upper = _band(np.array([0.3]), 200)
    shares = rng.binomial(200, 0.3, 20_000) / 200
    inside = ((lower <= shares) & (shares <= upper)).mean()
    assert 0.89 < inside < 0.94  # at least nine in ten, for whole numbers


@pytest.mark.parametrize(
    "display",
    [
        CoverageDisplay(np.array([0.5]), np.array([0.4]), 100),
        ReliabilityDisplay(np.array([0.5]), np.array([0.4]), np.array([100]), 0.1),
    ],
    ids=lambda display: type(display).__name__,
)
def test_drawn_where_it_is_told_to(display):
    _, ax = plt.subplots()
    assert display.plot(ax) is display
    assert display.ax_ is ax
    assert display.plot().ax_ is not ax
    display.figure_.canvas.draw()


def test_what_cannot_be_compared():
    X, y, _ = made(60)
    model = BayesianLogisticRegression(n_draws=50, random_state=0).fit(X, y > 0.0)
    with pytest.raises(ValueError, match="labels that the estimator was not trained on"):
        ReliabilityDisplay.from_estimator(model, X, np.where(y > 0.0, "yes", "no"))
    model = BayesianLinearRegression(n_draws=50, random_state=0).fit(X, y)
    for levels in ([0.5, 1.0], []):
        with pytest.raises(ValueError, match="levels must lie strictly between 0 and 1, got"):
            CoverageDisplay.from_estimator(model, X, y, levels=levels)


@pytest.mark.parametrize("levels", [0.9, [[0.5, 0.9]], "half"])
def test_levels_that_are_no_sequence_are_named(levels):
    X, y, _ = made(30)
    model = BayesianLinearRegression(n_draws=10, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="levels must be a sequence of probabilities, got"):
        CoverageDisplay.from_estimator(model, X, y, levels=levels)
