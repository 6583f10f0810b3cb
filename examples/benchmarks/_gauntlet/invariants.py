"""Cheap invariants: all that can be said where a posterior has no simple reference."""

from inspect import signature

import numpy as np


def broken(case, model):
    """What does not hold, as text; "" if all does."""
    checks = {
        "BayesianPMF": _pmf,
        "BayesianLDA": _lda,
        "BayesianGaussianMixture": _mixture,
        "BayesianICA": _sources,
        "BayesianMLPRegressor": _regressor,
        "BayesianMLPClassifier": _classifier,
    }
    check = checks.get(case.estimator, _groups if "group_effects" in case.options else _nothing)
    return "; ".join(text for text, holds in check(case, model) if not holds)


def _nothing(case, model):
    return []


def _pmf(case, model):
    y, rng = case.y, np.random.default_rng(0)
    mean, sd = model.predict(case.X, return_std=True)
    error = np.sqrt(np.mean((mean - y) ** 2))
    yield "predictions are not finite", np.isfinite(mean).all() and np.isfinite(sd).all()
    yield "standard deviations are not positive", (sd > 0.0).all() or y.std() == 0.0
    yield f"error on the fit's rows {error:.3g} above {y.std():.3g}", error <= 1.02 * y.std() + 1e-9
    low, high = model.predict_interval(case.X)
    yield "intervals are not in order", (low <= high).all()
    order = rng.permutation(len(y))
    again = model.predict(case.X[order])
    yield "predictions depend on the order of the rows", np.allclose(again, mean[order])


def _lda(case, model):
    total = model.components_.sum(axis=1)
    yield "topics do not add up to one", np.allclose(total, 1.0)
    yield "topics are not positive", (model.components_ >= 0.0).all()
    mixes = model.transform(case.X)
    yield "mixes do not add up to one", np.allclose(mixes.sum(axis=1), 1.0)
    counts = np.asarray(case.X.sum(axis=0)).ravel() + 0.05
    unigram = np.exp(-(counts @ np.log(counts / counts.sum())) / counts.sum())
    perplexity = model.perplexity(case.X)
    enough = counts.sum() > 2000.0
    yield (
        f"perplexity {perplexity:.4g}, of single words {unigram:.4g}",
        (np.isfinite(perplexity) and (perplexity < 1.1 * unigram or not enough)),
    )


def _mixture(case, model):
    K, X = case.options["n_components"], case.X
    share = model.predict_proba(X)
    yield "probabilities do not add up to one", np.allclose(share.sum(axis=1), 1.0)
    yield "log densities are not finite", np.isfinite(model.score_samples(X)).all()
    yield "weights do not add up to one", np.isclose(model.weights_.sum(), 1.0)
    wide = np.where(np.ptp(X, axis=0) > 0.0, np.ptp(X, axis=0), 1.0)  # constant ones have unit 1
    inside = (model.means_ > X.min(axis=0) - 5 * wide) & (model.means_ < X.max(axis=0) + 5 * wide)
    yield "means are far from all rows", inside.all()
    rows, component = model.sample(50)
    yield "samples have another shape", rows.shape == (50, X.shape[1]) and component.max() < K
    few = X[:: max(1, len(X) // 5)]
    yield (
        "densities depend on the other rows",
        np.allclose(model.score_samples(few), model.score_samples(X)[:: max(1, len(X) // 5)]),
    )


def _sources(case, model):
    X, d = case.X, len(model.components_)
    S = model.transform(X)
    yield "sources are not finite", np.isfinite(S).all() and S.shape == (len(X), d)
    scale = np.abs(X - X.mean(axis=0)).max(axis=0) + 1e-9 * np.abs(X).max(axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)  # of a column of zeros
    if "n_components" not in case.options:
        gap = np.abs(model.inverse_transform(S) - X) / scale
        yield f"rows do not come back: off by {gap.max():.2g}", gap.max() < 1e-5
    yield "log densities are not finite", np.isfinite(model.score_samples(X)).all()


def _regressor(case, model):
    X, y = case.X, case.y
    mean, sd = model.predict(X, return_std=True)
    low, high = model.predict_interval(X)
    yield "predictions are not finite", np.isfinite(mean).all() and np.isfinite(sd).all()
    yield "standard deviations are not positive", (sd > 0.0).all()
    yield "intervals are not in order", (low <= high).all()
    error, spread = np.sqrt(np.mean((mean - y) ** 2)), y.std()
    yield f"error on the fit's rows {error:.3g} above {spread:.3g}", error <= 1.05 * spread + 1e-9
    inside = ((low <= y) & (y <= high)).mean()
    enough = inside > 0.75 or len(y) < 20 or not isinstance(model.noise, str)
    yield f"90 % intervals contain {inside:.0%} of the fit's rows", enough
    again = model.predict(X[::-1])[::-1]
    unit = max(spread, 1e-12 * np.abs(y).max())
    yield "predictions depend on the order of the rows", np.abs(again - mean).max() < 1e-3 * unit


def _classifier(case, model):
    share = model.predict_proba(case.X)
    yield "probabilities do not add up to one", np.allclose(share.sum(axis=1), 1.0)
    lower, upper = model.predict_proba_interval(case.X)
    yield "intervals are not in order", (lower <= upper).all()
    which = np.searchsorted(model.classes_, case.y)
    loss = -np.log(np.maximum(share[np.arange(len(which)), which], 1e-300)).mean()
    p = np.bincount(which) / len(which)
    base = -(p * np.log(np.maximum(p, 1e-300))).sum()
    yield f"log loss on the fit's rows {loss:.3g} above {base:.3g}", loss <= 1.05 * base + 0.02
    again = model.predict_proba(case.X[::-1])[::-1]
    yield "probabilities depend on the order of the rows", np.abs(again - share).max() < 1e-3


def _groups(case, model):
    """Predictions of known and of unseen levels."""
    table = case.X if case.table is None else case.table
    few = table[:20] if case.table is None else table.iloc[:20]
    new = few.copy()
    if case.table is None:
        new[:, case.options["group_effects"]] = 1e6
    else:
        new["store"] = "a new one"
    for rows in (few, new):
        if hasattr(model, "predict_proba"):
            share = model.predict_proba(rows)
            yield "probabilities do not add up to one", np.allclose(share.sum(axis=1), 1.0)
            continue
        mean, sd = model.predict(rows, return_std=True)
        known = rows is few or "exposure" not in signature(model.fit).parameters
        allowed = np.isfinite(mean) if known else ~np.isnan(mean)  # E e^u over a heavy-tailed scale
        yield "predictions are not finite", allowed.all() and not np.isnan(sd).any()
        low, high = model.predict_interval(rows)
        yield "intervals are not in order", (low <= high).all()
    table = model.effects_.to_frame()
    yield "the table of effects is not finite", np.isfinite(table.to_numpy(float)).all()
