"""BayesianLogisticRegression: its returns, its symmetries, its posterior against a reference."""

import numpy as np
import pandas as pd
import pytest
from problems import STOCHASTIC, binary, multinomial, quick
from scipy import optimize, stats
from scipy.special import expit, log_expit, softmax
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sg import BayesianLogisticRegression
from skbayes_sg.estimators import logistic
from skbayes_sg.priors import Laplace, Normal, StudentT
from skbayes_sg.schedules import Polynomial

pytestmark = pytest.mark.filterwarnings(
    "ignore::skbayes_sg.exceptions.SamplerConvergenceWarning",
    "ignore::skbayes_sg.exceptions.StepSizeWarning",
)

# -- shapes and values ------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_shapes(n_classes, fit_intercept):
    X, y = binary() if n_classes == 2 else multinomial()
    model = quick(fit_intercept=fit_intercept).fit(X, y)
    rows, n, K = (1 if n_classes == 2 else n_classes), len(X), n_classes
    assert model.coef_.shape == model.coef_std_.shape == (rows, 3)
    assert model.intercept_.shape == model.intercept_std_.shape == (rows,)
    assert model.posterior_["coef"].shape == (2, 25, rows, 3)
    assert model.posterior_.names == (("coef", "intercept") if fit_intercept else ("coef",))
    assert (
        len(model.posterior_.labels) == model.posterior_.flat.shape[2] == rows * (3 + fit_intercept)
    )
    assert fit_intercept or not model.intercept_.any()
    assert np.allclose(model.coef_, model.posterior_["coef"].mean(axis=(0, 1)))
    assert np.allclose(model.coef_std_, model.posterior_["coef"].std(axis=(0, 1)))
    assert model.predict(X).shape == (n,)
    assert model.predict_proba(X).shape == model.predict_log_proba(X).shape == (n, K)
    assert model.decision_function(X).shape == ((n,) if K == 2 else (n, K))
    assert model.predict_proba_samples(X).shape == (50, n, K)
    assert model.predict_proba_samples(X, 7).shape == (7, n, K)
    lower, upper = model.predict_proba_interval(X)
    assert lower.shape == upper.shape == (n, K)
    assert model.n_features_in_ == 3


def by_hand(model, X):
    """Class probabilities under each draw, (draws, rows, classes)."""
    posterior, K = model.posterior_, len(model.classes_)
    B = posterior["coef"].reshape(-1, *model.coef_.shape)
    b = np.zeros(B.shape[:2])
    if "intercept" in posterior:
        b = posterior["intercept"].reshape(b.shape)
    out = []
    for coef, intercept in zip(B, b, strict=True):
        eta = X @ coef.T + intercept
        out.append(np.c_[1.0 - expit(eta), expit(eta)] if K == 2 else softmax(eta, axis=1))
    return np.array(out)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_predictions_by_hand_on_three_draws(n_classes, fit_intercept):
    X, y = binary() if n_classes == 2 else multinomial()
    model = quick(n_draws=3, n_chains=1, fit_intercept=fit_intercept, prior=Normal(scale=3.0)).fit(
        X, y
    )
    samples = by_hand(model, X)
    proba = model.predict_proba(X)
    assert np.allclose(proba, samples.mean(axis=0), atol=1e-14)
    assert np.allclose(proba.sum(axis=1), 1.0, atol=1e-12)
    assert np.allclose(model.predict_log_proba(X), np.log(samples.mean(axis=0)), atol=1e-12)
    assert np.allclose(model.predict_proba_samples(X), samples, atol=1e-14)
    assert np.allclose(model.predict_proba_samples(X, 2), samples[[0, 2]], atol=1e-14)
    at_mean = by_hand(Mean(model), X)[0]
    assert np.abs(proba - at_mean).max() > 1e-3  # the mean of probabilities is not that
    lower, upper = model.predict_proba_interval(X, 0.5)
    ordered = np.sort(samples, axis=0)
    assert np.allclose(lower, 0.5 * (ordered[0] + ordered[1]), atol=1e-14)
    assert np.allclose(upper, 0.5 * (ordered[1] + ordered[2]), atol=1e-14)


class Mean:
    """A posterior of one draw, the mean."""

    def __init__(self, model):
        self.classes_, self.coef_ = model.classes_, model.coef_
        self.posterior_ = {
            "coef": model.coef_[None, None],
            "intercept": model.intercept_[None, None],
        }


@pytest.mark.parametrize("n_classes", [2, 3])
def test_decisions_agree(n_classes):
    X, y = binary() if n_classes == 2 else multinomial()
    model = quick().fit(X, y)
    proba, decision = model.predict_proba(X), model.decision_function(X)
    codes = (decision > 0).astype(int) if n_classes == 2 else decision.argmax(axis=1)
    assert np.array_equal(model.predict(X), model.classes_[codes])
    assert np.array_equal(model.predict(X), model.classes_[proba.argmax(axis=1)])
    expected = np.log(proba[:, 1] / proba[:, 0]) if n_classes == 2 else np.log(proba)
    assert np.allclose(decision, expected, atol=1e-10)


def test_far_away_rows():
    """Probabilities and their logarithms stay finite and ordered."""
    X, y = binary()
    model = quick().fit(X, y)
    far = np.array([[1e300, 0.0, 0.0], [0.0, 0.0, 1e3], [0.0, 0.0, -1e5]]) / [1e298, 1.0, 1.0]
    with np.errstate(all="raise", under="ignore"):
        assert np.isfinite(model.decision_function(far)).all()
        assert np.isfinite(model.predict_log_proba(far)).all()
    assert np.allclose(model.predict_proba(far).sum(axis=1), 1.0)


def test_intervals_hold_the_share_of_draws_that_they_say():
    X, y = multinomial()
    model = quick(n_draws=250).fit(X, y)
    samples = model.predict_proba_samples(X)
    narrow = model.predict_proba_interval(X, 0.5)
    wide = model.predict_proba_interval(X, 0.9)
    assert (wide[0] <= narrow[0]).all()
    assert (narrow[0] <= narrow[1]).all()
    assert (narrow[1] <= wide[1]).all()
    for (lower, upper), level in ((narrow, 0.5), (wide, 0.9)):
        inside = ((samples >= lower) & (samples <= upper)).mean(axis=0)
        assert np.allclose(inside, level, atol=0.012)  # draws of rejected moves are ties


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_probabilities_in_parts_of_the_draws(monkeypatch, n_classes):
    X, y = multinomial(90) if n_classes == 3 else (binary(90)[0], np.arange(90) % n_classes)
    model = quick(n_draws=37, n_chains=3).fit(X, y)
    whole, parts, n_parts = model.predict_proba(X), [], [1, 4, 37, 111]
    made = logistic.mean_probabilities
    monkeypatch.setattr(
        logistic, "mean_probabilities", lambda eta, w: parts.append(eta.shape) or made(eta, w)
    )
    for n in n_parts:
        size = 8 * 111 * len(model.coef_) * logistic.BLOCK_ROWS / n
        monkeypatch.setattr(logistic, "BLOCK_BYTES", int(np.ceil(size)))
        np.testing.assert_allclose(model.predict_proba(X), whole, rtol=1e-12)
    rows, draws = np.array(parts)[:, :2].T
    assert (rows == 90).all()
    assert len(parts) == sum(n_parts[1:])
    assert draws.sum() == 111 * len(n_parts[1:])


def test_prediction_in_blocks(monkeypatch):
    import sklearn

    X, y = multinomial()
    model = quick().fit(X, y)
    whole = model.predict_proba(X), model.predict_proba_interval(X), model.predict_proba_samples(X)
    with sklearn.config_context(working_memory=1e-2):  # MiB: two rows a block
        parts = (
            model.predict_proba(X),
            model.predict_proba_interval(X),
            model.predict_proba_samples(X),
        )
    for one, other in zip(whole, parts, strict=True):
        assert np.allclose(one, other, atol=1e-14)


# -- labels and names -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names", [["no", "yes"], [False, True], [-1, 1], [7, 9], ["b", "c"]], ids=repr
)
def test_labels_of_any_type(names):
    X, y = binary()
    labels = np.array(names)[y]
    model, plain = quick().fit(X, labels), quick().fit(X, y)
    assert np.array_equal(model.classes_, np.array(names))
    assert model.classes_.dtype == labels.dtype
    assert np.array_equal(model.posterior_.flat, plain.posterior_.flat)
    assert np.array_equal(model.predict(X), np.array(names)[plain.predict(X)])


@pytest.mark.slow
def test_labels_of_pandas():
    X, y = binary()
    labels = pd.Series(np.array(["no", "yes"])[y])
    for kind in (labels, labels.astype("category"), labels.astype("string"), labels.astype(object)):
        model = quick().fit(X, kind)
        assert list(model.classes_) == ["no", "yes"]
        assert set(model.predict(X)) <= {"no", "yes"}


def test_names_of_parameters():
    X, y = multinomial()
    frame = pd.DataFrame(X, columns=["age", "income", "height"])
    labels = np.array(["low", "mid", "top"])[y]
    model = quick().fit(frame, labels)
    assert model.posterior_.labels[4] == "coef[mid, income]"
    assert model.posterior_.labels[-1] == "intercept[top]"
    assert np.array_equal(
        model.posterior_["coef[mid, income]"], model.posterior_["coef"][..., 1, 1]
    )
    assert quick().fit(frame, y > 0).posterior_.labels == (
        "coef[age]", "coef[income]", "coef[height]", "intercept",
    )  # fmt: skip
    assert list(model.feature_names_in_) == list(frame.columns)


def test_relabelled_classes_permute_columns():
    """The softmax model is symmetric in its classes."""
    X, y = multinomial()
    order = np.array([2, 0, 1])
    options = {"n_draws": 2000, "n_chains": 4, "n_warmup": "auto"}
    one = quick(**options).fit(X, y)
    other = quick(**options).fit(X, order[y])
    sd = one.coef_std_.mean()
    assert np.abs(one.coef_ - other.coef_[order]).max() < 0.12 * sd  # 5 standard errors
    assert np.abs(one.coef_ - other.coef_).max() > sd  # the twin that forgets to permute


def test_swapped_labels_change_the_sign():
    X, y = binary(80, 3)
    options = {"n_draws": 2000, "n_chains": 4, "n_warmup": "auto"}
    one, other = quick(**options).fit(X, y), quick(**options).fit(X, 1 - y)
    sd = one.coef_std_
    assert np.abs((one.coef_ + other.coef_) / sd).max() < 0.1
    assert np.abs((one.coef_ - other.coef_) / sd).max() > 1.0
    assert np.allclose(one.predict_proba(X), other.predict_proba(X)[:, ::-1], atol=0.02)


# -- weights, scales --------------------------------------------------------------------------


@pytest.mark.parametrize("class_weight", [{0: 2.0, 1: 0.5}, {1: 3.0}, "balanced"])
def test_class_weights_are_weights_of_rows(class_weight):
    X, y = binary()
    if class_weight == "balanced":
        weight = 60 / (2 * np.bincount(y))[y]
    else:
        weight = np.array([class_weight.get(c, 1.0) for c in y])
    one = quick(class_weight=class_weight).fit(X, y)
    other = quick().fit(X, y, sample_weight=weight)
    assert np.abs(one.posterior_.flat - other.posterior_.flat).max() < 1e-12


def test_balanced_classes_count_weights():
    X, y = binary()
    own = np.random.default_rng(0).random(60) + 0.5
    totals = np.bincount(y, own)
    one = quick(class_weight="balanced").fit(X, y, sample_weight=own)
    other = quick().fit(X, y, sample_weight=own * (own.sum() / (2 * totals))[y])
    assert np.abs(one.posterior_.flat - other.posterior_.flat).max() < 1e-12


@pytest.mark.slow_for("multinomial-sgld", "multinomial-sgnht")
@pytest.mark.parametrize("sampler", ["hmc", "mala", "baoab", "sghmc", "sgnht", "sgld"])
@pytest.mark.parametrize("data", [binary, multinomial])
def test_repeated_rows_are_weights(sampler, data):
    X, y = data()
    weight = np.random.default_rng(0).integers(1, 4, len(y))
    step = {} if sampler in ("hmc", "mala") else {"step_size": 0.1, "thin": 2}
    one = quick(sampler=sampler, **step).fit(X, y, sample_weight=weight)
    repeated = np.repeat(X, weight, axis=0), np.repeat(y, weight)
    other = quick(sampler=sampler, **step).fit(*repeated)
    largest = np.abs(one.posterior_.flat).max()
    assert np.abs(one.posterior_.flat - other.posterior_.flat).max() < 1e-12 * largest


@pytest.mark.slow
def test_repeated_rows_are_weights_on_average_with_batches():
    X, y = binary(1500, 3)
    weight = np.random.default_rng(0).integers(1, 4, 1500)
    options = {**STOCHASTIC, "n_draws": 2000, "n_chains": 4, "thin": 20}
    one = quick(**options).fit(X, y, sample_weight=weight)
    other = quick(**options).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    unweighted = quick(**options).fit(X, y)
    assert np.abs((one.coef_ - other.coef_) / one.coef_std_).max() < 0.1
    assert np.abs(one.coef_std_ / other.coef_std_ - 1.0).max() < 0.07
    assert np.abs(unweighted.coef_std_ / other.coef_std_ - 1.0).max() > 0.2


@pytest.mark.parametrize("c", [1e-2, 4.0, 1e3])
def test_units_of_columns(c):
    """X c under a prior of scale s / c has coefficients divided by c, draw by draw."""
    X, y = binary()
    units = np.array([1.0, c, 1.0 / c])
    for parameters in ({}, {"sampler": "baoab", "step_size": 0.2, "thin": 2}):
        one = quick(prior=Normal(scale=2.0), **parameters).fit(X, y)
        other = quick(prior=Normal(scale=2.0 / units), **parameters).fit(X * units, y)
        difference = other.posterior_["coef"] * units - one.posterior_["coef"]
        assert np.abs(difference).max() < 1e-8


def test_a_constant_column_has_its_prior():
    X, y = binary(100, 2)
    with_zero = np.c_[X, np.zeros(100)]
    options = {"n_draws": 2500, "n_chains": 4, "n_warmup": "auto"}
    model = quick(prior=Normal(loc=[0, 0, 1.5], scale=[1, 1, 0.7]), **options).fit(with_zero, y)
    assert abs(model.coef_[0, 2] - 1.5) < 0.7 * 5 / np.sqrt(5000)
    assert abs(model.coef_std_[0, 2] / 0.7 - 1.0) < 0.07
    without = quick(**options).fit(X, y)
    assert np.abs((model.coef_[0, :2] - without.coef_[0]) / without.coef_std_[0]).max() < 0.1


# -- in scikit-learn --------------------------------------------------------------------------


def test_parameters_reach_into_objects():
    model = BayesianLogisticRegression(prior=Normal(), step_size=Polynomial(0.1))
    model.set_params(prior__scale=2.5, step_size__gamma=0.7, n_draws=10)
    assert model.prior.scale == 2.5
    assert model.step_size.gamma == 0.7
    twin = clone(model)
    assert twin.get_params()["prior__scale"] == 2.5
    assert twin.prior is not model.prior
    assert not hasattr(twin, "posterior_")


@pytest.mark.slow
def test_grid_search_over_a_pipeline():
    X, y = binary(120, 3)
    pipe = make_pipeline(StandardScaler(), quick(prior=Normal(), sampler="baoab", thin=1))
    grid = {
        "bayesianlogisticregression__step_size": [0.05, 0.2],
        "bayesianlogisticregression__prior__scale": [0.01, 1.0],
    }
    search = GridSearchCV(pipe, grid, cv=3, scoring="neg_log_loss").fit(X, y)
    assert search.best_params_["bayesianlogisticregression__prior__scale"] == 1.0
    assert search.best_estimator_[-1].step_size_ == search.best_params_[
        "bayesianlogisticregression__step_size"
    ]  # fmt: skip
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all()
    assert search.best_estimator_.predict_proba(X).shape == (120, 2)


def test_what_auto_became():
    X, y = binary()
    model = BayesianLogisticRegression(n_draws=50, random_state=0).fit(X, y)
    assert (model.sampler_, model.gradient_, model.preconditioner_) == (
        "importance",
        "full",
        "hessian",
    )
    assert model.batch_size_ == 60
    assert model.n_steps_ == model.n_warmup_ + model.thin_ * 50
    assert model.diagnostics_["pareto_k"] < 0.7
    assert "importance" in repr(model.posterior_)
    other = quick(**STOCHASTIC, preconditioner="diagonal").fit(*binary(3000, 4))
    assert (other.sampler_, other.gradient_, other.subsampling_) == ("baoab", "taylor", "uniform")
    assert (other.batch_size_, other.step_size_, other.thin_) == (20, 0.1, 5)
    assert other.preconditioner_ == "diagonal"


# -- the posterior ----------------------------------------------------------------------------

PRIORS = {
    "normal": (Normal(scale=1.5), stats.norm(scale=1.5)),
    "laplace": (Laplace(scale=0.7), stats.laplace(scale=0.7)),
    "student_t": (StudentT(df=3, scale=0.8), stats.t(3, scale=0.8)),
}


def reference(X, y, prior, n=60_000, seed=0):
    """Means and standard deviations by importance sampling from a t_10.

    It starts at the mode, and is fitted to its own weighted draws four times.
    """
    A = np.c_[X, np.ones(len(X))]
    sign = 2 * y - 1

    def log_p(thetas):
        likelihood = [log_expit((part @ A.T) * sign).sum(axis=1) for part in np.split(thetas, 10)]
        on_coef = prior.logpdf(thetas[:, :-1]).sum(axis=1)
        return np.concatenate(likelihood) + on_coef + stats.norm(scale=10.0).logpdf(thetas[:, -1])

    def minus(theta):
        return -log_p(np.tile(theta, (10, 1)))[0]

    found = optimize.minimize(minus, np.full(A.shape[1], 1e-3), method="BFGS")
    mean, cov = found.x, found.hess_inv + 1e-3 * np.eye(A.shape[1])
    for size in (n // 3, n // 3, n // 3, n):
        proposal = stats.multivariate_t(mean, 0.8 * cov, df=10, seed=seed)  # of covariance cov
        thetas = proposal.rvs(size)
        log_w = log_p(thetas) - proposal.logpdf(thetas)
        w = np.exp(log_w - log_w.max())
        w /= w.sum()
        mean, cov = w @ thetas, np.cov(thetas.T, aweights=w)
    assert 1.0 / (w**2).sum() > 20_000
    return mean, np.sqrt(np.diag(cov))


def errors(model, mean, sd):
    """Largest error of a mean in standard deviations, and of a standard deviation in per cent."""
    posterior = model.posterior_
    assert model.diagnostics_["min_ess"] > 20_000
    return np.abs((posterior.mean() - mean) / sd).max(), np.abs(posterior.std() / sd - 1.0).max()


ACCURATE = {"n_draws": 12_500, "n_chains": 4, "random_state": 0}


@pytest.mark.slow_except("normal")
@pytest.mark.parametrize("prior", PRIORS)
def test_posterior_of_few_rows(prior):
    """Skewed: 40 rows, nearly separable. The twin's prior is 25 % too narrow."""
    X, y = binary(40, 4, seed=3)
    X[:, 0] += 2.0 * y
    ours, exact = PRIORS[prior]
    mean, sd = reference(X, y, exact)
    right = BayesianLogisticRegression(prior=ours, **ACCURATE).fit(X, y)
    of_mean, of_sd = errors(right, mean, sd)
    assert of_mean < 0.05
    assert of_sd < 0.05
    wrong = clone(right).set_params(prior__scale=0.75 * ours.scale).fit(X, y)
    of_mean, of_sd = errors(wrong, mean, sd)
    assert of_mean > 0.05
    assert of_sd > 0.05


@pytest.mark.slow
def test_posterior_by_stochastic_gradients():
    X, y = binary(1200, 3, seed=4)
    mean, sd = reference(X, y, stats.norm())
    model = BayesianLogisticRegression(batch_size=50, **ACCURATE).fit(X, y)
    assert (model.sampler_, model.gradient_) == ("baoab", "taylor")
    of_mean, of_sd = errors(model, mean, sd)
    assert of_mean < 0.05
    assert of_sd < 0.05


@pytest.mark.slow
def test_multinomial_with_two_classes_is_the_binary_model():
    """Softmax with K classes under a Normal prior: the difference of two predictors."""
    X, y = multinomial(150, 2, 3, seed=1)
    keep = y < 2
    two = BayesianLogisticRegression(
        prior=Normal(scale=np.sqrt(2.0)), intercept_prior=Normal(scale=np.sqrt(200.0)), **ACCURATE
    ).fit(X[keep], y[keep])
    weight = np.where(keep, 1.0, 1e-12)  # the third class has rows, and no say
    three = BayesianLogisticRegression(**ACCURATE).fit(X, y, sample_weight=weight)
    coef = three.posterior_["coef"]
    difference = coef[..., 1, :] - coef[..., 0, :]
    assert np.abs((difference.mean(axis=(0, 1)) - two.coef_[0]) / two.coef_std_[0]).max() < 0.05
    assert np.abs(difference.std(axis=(0, 1)) / two.coef_std_[0] - 1.0).max() < 0.05


def test_small_probabilities_of_either_class_keep_their_digits():
    model = quick().fit(*binary())
    X = np.array([[1000.0, 0.0, 0.0], [-1000.0, 0.0, 0.0], [0.1, 0.0, 0.0]])
    draws = model.posterior_.flat.reshape(-1, 4)
    eta = X @ draws[:, :3].T + draws[:, 3]
    expected = np.column_stack([expit(-eta).mean(axis=1), expit(eta).mean(axis=1)])
    assert expected.min() < 1e-12
    assert np.allclose(model.predict_proba(X), expected, rtol=1e-10, atol=0.0)


def test_classes_and_columns_whose_labels_are_the_same():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 2)), columns=["c", "b, c"])
    y = np.array(["a", "a, b", "d"])[np.arange(30) % 3]
    labels = BayesianLogisticRegression(n_draws=10, n_chains=1).fit(X, y).posterior_.labels
    assert labels[1:3] == ("coef[a, b, c]", "coef[a, b, c] (2)")
