"""Coefficients of classes: centred over the classes, contrasts, odds ratios."""

import numpy as np
import pytest
from problems import multinomial, quick
from scipy.special import log_softmax, softmax
from sklearn.datasets import load_iris, load_wine
from sklearn.preprocessing import StandardScaler

from skbayes_sg import BayesianLinearRegression, BayesianLogisticRegression, Posterior
from skbayes_sg.diagnostics import score_moments
from skbayes_sg.inspection.full_scores import full_scores
from skbayes_sg.posterior import classes as of_classes
from skbayes_sg.priors import Laplace, Normal


def fitted(fit_intercept=True, **options):
    return quick(fit_intercept=fit_intercept, **options).fit(*multinomial())


def intervals_clear_of_zero(draws):
    flat = draws.reshape(-1, draws.shape[-1])
    lower, upper = np.quantile(flat, [0.05, 0.95], axis=0)
    return int(((lower > 0.0) | (upper < 0.0)).sum())


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_centring_changes_no_probability(fit_intercept):
    model, X = fitted(fit_intercept), multinomial()[0]
    posterior, K, d = model.posterior_, 3, X.shape[1]
    sampled = posterior.sampled.reshape(-1, posterior.flat.shape[-1])
    B = sampled[:, : K * d].reshape(-1, K, d)
    b = sampled[:, K * d :] if fit_intercept else np.zeros((len(B), K))
    by_hand = softmax(np.einsum("skd,nd->snk", B, X) + b[:, None], axis=2)
    assert np.abs(model.predict_proba_samples(X) - by_hand).max() < 1e-12
    assert np.abs(B.mean(axis=1)).max() > 0.1  # what was sampled does have a shift
    assert np.abs(posterior["coef"].sum(axis=2)).max() < 1e-12
    assert np.abs(model.coef_.sum(axis=0)).max() < 1e-12
    assert np.allclose(posterior["coef"], (B - B.mean(axis=1, keepdims=True)).reshape(2, -1, K, d))
    if fit_intercept:
        assert np.abs(posterior["intercept"].sum(axis=2)).max() < 1e-12
    # those who predict from coef_ and intercept_, as with scikit-learn, are right
    at_sampled = softmax(X @ B.mean(axis=0).T + b.mean(axis=0), axis=1)
    at_coef = softmax(X @ model.coef_.T + model.intercept_, axis=1)
    assert np.abs(at_coef - at_sampled).max() < 1e-12


@pytest.mark.slow
def test_the_prior_of_the_shift_is_in_the_sampled_draws():
    # under iid normal priors the shift is independent of the data, N(0, scale² / K)
    X, y = multinomial()
    model = BayesianLogisticRegression(prior=Normal(scale=2.0), random_state=0).fit(X, y)
    shift = model.posterior_.shift[..., :3].reshape(-1, 3)
    n = len(shift)
    assert np.abs(shift.mean(axis=0)).max() < 4.0 * 2.0 / np.sqrt(3.0 * n)
    assert np.abs(shift.var(axis=0) / (4.0 / 3.0) - 1.0).max() < 4.0 * np.sqrt(2.0 / n)


def test_what_is_named_agrees_everywhere():
    posterior = fitted().posterior_
    for name in (None, "coef", posterior.labels[4]):
        draws = posterior.flat if name is None else posterior[name]
        assert np.allclose(posterior.mean(name), draws.mean(axis=(0, 1)))
        assert np.allclose(posterior.std(name), draws.std(axis=(0, 1)))
        assert np.allclose(posterior.interval(0.5, name)[0], np.quantile(draws, 0.25, axis=(0, 1)))
    summary = posterior.summary()
    assert np.allclose(summary["sd"], posterior.flat.std(axis=(0, 1)))


@pytest.mark.parametrize(
    ("load", "before", "after"),
    [(load_iris, 5, 9), pytest.param(load_wine, 3, 16, marks=pytest.mark.slow)],
)
def test_intervals_are_those_of_what_the_data_tell(load, before, after):
    X, y = load(return_X_y=True)
    posterior = (
        BayesianLogisticRegression(random_state=0)
        .fit(StandardScaler().fit_transform(X), y)
        .posterior_
    )
    assert abs(intervals_clear_of_zero(posterior.sampled) - before) <= 1
    assert abs(intervals_clear_of_zero(posterior.flat) - after) <= 1
    assert posterior.check()


@pytest.mark.parametrize("keep", [pytest.param(3, marks=pytest.mark.slow), "moments"])
def test_moments_of_draws_that_are_not_kept(keep):
    options = {"random_state": 0, "n_draws": 200, "n_chains": 2}
    every = BayesianLogisticRegression(**options).fit(*multinomial())
    some = BayesianLogisticRegression(keep=keep, **options).fit(*multinomial())
    assert np.allclose(some.coef_, every.coef_, atol=1e-12)
    assert np.allclose(some.coef_std_, every.coef_std_, rtol=1e-10)


# -- scores ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
def test_coordinates_with_a_density(intercept):
    # the map from the coordinates u to β, by its Jacobian: scores are Jᵀ s
    rng, K, d = np.random.default_rng(0), 3, 2
    D = K * (d + intercept)
    beta, scores = rng.normal(size=(2, 5, D)), rng.normal(size=(2, 5, D))
    c = of_classes.without_shift(beta, K, intercept)
    shift = of_classes.common_shift(beta, K, intercept)
    assert np.allclose(of_classes.with_shift(c, shift, K, intercept), beta, atol=1e-14)

    def coordinates(beta):
        c = of_classes.without_shift(beta, K, intercept)
        m = of_classes.common_shift(beta, K, intercept)
        return of_classes.full_rank(c, m, np.zeros_like(beta), K, intercept)[0]

    to_u = np.array([coordinates(row) for row in np.eye(D)]).T
    u, s = of_classes.full_rank(c, shift, scores, K, intercept)
    assert np.allclose(u, beta @ to_u.T, atol=1e-14)
    assert np.allclose(s, scores @ np.linalg.inv(to_u), atol=1e-13)
    labels = of_classes.labels_of_full_rank(["a", "b"], ["x", "y", "z"], intercept)
    assert len(labels) == D
    assert labels[:2] == ["coef[x - z, a]", "coef[x - z, b]"]


@pytest.mark.parametrize("prior", [Normal(), pytest.param(Laplace(), marks=pytest.mark.slow)])
def test_scores_are_those_of_the_sampled_draws(prior):
    X, y = multinomial()
    model = BayesianLogisticRegression(prior=prior, sampler="hmc", random_state=0).fit(X, y)
    posterior, D = model.posterior_, model.posterior_.flat.shape[-1]
    exact = full_scores(model, X, y)
    assert np.allclose(exact.scores, posterior.scores, rtol=1e-5, atol=1e-5)
    theta = posterior.sampled[0, 7]
    B, b = theta[: D - 3].reshape(3, -1), theta[D - 3 :]

    def log_density(B, b):
        logs = log_softmax(X @ B.T + b, axis=1)
        own = -0.5 * (B**2).sum() if isinstance(prior, Normal) else -np.abs(B).sum()
        return logs[np.arange(len(y)), y].sum() + own - 0.5 * (b**2).sum() / 100.0

    h = 1e-5
    for k, j in ((0, 0), (2, 1)):
        up, down = B.copy(), B.copy()
        up[k, j] += h
        down[k, j] -= h
        slope = (log_density(up, b) - log_density(down, b)) / (2.0 * h)
        assert abs(slope - exact.scores[0, 7, k * X.shape[1] + j]) < 1e-4 * max(1.0, abs(slope))


@pytest.mark.slow
def test_the_judgement_sees_a_wrong_spread_of_contrasts():
    # the differences are 30 % too wide: hidden in β under the shift, which is fine
    model = BayesianLogisticRegression(sampler="hmc", random_state=0).fit(*multinomial(400))
    posterior = model.posterior_
    assert posterior.check()
    mean = posterior.flat.mean(axis=(0, 1))
    wide = Posterior(
        mean + 1.3 * (posterior.flat - mean), posterior.shapes, posterior.labels,
        scores=posterior.scores, classes=posterior.classes, shift=posterior.shift,
    )  # fmt: skip
    assert "spread" in [finding.name for finding in wide.check().findings]


@pytest.mark.slow
def test_control_variates_know_of_the_shift():
    model = BayesianLogisticRegression(sampler="hmc", random_state=0).fit(*multinomial())
    better = model.posterior_.mean("coef", control_variate="quadratic")
    error = model.posterior_.summary()["mcse_mean"][: better.size].reshape(better.shape)
    assert (np.abs(better - model.coef_) < 5.0 * error).all()
    assert np.abs(better.sum(axis=0)).max() < 1e-10
    draws, scores = model.posterior_._known_scores()
    assert np.abs(score_moments(draws, scores).ratio - 1.0).max() < 0.2


# -- contrasts and odds ratios --------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_contrasts_are_differences_of_draws(fit_intercept):
    posterior = fitted(fit_intercept).posterior_
    coef = posterior["coef"]
    found = posterior.contrast(2, reference=1)
    assert np.allclose(found["coef"][:, :, 0], coef[:, :, 2] - coef[:, :, 1], atol=1e-13)
    sampled = posterior.sampled[..., : coef[0, 0].size].reshape(coef.shape)
    assert np.allclose(found["coef"][:, :, 0], sampled[:, :, 2] - sampled[:, :, 1], atol=1e-12)
    every = posterior.contrast(reference=1)
    assert every.shapes["coef"] == (2, 3)
    assert np.array_equal(every["coef"][:, :, 1], found["coef"][:, :, 0])
    assert np.allclose(every["coef"][:, :, 0], coef[:, :, 0] - coef[:, :, 1], atol=1e-13)
    assert every.labels[:2] == ("coef[0 - 1, x0]", "coef[0 - 1, x1]")
    assert ("intercept" in found) == fit_intercept
    if fit_intercept:
        b = posterior["intercept"]
        assert np.allclose(found["intercept"][..., 0], b[..., 2] - b[..., 1], atol=1e-13)
        assert found.labels[-1] == "intercept[2 - 1]"
    assert "coef[2 - 1, x0]" in repr(found.summary())


def test_other_labels_keep_the_names_of_columns():
    posterior = fitted(True).posterior_
    other = posterior.with_labels([f"parameter {k}" for k in range(len(posterior.labels))])
    assert other.columns == posterior.columns == ("x0", "x1", "x2")
    assert other.contrast(2, reference=1).labels == posterior.contrast(2, reference=1).labels
    assert [f.name for f in other.check().findings] == [f.name for f in posterior.check().findings]
    X, y = multinomial()
    two = quick().fit(X[y < 2], y[y < 2]).posterior_
    renamed = two.with_labels(["age", "mass", "height", "b"])
    assert renamed.contrast(1).labels[:2] == ("coef[1 - 0, age]", "coef[1 - 0, mass]")
    assert Posterior(two.flat, {"scale": (4,)}, renamed.labels).columns is None


def test_contrasts_of_two_classes():
    X, y = multinomial()
    model = quick().fit(X[y < 2], np.array(["no", "yes"])[y[y < 2]])
    assert np.array_equal(model.posterior_.contrast().flat, model.posterior_.flat)
    turned = model.posterior_.contrast("no", reference="yes")
    assert np.array_equal(turned.flat, -model.posterior_.flat)
    assert turned.labels[0] == "coef[no - yes, x0]"
    assert model.posterior_.sampled is model.posterior_.flat


def test_weights_of_draws_are_those_of_contrasts():
    draws = np.arange(12.0).reshape(1, 2, 6)
    draws[0, 1] = [5.0, 1.0, 0.0, 2.0, 2.0, 2.0]
    names = [f"coef[{k}, x{j}]" for k in "abc" for j in range(2)]
    posterior = Posterior(draws, {"coef": (3, 2)}, names, weights=[1.0, 3.0], classes="abc")
    assert np.allclose(posterior.contrast("b", "a").mean("coef"), [[-3.25, 1.25]])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_odds_ratios_are_exponentials_of_quantiles(n_classes):
    X, y = multinomial()
    X, y = X[y < n_classes], y[y < n_classes]
    model = quick(n_draws=200).fit(X, y)
    first = n_classes - 1
    draws = model.posterior_.contrast(first, 0)["coef"].reshape(-1, 3)
    per = np.array([1.0, 0.5, 3.0])
    lower, upper = model.odds_ratio_interval(0.8, first=first, reference=0, per=per)
    assert lower.shape == (1, 3)
    assert np.allclose(lower[0], np.exp(np.quantile(draws * per, 0.1, axis=0)))
    assert np.allclose(upper[0], np.exp(np.quantile(draws * per, 0.9, axis=0)))
    # the odds do change by this factor: at every draw, by the probabilities
    one, other = X[:1], X[:1] + np.array([0.0, 0.5, 0.0])
    p, q = (model.predict_proba_samples(rows)[:, 0] for rows in (one, other))
    ratio = (q[:, first] / q[:, 0]) / (p[:, first] / p[:, 0])
    ends = np.exp(np.quantile(np.log(ratio), [0.1, 0.9]))
    assert np.allclose(ends, [lower[0, 1], upper[0, 1]], rtol=1e-9)


def test_units_of_columns_and_odds_ratios():
    X, y = multinomial()
    scale = np.array([1.0, 10.0, 1.0])
    options = {"random_state": 0, "n_draws": 100}
    one = BayesianLogisticRegression(prior=Normal(scale=[1e3] * 3), **options).fit(X, y)
    other = BayesianLogisticRegression(prior=Normal(scale=1e3 / scale), **options).fit(X * scale, y)
    spread = X.std(axis=0)
    found = one.odds_ratio_interval(per=spread), other.odds_ratio_interval(per=spread * scale)
    assert np.allclose(np.log(found[0]), np.log(found[1]), rtol=1e-4, atol=1e-4)


def test_what_cannot_be_compared():
    model = fitted()
    for given in ({"first": 7}, {"reference": "a"}, {"first": 0, "reference": 0}):
        with pytest.raises(ValueError, match=r"There is no class|the same class"):
            model.posterior_.contrast(**given)
    with pytest.raises(ValueError, match="per must be positive"):
        model.odds_ratio_interval(per=[1.0, 2.0])
    with pytest.raises(ValueError, match="per must be positive"):
        model.odds_ratio_interval(per=-1.0)
    X, y = multinomial()
    with pytest.raises(ValueError, match="has no classes"):
        BayesianLinearRegression(random_state=0).fit(X, y).posterior_.contrast()
