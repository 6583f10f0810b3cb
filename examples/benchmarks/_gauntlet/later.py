"""Tables for the models that look beyond one linear predictor with priors of fixed scale.

Group effects, learned scales and the horseshoe, mixtures, independent components, perceptrons and
likelihoods of users (`gauntlet.py --families later`). `posterior_of` says which density is the
reference of a case, and `draws_of` what of a fit is compared with it.
"""

import math
from itertools import chain

import numpy as np

from skbayes_sg.priors import (
    HalfCauchy,
    HalfNormal,
    HalfStudentT,
    Horseshoe,
    Laplace,
    Normal,
    StudentT,
)

from . import small
from .density import Density
from .families import (
    LINEAR,
    LOGISTIC,
    NEGATIVE,
    POISSON,
    ROBUST,
    Case,
    columns,
    levels,
    pick,
    predictor,
    response,
    standard,
    whole,
)
from .hierarchical import Collapsed, Hierarchical
from .references import Free, Whitened, drifted, importance_about, in_turn, references
from .sweeps import sweeps

MIXTURE, ICA = "BayesianGaussianMixture", "BayesianICA"
NETWORKS = "BayesianMLPRegressor", "BayesianMLPClassifier"
OWN_ROWS, OWN = "CustomRegressor", "CustomDensity"
REGRESSIONS = LINEAR, LINEAR, LOGISTIC, POISSON, NEGATIVE, ROBUST
LARGEST = 150  # parameters of references with unknown scales
MOST_DRIFTED = 600  # parameters of chains that begin at draws
SHORT = {"n_chains": 2, "n_draws": 500}


# -- group effects --------------------------------------------------------------------------------


def some_tau(rng):
    """None, little, as much as the noise, or very much."""
    return pick(rng, 0.0, 0.02, 0.5, 0.5, 1.0, 20.0)


def counted(rng, estimator, eta):
    """A response; predictors of counts stay where counts are."""
    if estimator in (POISSON, NEGATIVE):
        eta = np.clip(eta, -4.0, 4.0)
        eta = eta + rng.uniform(-1.0, 1.5)
        shape = rng.gamma(2.0, 0.5, len(eta)) if estimator == NEGATIVE else 1.0
        y = rng.poisson(np.exp(eta) * shape).astype(float)
        y[0] = max(y[0], 1.0)
        return y
    return response(rng, estimator, eta)


def group_case(rng, codes, estimators=REGRESSIONS, tau=None, slope=False, n_columns=None):
    """A table with columns, and after them columns of levels."""
    n, estimator = len(codes[0]), pick(rng, *estimators)
    d = whole(rng, 1, 4) if n_columns is None else n_columns
    X = columns(rng, n, d) if d else np.zeros((n, 0))
    tau = some_tau(rng) if tau is None else tau
    eta = predictor(rng, X)
    for code in codes:
        eta = eta + tau * rng.normal(size=code.max() + 1)[code]
    if slope:
        X[:, 0] = standard(X)[:, 0]
        eta = eta + pick(rng, 0.0, 0.5) * rng.normal(size=codes[0].max() + 1)[codes[0]] * X[:, 0]
    options = {"group_effects": list(range(d, d + len(codes)))}
    options |= {"group_slopes": {d: [0]}} if slope else {}
    options |= {"group_scale": HalfCauchy(1.0)} if rng.random() < 0.2 else {}
    options |= SHORT if rng.random() < 0.2 else {}
    table = np.column_stack([X, *codes]).astype(float)
    return Case(estimator, table, counted(rng, estimator, eta), options=options)


def groups_linear(rng):
    L = whole(rng, 3, 40)
    code = levels(rng, whole(rng, max(2 * L, 20), 2000), L, rng.uniform(0.0, 1.5))
    return group_case(rng, [code], [LINEAR])


def groups_counts_and_classes(rng):
    L = whole(rng, 3, 25)
    code = levels(rng, whole(rng, max(3 * L, 30), 1000), L, rng.uniform(0.0, 1.5))
    return group_case(rng, [code], [LOGISTIC, POISSON, NEGATIVE, ROBUST])


def groups_crossed(rng):
    n = whole(rng, 60, 1000)
    codes = [levels(rng, n, whole(rng, 3, 20), rng.uniform(0.0, 1.0)) for _ in range(2)]
    if rng.random() < 0.3:  # nested
        codes[1] = codes[0] * 2 + (rng.random(n) < 0.5)
        codes[1] = np.unique(codes[1], return_inverse=True)[1]
    return group_case(rng, codes)


def groups_slopes(rng):
    L = whole(rng, 4, 15)
    code = levels(rng, whole(rng, 10 * L, 800), L, rng.uniform(0.0, 1.0))
    return group_case(rng, [code], slope=True)


def groups_two_levels(rng):
    code = levels(rng, whole(rng, 10, 500), 2, rng.uniform(0.0, 3.0))
    return group_case(rng, [code])


def groups_of_one_row(rng):
    """Nearly as many levels as rows; of two classes and counts also exactly as many."""
    n = whole(rng, 15, 80)
    code = rng.permutation(np.r_[np.arange(n), rng.integers(0, n, whole(rng, 1, n))])
    return group_case(rng, [code])


def groups_many_levels(rng):
    L = whole(rng, 100, 500)
    code = levels(rng, whole(rng, L, 4000), L, rng.uniform(0.0, 1.2))
    return group_case(rng, [code])


def groups_awkward(rng):
    """Weights, columns far from zero, copies of columns, tables with text, no other columns."""
    L = whole(rng, 3, 15)
    n = whole(rng, 60, 500)
    what = pick(rng, "weights", "offset", "copies", "text", "no columns", "a level as a column")
    made = group_case(rng, [levels(rng, n, L)], n_columns=0 if what == "no columns" else 2)
    if what == "weights":
        made.weight = rng.lognormal(0.0, 1.0, n)
    elif what == "offset":
        made.X[:, 0] += 10.0 ** rng.uniform(1, 6)
    elif what == "copies":
        made.X[:, 1] = made.X[:, 0]
    elif what == "a level as a column":
        made.X[:, 1] = made.X[:, 2] == pick(rng, 0, 1)
    elif what == "text":
        import pandas as pd

        made.table = pd.DataFrame(made.X[:, :-1], columns=["a", "b"])
        made.table["store"] = [f"store {level:04.0f}" for level in made.X[:, -1]]
        made.table["store"] = made.table["store"].astype(pick(rng, object, "category"))
    return made


# -- scales of coefficients -----------------------------------------------------------------------


def scale_case(rng, X, prior, estimators, strength=None):
    estimator = pick(rng, *estimators)
    eta = predictor(rng, X, strength)
    y = counted(rng, estimator, eta)
    options = {"prior": prior} | (SHORT if rng.random() < 0.2 else {})
    return Case(estimator, X, y, options=options)


def of_scale(rng):
    own = pick(rng, "auto", "auto", 1.0)
    return pick(rng, HalfCauchy(own), HalfNormal(scale=own), HalfStudentT(df=3, scale=own))


def learned_scale(rng):
    X = columns(rng, whole(rng, 15, 1000), whole(rng, 1, 12))
    X = standard(X) if rng.random() < 0.5 else X
    return scale_case(rng, X, Normal(scale=of_scale(rng)), REGRESSIONS, pick(rng, None, 0.0))


def learned_blocks(rng):
    """A scale for each block of columns, or for each column."""
    X = standard(columns(rng, whole(rng, 20, 600), whole(rng, 2, 9)))
    blocks = [f"block {k}" for k in np.sort(rng.integers(0, 3, X.shape[1]))]
    prior = Normal(scale=of_scale(rng), scale_groups=pick(rng, "columns", blocks, blocks))
    return scale_case(rng, X, prior, REGRESSIONS, pick(rng, None, 0.0))


def learned_wide(rng):
    """More columns than rows."""
    n = whole(rng, 10, 60)
    X = columns(rng, n, n + whole(rng, 1, 60))
    return scale_case(rng, X, Normal(scale=HalfCauchy()), (LINEAR, LOGISTIC, POISSON))


def horseshoe(rng):
    """No signal, a few coefficients, or all of them; correlated, and more columns than rows."""
    p = whole(rng, 3, 25)
    n = whole(rng, max(10, p // 2), 300)
    X = rng.normal(size=(n, p))
    X = X + pick(rng, 0.0, 0.0, 2.0) * rng.normal(size=(n, 1))
    k = pick(rng, 0, 1, 2, p)
    eta = X[:, :k] @ (pick(rng, 0.5, 2.0) * rng.normal(size=k))
    estimator = pick(rng, LINEAR, LINEAR, LOGISTIC, POISSON, ROBUST)
    prior = Horseshoe() if rng.random() < 0.5 else Horseshoe(n_relevant=min(p - 0.5, 2.0))
    return Case(estimator, X, counted(rng, estimator, eta), options={"prior": prior})


def few_rows(rng):
    """Few rows for so many columns: coefficients that can fit all of them, or all but a few."""
    n = whole(rng, 3, 25)
    X = columns(rng, n, max(2, int(n * rng.uniform(0.6, 1.6))))
    eta = 2.0 * standard(X)[:, : whole(rng, 1, 3)].sum(axis=1)
    y = eta + pick(rng, 0.05, 0.5, 2.0) * rng.normal(size=n)
    scale = float(pick(rng, 0.1, 0.5, 2.0))
    prior = pick(rng, Laplace(scale=scale), Laplace(), StudentT(df=3.0, scale=scale), StudentT())
    estimator = pick(rng, LINEAR, LINEAR, ROBUST)
    prior = pick(rng, prior, "normal", Normal(scale=scale)) if estimator == ROBUST else prior
    options = {"prior": prior, "fit_intercept": pick(rng, True, True, False)}
    return Case(estimator, X, y, options=options)


# -- mixtures and sources -------------------------------------------------------------------------


def clouds(rng, n, d, K, apart):
    label = np.sort(rng.integers(0, K, n))
    return apart * rng.normal(size=(K, d))[label] + rng.normal(size=(n, d))


def mixtures(rng):
    d, true = pick(rng, 1, 1, 2), whole(rng, 1, 3)
    X = clouds(rng, whole(rng, 8, 150), d, true, rng.uniform(0.0, 6.0))
    kind = pick(rng, "full", "diag", "spherical", "tied")
    return Case(
        MIXTURE, X, options={"n_components": pick(rng, 1, 2, 2, 3), "covariance_type": kind}
    )


def mixtures_awkward(rng):
    """One component fitted with three, repeated rows, whole numbers, offsets, units, few rows."""
    d = whole(rng, 1, 4)
    X = clouds(rng, whole(rng, 10, 300), d, whole(rng, 1, 2), 4.0)
    kinds = "one of three", "repeated", "whole", "offset", "units", "few", "heavy", "constant"
    what, K = pick(rng, *kinds), pick(rng, 2, 3)
    if what == "one of three":
        X, K = rng.normal(size=X.shape), 3
    elif what == "repeated":
        X = np.repeat(X[: len(X) // 5 + 1], 5, axis=0)
    elif what == "whole":
        X = np.round(X)
    elif what == "offset":
        X = X + 10.0 ** rng.uniform(3, 7)
    elif what == "units":
        X = X * 10.0 ** rng.uniform(-6, 6, d)
    elif what == "few":
        X = X[: K + 1]
    elif what == "heavy":
        X = rng.standard_t(1.5, X.shape)
    else:
        X = np.column_stack([X, np.full(len(X), 3.0)])
    options = {"n_components": K, "covariance_type": pick(rng, "full", "diag", "tied")}
    return Case(MIXTURE, X, options=options)


def some_sources(rng, n, d):
    laws = rng.laplace, rng.normal, rng.logistic, rng.uniform, lambda size: rng.standard_t(3, size)
    return np.stack([pick(rng, *laws)(size=n) for _ in range(d)], axis=1)


def sources(rng):
    d = pick(rng, 1, 2, 2, 2, 3)
    S = some_sources(rng, whole(rng, 20, 400), d)
    S = rng.normal(size=S.shape) if rng.random() < 0.25 else S
    return Case(ICA, S @ rng.normal(size=(d, d)).T)


def sources_awkward(rng):
    """More columns than sources, offsets, units, copies, whole numbers, few rows."""
    S = some_sources(rng, whole(rng, 30, 400), 2)
    X = S @ rng.normal(size=(2, 2)).T
    what = pick(rng, "columns", "n_components", "offset", "units", "whole", "few", "constant")
    options = {}
    if what in ("columns", "n_components"):
        X = S @ rng.normal(size=(4, 2)).T
        if what == "n_components":
            X, options = X + 0.1 * rng.normal(size=X.shape), {"n_components": 2}
    elif what == "offset":
        X = X + 10.0 ** rng.uniform(3, 7)
    elif what == "units":
        X = X * 10.0 ** rng.uniform(-6, 6, 2)
    elif what == "whole":
        X = np.round(2.0 * X)
    elif what == "few":
        X = X[:4]
    else:
        X = np.column_stack([X, np.full(len(X), 3.0)])
    return Case(ICA, X, options=options)


# -- perceptrons ----------------------------------------------------------------------------------


def networks(rng):
    n, d = whole(rng, 20, 200), whole(rng, 1, 3)
    X = columns(rng, n, d)
    X[:, 0] = rng.uniform(-2.0, 2.0, n)
    curve = pick(rng, np.sin, np.abs, np.zeros_like, np.array)(1.5 * X[:, 0])
    estimator = pick(rng, NETWORKS[0], NETWORKS[0], NETWORKS[1])
    options = {
        "hidden_layer_sizes": (whole(rng, 1, 4),),
        "activation": pick(rng, "tanh", "logistic"),
    }
    if estimator == NETWORKS[1]:
        y = (rng.random(n) < 1.0 / (1.0 + np.exp(-3.0 * (curve - curve.mean())))).astype(int)
        y[:2] = 0, 1
    else:
        y = pick(rng, 1.0, 100.0) * (curve + pick(rng, 0.1, 0.5) * rng.normal(size=n))
        options |= {"noise": pick(rng, "heteroscedastic", "infer", float(0.5 * y.std()))}
    options |= {"batch_size": max(5, n // 4)} if rng.random() < 0.3 else {}
    return Case(estimator, X, y, options=options)


def networks_awkward(rng):
    """Usual sizes on few, repeated, separable, enormous or constant rows."""
    n, d = whole(rng, 5, 300), whole(rng, 1, 6)
    X, estimator = columns(rng, n, d), pick(rng, *NETWORKS)
    what = pick(rng, "few", "repeated", "offset", "separable", "constant", "outliers", "classes")
    if what == "few":
        X = X[: max(3, n // 20)]
    elif what == "repeated":
        X = np.round(standard(X))
    elif what == "offset":
        X = X + 10.0 ** rng.uniform(3, 7)
    elif what == "constant":
        X[:, 0] = pick(rng, 0.0, 7.3)
    elif what == "outliers":
        X = rng.standard_cauchy(X.shape)
    eta = predictor(rng, X, 1.0)
    noise = rng.standard_t(2, len(X)) if what == "outliers" else rng.normal(size=len(X))
    y = eta + 0.5 * noise
    if estimator == NETWORKS[1]:
        K = pick(rng, 3, 6) if what == "classes" else 2
        noise = 0.0 if what == "separable" else noise
        y = np.argsort(np.argsort(eta + noise)) * K // len(X)
    options = {"hidden_layer_sizes": pick(rng, (32, 16), (50,), (20,), (10, 5), ())}
    return Case(estimator, X, y, options=options, seconds=240.0)


# -- likelihoods of users -------------------------------------------------------------------------


def _logistic(eta, y):
    return y * eta - np.log(1.0 + np.exp(eta))


def _poisson(eta, y):
    return y * eta - np.exp(eta)


def _tobit(eta, y, sigma):
    z = (y - eta) / sigma
    if y > 0.0:
        return -0.5 * z * z - math.log(sigma)
    return math.log(0.5 * math.erfc(-z / math.sqrt(2.0)) + 1e-300)


def _zero_inflated(eta, y):
    total = np.log(1.0 + np.exp(eta[0]))
    if y == 0.0:
        return np.log(np.exp(eta[0]) + np.exp(-np.exp(eta[1]))) - total
    return y * eta[1] - np.exp(eta[1]) - total


def _decay(theta, row):
    level, size, rate, sigma = theta
    z = (row[1] - level - size * np.exp(-rate * row[0])) / sigma
    return -0.5 * z * z - np.log(sigma)


def _two_signs(theta, row):
    a, b = theta
    return -0.5 * (row[1] - a * a) ** 2 - 0.5 * (row[0] - a * b) ** 2


def own_rows(rng):
    n, d = whole(rng, 20, 500), whole(rng, 1, 3)
    X, what = columns(rng, n, d), pick(rng, "logistic", "poisson", "tobit", "zero inflated")
    X = standard(X) if rng.random() < 0.5 else X + pick(rng, 0.0, 100.0)
    X = standard(X)[:, :1] if what == "zero inflated" else X
    eta = predictor(rng, X)
    options = {"prior": Normal(scale=2.0), "intercept_prior": Normal(scale=pick(rng, 5.0, 50.0))}
    if what == "logistic":
        y, f = (rng.logistic(size=n) < eta).astype(float), _logistic
    elif what == "poisson":
        y, f = rng.poisson(np.exp(np.minimum(eta, 4.0))).astype(float), _poisson
    elif what == "tobit":
        y, f = np.maximum(eta + rng.uniform(0.2, 2.0) * rng.normal(size=n), 0.0), _tobit
        options["extras"] = {"sigma": HalfNormal(scale=2.0)}
    else:
        y, f = rng.poisson(np.exp(0.5 + 0.5 * X[:, 0])).astype(float), _zero_inflated
        y[rng.random(n) < 0.4] = 0.0
        options["n_predictors"] = 2
    return Case(OWN_ROWS, X, y, options=options | {"log_likelihood": f})


def own_density(rng):
    n = whole(rng, 10, 300)
    if rng.random() < 0.5:
        t = rng.uniform(0.0, pick(rng, 1.0, 5.0), n)
        y = 1.0 + pick(rng, 0.0, 2.0) * np.exp(-1.5 * t) + pick(rng, 0.02, 0.3) * rng.normal(size=n)
        priors = {"level": Normal(scale=2.0), "size": Normal(scale=2.0)}
        priors |= {"rate": HalfNormal(scale=2.0), "sigma": HalfNormal(scale=1.0)}
        return Case(OWN, t[:, None], y, options={"log_density": _decay, "parameters": priors})
    a = pick(rng, 0.0, 0.3, 1.0, 2.0)
    x, y = 0.7 * a + rng.normal(size=n), a**2 + rng.normal(size=n)
    priors = {"a": Normal(scale=2.0), "b": Normal(scale=1.0)}
    return Case(OWN, x[:, None], y, options={"log_density": _two_signs, "parameters": priors})


LATER = {
    made.__name__: made
    for made in [
        groups_linear, groups_counts_and_classes, groups_crossed, groups_slopes, groups_two_levels,
        groups_of_one_row, groups_many_levels, groups_awkward, learned_scale, learned_blocks,
        learned_wide, horseshoe, few_rows, mixtures, mixtures_awkward, sources, sources_awkward,
        networks, networks_awkward, own_rows, own_density,
    ]
}  # fmt: skip


# -- what is compared -----------------------------------------------------------------------------


def _learns_scales(case):
    prior = case.options.get("prior")
    learned = hasattr(prior, "slab") or hasattr(getattr(prior, "scale", None), "scale")
    return "group_effects" in case.options or learned


def _own_density(case):
    options = case.options
    if case.estimator == OWN:
        laws = {"_decay": small.decay, "_two_signs": small.two_signs}
        law, priors = laws[options["log_density"].__name__], options["parameters"].values()
        return small.Own(law, list(priors), np.column_stack([case.X, case.y]))
    f, d = options["log_likelihood"].__name__, case.X.shape[1]
    if f in ("_logistic", "_poisson"):
        plain = {k: v for k, v in options.items() if k != "log_likelihood"}
        estimator = LOGISTIC if f == "_logistic" else POISSON
        return Density(Case(estimator, case.X, case.y, options=plain))
    K = options.get("n_predictors", 1)
    priors = [options["prior"]] * (K * d) + [options["intercept_prior"]] * K
    priors += list(options.get("extras", {}).values())
    law = {"_tobit": small.tobit, "_zero_inflated": small.zero_inflated}[f]
    return small.Own(law, priors, np.column_stack([case.X, case.y]))


def _small(case):
    """The density of a case that has few parameters, or None."""
    if case.estimator == MIXTURE:
        fits = case.X.std(axis=0).min() > 0.0 and np.abs(case.X).max() < 1e3
        found = small.Mixture(case)
        return found if fits and found.D <= 14 else None
    if case.estimator == ICA:
        found = small.Sources(case)
        return found if found.D <= 9 else None
    layers = case.options["hidden_layer_sizes"]
    hidden = len(layers) == 1 and layers[0] <= 4 and len(np.unique(case.y)) >= 2
    found = small.Network(case) if hidden and case.X.std(axis=0).min() > 0.0 else None
    return found if found is not None and found.D <= 30 else None


def densities_of(case):
    """What can be integrated, the best first; empty where there is no reference."""
    if case.estimator in (OWN_ROWS, OWN):
        return [_own_density(case)]
    if case.estimator in (MIXTURE, ICA, *NETWORKS):
        return [density for density in [_small(case)] if density is not None]
    if not _learns_scales(case):
        return [Density(case)]
    joint = Hierarchical(case)
    return [Collapsed(joint), joint] if Collapsed.suits(joint) else [joint]


def posterior_of(case, seed):
    """The density by whose identities draws are judged, or None; and references, as asked for."""
    found = densities_of(case)
    rng = np.random.default_rng([seed, 77])

    def later():
        for density in found:
            if density.D <= LARGEST:
                yield from in_turn(Free(density, rng), rng)

    last = found[-1] if found else None
    if type(last) is Density:
        own = (found for found in [sweeps(last, rng)] if found is not None)
        return last, chain(own, references(last, seed))
    return (last if getattr(last, "has_inverse", False) else None), later()


def about_draws(density, draws, seed):
    """A reference that looks where draws lie, (chains, n, D), or None."""
    return _from_draws(importance_about, density, draws, [seed, 78])


def after_drift(density, draws, seed):
    """Where chains go from draws (chains, n, D), by two runs that know nothing of each other."""
    if type(density) is not Density or density.D > MOST_DRIFTED:
        return
    for k in range(2):
        found = _from_draws(drifted, density, draws, [seed, 79 + k])
        if found is None:
            return
        yield found


def _from_draws(method, density, draws, seed):
    rng = np.random.default_rng(seed)
    white = (Whitened if type(density) is Density else Free)(density, rng)
    return method(white, rng, density.phi(draws.reshape(-1, draws.shape[-1])))


def draws_of(case, model):
    """(draws (chains, n, D), labels) of what is compared; None where nothing is."""
    posterior = model.posterior_
    if case.estimator not in (MIXTURE, ICA, *NETWORKS):
        found = _with_log_scales(posterior)
        return _with_effects(model, *found) if "group_effects" in case.options else found
    density = _small(case)
    if density is None:
        return None
    shape, own = posterior.sampled.shape[:2], {}
    for name in posterior.names:
        values = np.asarray(posterior[name], float)
        own[name] = values.reshape(shape[0] * shape[1], *values.shape[2:])
    if case.estimator == MIXTURE:
        seen = density.of_draws(own["weights"], own["means"], _matrices(case, own["covariances"]))
    elif case.estimator == ICA:
        seen = density.of_draws(own["components"])
    else:
        names = "coefs_0", "intercepts_0", "coefs_1", "intercepts_1"
        noise = own["noise_std"] if density.noise == "infer" else None
        seen = density.of_draws([own[name] for name in names], noise)
    return seen.reshape(*shape, -1), [f"seen[{k}]" for k in range(seen.shape[1])]


def _with_log_scales(posterior):
    """Draws and labels, with logarithms of scales, whose own tails may have no variance."""
    kept = [k for k, label in enumerate(posterior.labels) if label != "m_eff"]
    draws, labels = posterior.sampled[..., kept].astype(float), []
    for k, label in enumerate(posterior.labels[k] for k in kept):
        if label.split("[")[0] in ("prior_scale", "group_std", "group_slope_std"):
            draws[..., k], label = np.log(draws[..., k]), f"log {label}"
        labels.append(label)
    return draws, labels


def _with_effects(model, draws, labels):
    effects = model._groups.effects
    own = [np.moveaxis(np.asarray(part, float), 0, 2) for part in effects.draws]
    more = [f"effect {k} of {j}" for j, part in enumerate(own) for k in range(part.shape[2])]
    return np.concatenate([draws, *own], axis=2), [*labels, *more]


def _matrices(case, covariances):
    """(m, K, d, d) of covariances in the shapes of scikit-learn."""
    kind, K, d = case.options["covariance_type"], case.options["n_components"], case.X.shape[1]
    if kind == "full":
        return covariances
    if kind == "tied":
        return np.broadcast_to(covariances[:, None], (len(covariances), K, d, d))
    own = covariances[..., None] if kind == "spherical" else covariances
    return own[..., None] * np.eye(d)
