"""New users of a recommender: how unsure it is of them, and what Thompson sampling does about it.

    python examples/cold_start.py [--rounds 8] [--repeats 3] [--output FOLDER] [--quick]

300 known users have rated a fifth of 60 items each. 100 new users arrive of whom nothing is known;
in every round each of them is shown one item that it has not seen, rates it, and the model is
fitted again. The item is chosen by its expected rating ("mean"), by one draw of the posterior for
each user ("thompson"), by the expected rating plus a standard deviation ("ucb"), or at random.
Regret is the rating that the best of the items not seen would have got, less that of the item
shown.

The first table is the standard deviation of the expected ratings of new users, by how many ratings
of theirs are known, and how many ratings lie in the 90 % intervals. The second one is the regret.
With ``--output`` both are drawn, as cold_start.png.
"""

import warnings

import numpy as np
from _script import Parser, save_figure

from skbayes_sg import BayesianPMF

KNOWN, NEW, ITEMS, RANK, NOISE = 300, 100, 60, 3, 0.5
STRATEGIES = ("mean", "thompson", "ucb", "random")


def world(rng):
    """Expected ratings of all users for all items, and the pairs of known users that are rated."""
    P = rng.standard_normal((KNOWN + NEW, RANK))
    Q = 0.7 * rng.standard_normal((ITEMS, RANK))
    expected = 3.0 + 0.3 * rng.standard_normal(ITEMS) + P @ Q.T
    return expected, np.argwhere(rng.random((KNOWN, ITEMS)) < 0.2)


def rated(rng, expected, pairs):
    """Ratings of pairs."""
    return expected[tuple(pairs.T)] + NOISE * rng.standard_normal(len(pairs))


def fit(X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # short chains: many fits, each of them a round
        return BayesianPMF(rank=4, n_draws=40, random_state=0).fit(X, y)


def next_items(model, strategy, users, seen, rng):
    """One item for each user that it has not seen."""
    if strategy == "random":
        return np.array([rng.choice(np.flatnonzero(~seen[u])) for u in users])
    options = {"random_state": int(rng.integers(2**31)), "strategy": strategy}
    return model.recommend(users, 1, **options)[:, 0]


def uncertainty(model, expected, users, seen, rng):
    """Spread of the expected ratings of new users for unseen items, coverage of the intervals."""
    pairs = np.argwhere(~seen[users])
    pairs[:, 0] += users[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of users who are new
        epistemic, _ = model.predict_std_components(pairs)
        lower, upper = model.predict_interval(pairs)
    y = rated(rng, expected, pairs)
    return epistemic.mean(), ((lower <= y) & (y <= upper)).mean()


def play(strategy, n_rounds, seed):
    """Regret, and uncertainty, of each round."""
    rng = np.random.default_rng([seed, STRATEGIES.index(strategy)])
    expected, X = world(np.random.default_rng(seed))
    y, users = rated(rng, expected, X), np.arange(KNOWN, KNOWN + NEW)
    seen, regret, unsure = np.zeros(expected.shape, bool), [], []
    for _ in range(n_rounds):
        model = fit(X, y)
        unsure.append(uncertainty(model, expected, users, seen, rng))
        items = next_items(model, strategy, users, seen, rng)
        best = np.where(seen[users], -np.inf, expected[users]).max(axis=1)
        regret.append((best - expected[users, items]).mean())
        pairs = np.column_stack([users, items])
        seen[users, items] = True
        X, y = np.vstack([X, pairs]), np.append(y, rated(rng, expected, pairs))
    return np.array(regret), np.array(unsure)


def draw(regrets, unsure, folder):
    from matplotlib.figure import Figure

    made = Figure((8.0, 3.4), layout="constrained")
    left, right = made.subplots(1, 2)
    left.plot(unsure[:, 0], "o-", label="sd of the expected rating")
    left.plot(unsure[:, 1], "s-", label="coverage of 90 % intervals")
    left.set(xlabel="ratings known of a new user (at random)", ylim=(0, None))
    left.legend()
    for name, regret in regrets.items():
        right.plot(np.arange(1, len(regret) + 1), np.cumsum(regret), "o-", label=name)
    right.set(xlabel="round", ylabel="regret so far")
    right.legend()
    save_figure(folder, "cold_start", made)


def main():
    parser = Parser(__doc__)
    parser.add_argument("--rounds", type=int, default=8, quick=2)
    parser.add_argument("--repeats", type=int, default=3, quick=1)
    options = parser.parse_args()
    regrets = {}
    for strategy in STRATEGIES:
        runs = [play(strategy, options.rounds, seed) for seed in range(options.repeats)]
        regrets[strategy] = np.mean([regret for regret, _ in runs], axis=0)
        unsure = np.mean([found for _, found in runs], axis=0)  # the last is of items at random
    print("ratings known  sd of the expected rating  coverage")
    for k, (sd, inside) in enumerate(unsure):
        print(f"{k:13}  {sd:25.2f}  {inside:8.3f}")
    print("\nregret in each round, and in all")
    for name, regret in regrets.items():
        print(f"{name:9}", " ".join(f"{r:5.2f}" for r in regret), f"  {regret.sum():5.2f}")
    if options.output:
        draw(regrets, unsure, options.output)


if __name__ == "__main__":
    main()
