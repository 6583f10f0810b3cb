"""Counts with exposures: which of two regressions makes counts like the observed ones.

    python examples/overdispersed_counts.py [--data made | words] [--quick] [--output FOLDER]

"made" are visits of customers in weeks of different length, whose rates vary by more than the
columns say. "words" are occurrences of a word in 3430 entries of a blog, whose exposure is the
length of the entry (`kos.npz` in the folder that the variable SKBAYES_SG_DATA names): a word that
has occurred comes again. The script prints the coverage of 90 % intervals of rows that were kept
back, with random ends so that it can be 0.9, and the posterior predictive checks, and draws these.
"""

import numpy as np
from _script import Parser, needed, save_figure
from scipy import sparse

from skbayes_sg import BayesianNegativeBinomialRegressor, BayesianPoissonRegressor
from skbayes_sg.metrics import posterior_predictive_check
from skbayes_sg.plots import PredictiveCheckDisplay


def made():
    """Two columns, counts and exposures; gamma distributed factors of variance 0.5."""
    rng = np.random.default_rng(0)
    X, hours = rng.normal(size=(2000, 2)), rng.lognormal(size=2000)
    rate = np.exp(0.5 + X @ [0.5, -0.3]) * rng.gamma(2.0, 0.5, 2000)
    return X, rng.poisson(hours * rate), hours


def words(word="iraq"):
    """Logarithms of the counts of other words, the count of the word, and the length."""
    z = needed("kos.npz")
    parts = z["counts"].astype(float), z["indices"].astype(np.int32), z["indptr"]
    table, names = sparse.csr_array(parts).tocsc(), list(z["vocab"])
    others = ["bush", "kerry", "poll", "senate", "house", "troops", "campaign"]
    y = table[:, [names.index(word)]].toarray().ravel()
    X = np.log1p(table[:, [names.index(other) for other in others]].toarray())
    return X, y, table.sum(axis=1) - y


def randomised_coverage(model, X, y, exposure, n_draws):
    """Share of counts in 90 % intervals whose ends have a random share of their probability."""
    made = model.sample_y(X, n_draws, exposure=exposure)
    below, up_to = ((made < y[:, None]).mean(axis=1), (made <= y[:, None]).mean(axis=1))
    u = below + np.random.default_rng(0).random(len(y)) * (up_to - below)
    return ((u > 0.05) & (u < 0.95)).mean()


def main():
    parser = Parser(__doc__)
    parser.add_argument("--data", choices=["made", "words"], default="made")
    parser.add_argument("--n-draws", type=int, default=1000, quick=50)
    args = parser.parse_args()
    X, y, exposure = {"made": made, "words": words}[args.data]()
    order = np.random.default_rng(1).permutation(len(y))
    fit, new = np.array_split(order, 2)
    checks = []
    for estimator in (BayesianPoissonRegressor, BayesianNegativeBinomialRegressor):
        model = estimator(n_draws=args.n_draws, random_state=0)
        model.fit(X[fit], y[fit], exposure=exposure[fit])
        rows = X[new], y[new], exposure[new]
        share = randomised_coverage(model, *rows, args.n_draws)
        checks.append(posterior_predictive_check(model, *rows[:2], exposure=rows[2]))
        print(f"{checks[-1]}\ncoverage of 90 % intervals: {share:.3f}\n")
    if args.output is not None:
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(2, 1, figsize=(7.0, 4.0), layout="constrained", sharex=True)
        limits = []
        for check, axis in zip(checks, axes, strict=True):
            PredictiveCheckDisplay(check).plot(axis)
            limits.append(axis.get_xlim()[1])
        axes[0].set(xlim=(-max(limits), max(limits)), xlabel="")
        save_figure(args.output, "predictive_check", figure)


if __name__ == "__main__":
    main()
