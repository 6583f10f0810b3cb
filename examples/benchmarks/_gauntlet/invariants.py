"""Cheap invariants of the estimators whose posterior has no simple reference."""

import numpy as np


def broken(case, model):
    """What does not hold, as text; "" if all does."""
    check = _pmf if case.estimator == "BayesianPMF" else _lda
    return "; ".join(text for text, holds in check(case, model) if not holds)


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
