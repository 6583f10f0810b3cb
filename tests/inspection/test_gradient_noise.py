"""The pseudo-variance of the gradient, against sums over all batches of six rows."""

import itertools
import warnings

import cases
import naive
import numpy as np
import pandas as pd
import pytest
from problems import quick
from scenes import close
from sklearn.exceptions import NotFittedError

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianNegativeBinomialRegressor,
    BayesianPoissonRegressor,
    BayesianRobustRegression,
)
from skbayes_sg.engine.scores import scores_of_rows
from skbayes_sg.gradients import ControlVariate
from skbayes_sg.inspection import gradient_noise as module
from skbayes_sg.inspection.full_scores import target_of
from skbayes_sg.inspection.gradient_noise import GradientNoise, gradient_noise, inclusion
from skbayes_sg.recipe.measure import Survey

pytestmark = pytest.mark.filterwarnings("ignore::skbayes_sg.exceptions.SamplerConvergenceWarning")
N, P, EXACT = 6, 3, 1e-10
WEIGHT = np.array([1.0, 0.5, 2.0, 1.0, 6.0, 0.7])


def fitted(n_classes=2):
    """An estimator of six rows, one of them heavy, and the formulas of the same posterior."""
    rng = np.random.default_rng(n_classes)
    X, codes = rng.normal(size=(N, 2)), np.arange(N) % n_classes
    model = quick(sampler="hmc", n_warmup=20).fit(X, codes, WEIGHT)
    case = cases.MODELS["logistic" if n_classes == 2 else "softmax"]
    size = model.posterior_.flat.shape[-1]
    return model, X, codes, naive.Posterior(case, X, codes, WEIGHT, True, [None] * size)


def scenarios(gradient, posterior, thetas, centre):
    """All a (N, D) that are equally likely."""
    rows = [posterior.row_gradients(theta) for theta in thetas]
    if gradient == "minibatch":
        return rows
    if gradient == "svrg":
        return [a - b for a, b in itertools.permutations(rows, 2)]
    if gradient == "saga":
        tables = [
            [a[i] - b[i] for i, b in enumerate(choice)]
            for s, a in enumerate(rows)
            for choice in itertools.product(rows[:s] + rows[s + 1 :], repeat=N)
        ]
        return [np.array(table) for table in tables]
    at = posterior.row_gradients(centre)
    moved = [a - at for a in rows]
    if gradient == "taylor":
        H = posterior.row_hessians(centre)
        moved = [a - H @ (theta - centre) for a, theta in zip(moved, thetas, strict=True)]
    return moved


def spread(batches):
    """Trace of the covariance of a finite law [(chance, value)]."""
    chance, value = (np.array(x) for x in zip(*batches, strict=True))
    assert abs(chance.sum() - 1.0) < EXACT
    mean = chance @ value
    return chance @ ((value - mean) ** 2).sum(axis=1)


def replaced(a, p, n, plus=0.0):
    """All ordered batches with replacement."""
    return [
        (np.prod(p[list(b)]), plus + sum(a[i] / (n * p[i]) for i in b))
        for b in itertools.product(np.flatnonzero(p), repeat=n)
    ]


def batches(scheme, a, p, n):
    """The law of the estimate under a scheme."""
    if scheme == "uniform_without_replacement":
        every = list(itertools.combinations(range(N), n))
        return [(1.0 / len(every), N / n * a[list(b)].sum(axis=0)) for b in every]
    if scheme == "exact":
        norms = np.linalg.norm(a, axis=1)
        return replaced(a, norms / norms.sum(), n)
    if scheme == "poisson":
        pi = inclusion(p, n)
        return [
            (np.prod(np.where(b, pi, 1.0 - pi)), np.array(b) @ (a / pi[:, None]))
            for b in itertools.product((0, 1), repeat=N)
        ]
    if scheme == "capped":
        always = inclusion(p, n) >= 1.0
        rest = np.where(always, 0.0, p)
        return replaced(a, rest / rest.sum(), n - always.sum(), a[always].sum(axis=0))
    return replaced(a, p, n)


def naive_chances(scheme, gradient, survey, posterior):
    frame = survey.frame
    centre, F = frame.centre.theta, frame.F
    if scheme.startswith("uniform"):
        return np.full(N, 1.0 / N)
    if scheme == "gradient":
        w = np.linalg.norm(posterior.row_gradients(centre) @ F, axis=1)
    elif scheme == "hessian":
        H = posterior.row_hessians(centre)
        w = np.sqrt([np.trace(F.T @ h @ F @ F.T @ h @ F) for h in H])
    else:
        main = ControlVariate() if gradient in ("saga", "svrg") else module.GRADIENTS[gradient]()
        w = survey.row_noise(main, np.arange(N), survey_points(survey))
    return 0.9 * w / w.sum() + 0.1 / N


def survey_points(survey):
    """Quadrature serves one predictor a row."""
    return None if survey.K == 1 else survey.points


def examined(n_classes):
    model, X, codes, posterior = fitted(n_classes)
    survey = module._survey(model._posterior_of(X, codes, WEIGHT)[1])
    survey.points = module._points(survey.frame, model.posterior_, P)
    return model, X, codes, posterior, survey


@pytest.mark.slow_for("saga-posterior", "saga-exact", "saga-capped", "saga-poisson")
@pytest.mark.parametrize("n_classes", [2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("scheme", module.SCHEMES)
@pytest.mark.parametrize("gradient", module.GRADIENTS)
def test_pseudo_variance_is_that_of_all_batches(gradient, scheme, n_classes):
    model, X, codes, posterior, survey = examined(n_classes)
    frame = survey.frame
    found = gradient_noise(
        model, X, codes, gradients=gradient, subsampling=scheme, batch_sizes=[1, 2], n_points=P,
        sample_weight=WEIGHT,
    )  # fmt: skip
    p = naive_chances(scheme, gradient, survey, posterior)
    every = scenarios(gradient, posterior, frame.theta(survey.points), frame.centre.theta)
    every = [a @ frame.F for a in every]
    expected = [np.mean([spread(batches(scheme, a, p, n)) for a in every]) for n in (1, 2)]
    close(found.curve(gradient, scheme), expected, EXACT, np.max(expected))


def test_rows_that_are_always_in():
    p = np.array([0.6, 0.2, 0.1, 0.05, 0.05])
    for n in (1, 2, 3, 4, 5):
        pi = inclusion(p, n)
        assert abs(pi.sum() - n) < 1e-12
        assert (pi <= 1.0).all()
        free = pi < 1.0
        if free.any():
            assert np.ptp(pi[free] / p[free]) < 1e-12
            assert (p[~free] * (pi[free] / p[free])[0] >= 1.0 - 1e-12).all()
    np.testing.assert_allclose(inclusion(p, 2), [1.0, 0.5, 0.25, 0.125, 0.125])


def test_chunks_make_no_difference(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    y = (X[:, 0] > 2.0).astype(int)
    model = quick(sampler="hmc").fit(X, y)
    options = {"batch_sizes": [30, 900], "gradients": list(module.GRADIENTS), "n_points": 3}
    options["subsampling"] = module.SCHEMES
    whole = gradient_noise(model, X, y, **options)
    monkeypatch.setattr("skbayes_sg.engine.target.CHUNK_BYTES", 1)
    parts = gradient_noise(model, X, y, **options)
    np.testing.assert_allclose(
        parts["pseudo_variance"], whole["pseudo_variance"], rtol=1e-9, atol=1e-12
    )


def test_all_rows_have_no_noise():
    model, X, codes, _ = fitted()
    schemes = ["uniform_without_replacement", "capped", "poisson"]
    found = gradient_noise(
        model, X, codes, subsampling=schemes, batch_sizes=[N], sample_weight=WEIGHT
    )
    close(found["pseudo_variance"], np.zeros(12), EXACT)


def test_weight_zero_is_no_row_and_classes_have_weights():
    model, X, codes, _ = fitted()
    more = np.r_[X, [[9.0, 9.0]]], np.r_[codes, 1]
    options = {"batch_sizes": [2], "n_points": P}
    plain = gradient_noise(model, X, codes, sample_weight=WEIGHT, **options)
    other = gradient_noise(model, *more, sample_weight=np.r_[WEIGHT, 0.0], **options)
    np.testing.assert_allclose(other["pseudo_variance"], plain["pseudo_variance"], rtol=1e-12)
    model.class_weight = {0: 3.0, 1: 1.0}
    by_class = gradient_noise(model, X, codes, sample_weight=WEIGHT, **options)
    by_row = np.where(codes == 0, 3.0, 1.0) * WEIGHT
    model.class_weight = None
    by_hand = gradient_noise(model, X, codes, sample_weight=by_row, **options)
    assert (by_class["pseudo_variance"] == by_hand["pseudo_variance"]).all()


def test_the_table():
    model, X, codes, _ = fitted()
    found = gradient_noise(model, X, codes, gradients=["taylor"], batch_sizes=[1, 3])
    assert found["share"].tolist() == [1 / 6, 0.5] * 3
    assert repr(found).splitlines()[1].split()[:5] == ["gradient", "subsampling", "n", "=", "1"]
    assert len(repr(found).splitlines()) == 5
    frame = found.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert len(frame) == 6
    assert (frame["pseudo_variance"] == found["pseudo_variance"]).all()
    with pytest.raises(KeyError, match="minibatch"):
        found.curve("minibatch", "uniform")
    assert isinstance(found, GradientNoise)


def test_default_sizes_are_shares_of_the_rows():
    assert module._sizes(None, 10_000) == [10, 30, 100, 300, 1000, 3000]
    assert module._sizes(None, 6) == [1, 2]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"gradients": ["sagas"]}, r"gradients must be among .*got \['sagas'\]"),
        ({"gradients": []}, "gradients must be among"),
        ({"subsampling": "preferential"}, "subsampling must be among"),
        ({"batch_sizes": [0]}, "batch_sizes must be ints from 1 to 6"),
        ({"batch_sizes": [7]}, "batch_sizes"),
        ({"batch_sizes": [0.5]}, "batch_sizes"),
        ({"batch_sizes": [True]}, "batch_sizes"),
        ({"batch_sizes": []}, "batch_sizes"),
        ({"n_points": 1}, r"n_points must be an int in \[2, inf\), got 1"),
        ({"n_points": 2.0}, "n_points"),
        ({"sample_weight": -WEIGHT}, "[Nn]egative"),
    ],
)
def test_arguments_that_cannot_be_used(options, text):
    model, X, codes, _ = fitted()
    with pytest.raises(ValueError, match=text):
        gradient_noise(model, X, codes, **options)


def test_data_that_cannot_be_used():
    model, X, codes, _ = fitted()
    with pytest.raises(ValueError, match=r"y (has|lacks) the label .* was fitted to the classes"):
        gradient_noise(model, X, codes + 1)
    with pytest.raises(ValueError, match="features"):
        gradient_noise(model, X[:, :1], codes)
    with pytest.raises(ValueError, match="NaN"):
        gradient_noise(model, np.where(X > 0, np.nan, X), codes)
    with pytest.raises(TypeError, match="logistic, linear, robust or count"):
        gradient_noise("model", X, codes)
    with pytest.raises(NotFittedError):
        gradient_noise(quick(), X, codes)


def test_measurements_are_those_of_the_survey():
    model, X, codes, *_ = fitted()
    assert isinstance(module._survey(model._posterior_of(X, codes, None)[1]), Survey)


# -- other models: rows by the scores of one row ---------------------------------------------------

OTHER = {
    "linear": (BayesianLinearRegression, lambda rng: rng.normal(size=N), None),
    "robust": (BayesianRobustRegression, lambda rng: rng.normal(size=N), None),
    "poisson": (BayesianPoissonRegressor, lambda rng: rng.poisson(2.0, N), np.arange(1.0, N + 1)),
    "negative binomial": (
        BayesianNegativeBinomialRegressor, lambda rng: rng.poisson(3.0, N) * 2, None
    ),
}  # fmt: skip


def one_row_each(target, thetas):
    """∇ of each row's negative log-likelihood at each θ, (len(thetas), N, D)."""
    rows = [target.take([i], target.weight[[i]]) for i in range(target.n_rows)]
    return np.stack([scores_of_rows(row, thetas) for row in rows], axis=1)


@pytest.mark.parametrize("name", OTHER)
def test_rows_of_other_models(name):
    make, response, exposure = OTHER[name]
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(N, 1)), response(rng)
    more = {} if exposure is None else {"exposure": exposure}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make(n_draws=50, n_chains=2, random_state=0).fit(X, y, **more)
    target = target_of(model, X, y, None, exposure)
    survey = module._survey(target)
    frame = survey.frame
    thetas = frame.theta(module._points(frame, model.posterior_, P))
    at = one_row_each(target, thetas)
    centre, D = frame.centre.theta, target.n_parameters
    steps = 1e-5 * np.eye(D)
    up, down = (one_row_each(target, centre + sign * steps) for sign in (1, -1))
    hessians = np.moveaxis(up - down, 0, 2) / 2e-5  # (N, D, D)
    moved = at - one_row_each(target, centre[None])
    expansions = np.einsum("nab,pb->pna", hessians, thetas - centre)
    exact = {"minibatch": at, "control_variate": moved, "taylor": moved - expansions}
    found = gradient_noise(
        model, X, y, gradients=list(exact), subsampling="uniform", batch_sizes=[1, 2], n_points=P,
        exposure=exposure,
    )  # fmt: skip
    p = np.full(N, 1.0 / N)
    for gradient, rows in exact.items():
        every = [a @ frame.F for a in rows]
        expected = [np.mean([spread(replaced(a, p, n)) for a in every]) for n in (1, 2)]
        scale = np.max(np.square(exact["minibatch"] @ frame.F).sum()) * N
        assert np.allclose(found.curve(gradient, "uniform"), expected, rtol=1e-6, atol=1e-9 * scale)


def test_what_has_no_exposure():
    model, X, codes, _ = fitted()
    with pytest.raises(TypeError, match="has no exposures"):
        gradient_noise(model, X, codes, exposure=np.ones(N))
