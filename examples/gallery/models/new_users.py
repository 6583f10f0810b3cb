"""
What to show to new users
=========================

A recommender knows 300 users and 60 items. New users arrive of whom nothing is known: how unsure is
it of them, and which items should they see first? In each round every new user is shown one item
and rates it. The item with the best mean repeats what is believed already; the best item by one
draw of the posterior for each user (Thompson sampling) is one that may be best. Which strategy
pays?

The ratings are simulated, so that the regret is known: the expected rating of the best unseen item,
less that of the item shown.
"""

import sys
import warnings

import matplotlib.pyplot as plt
import numpy as np

from skbayes_sg import BayesianPMF

QUICK = "--quick" in sys.argv
KNOWN, NEW, ITEMS, ROUNDS = 300, 100, 60, 2 if QUICK else 6
STRATEGIES = ("mean", "thompson", "random")
rng = np.random.default_rng(0)
tastes = rng.standard_normal((KNOWN + NEW, 3))
expected = 3.0 + 0.3 * rng.standard_normal(ITEMS) + tastes @ (0.7 * rng.normal(size=(ITEMS, 3))).T
new = np.arange(KNOWN, KNOWN + NEW)
known_pairs = np.argwhere(rng.random((KNOWN, ITEMS)) < 0.2)


def rated(pairs):
    return expected[tuple(pairs.T)] + 0.5 * rng.standard_normal(len(pairs))


known_ratings = rated(known_pairs)

# %%
# The expected ratings of an unknown user are as uncertain as users are different. A few ratings
# change that.


def items_for(model, strategy, seen):
    if strategy == "random":
        return np.array([rng.choice(np.flatnonzero(~seen[user])) for user in new])
    return model.recommend(new, 1, strategy=strategy, random_state=int(rng.integers(1e9)))[:, 0]


def play(strategy):
    """Regret and uncertainty in each round."""
    X, y, seen, regret, unsure = known_pairs, known_ratings, np.zeros(expected.shape, bool), [], []
    for _ in range(ROUNDS):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # short chains, and users of whom nothing is known
            model = BayesianPMF(rank=4, n_draws=30, random_state=0).fit(X, y)
            unseen = np.argwhere(~seen[new])
            unseen[:, 0] += KNOWN
            unsure.append(model.predict_std_components(unseen)[0].mean())
            items = items_for(model, strategy, seen)
        best = np.where(seen[new], -np.inf, expected[new]).max(axis=1)
        regret.append((best - expected[new, items]).mean())
        pairs = np.column_stack([new, items])
        seen[new, items] = True
        X, y = np.vstack([X, pairs]), np.append(y, rated(pairs))
    return regret, unsure


played = {strategy: play(strategy) for strategy in STRATEGIES}
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
for strategy, (regret, unsure) in played.items():
    left.plot(unsure, "o-", label=strategy)
    right.plot(np.arange(1, ROUNDS + 1), np.cumsum(regret), "o-", label=strategy)
    print(f"{strategy:9} regret of all rounds: {sum(regret):.2f}")
left.set(xlabel="ratings known of a new user", ylabel="sd of the expected rating", ylim=(0, None))
right.set(xlabel="round", ylabel="regret so far", ylim=(0, None))
right.legend()

# %%
# **Takeaway.** The posterior says how little is known of a new user. Exploring has a price: here
# Thompson sampling learns faster, but in so few rounds the best mean has less regret, because the
# known users tell which items most people like. Compare strategies before you choose one.
