"""
How good is a shop that has had four customers?
===============================================

A chain of 150 shops, some with two customers and some with hundreds. Which shops sell best, given
who came in? The share of buyers of a small shop is mostly luck, and the shops at both ends of a
ranking by shares are the smallest ones. `group_effects` gives each shop an effect, and shrinks it
as much as the shops are seen to be alike.

The customers are made, so that the true effects are known.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skbayes_sg import BayesianLogisticRegression
from skbayes_sg.plots import EffectsDisplay

QUICK = "--quick" in sys.argv
rng = np.random.default_rng(0)
N_SHOPS, N = 150, 600 if QUICK else 4000
size = rng.gamma(0.6, size=N_SHOPS) + 0.02
true = pd.Series(0.6 * rng.normal(size=N_SHOPS), index=[f"shop {k}" for k in range(N_SHOPS)])
X = pd.DataFrame(
    {
        "visits": rng.normal(size=N),
        "shop": rng.choice(true.index, N, p=size / size.sum()),
    }
)
log_odds = -0.5 + 0.8 * X["visits"] + true[X["shop"]].to_numpy()
bought = rng.random(N) < 1.0 / (1.0 + np.exp(-log_odds))

# %%
# One row for each shop: how many customers it had, and what they say of it.
model = BayesianLogisticRegression(
    group_effects=["shop"], n_draws=50 if QUICK else 500, n_chains=2, random_state=0
).fit(X, bought)
effects = model.effects_.to_frame()
effects.index = model.group_levels_["shop"]
print(effects.sort_values("rows").iloc[[0, 1, -2, -1]].round(2))
print(model.effects_.heading)

# %%
# Errors of the log-odds of shops, by the number of their customers: those of plain shares (with
# half a buyer added to either side), and those of the effects.
tally = pd.DataFrame({"shop": X["shop"], "bought": bought}).groupby("shop")["bought"]
odds = (tally.sum() + 0.5) / (tally.count() - tally.sum() + 0.5)
share = np.log(odds) - np.log((bought.sum() + 0.5) / ((~bought).sum() + 0.5))
known = true[effects.index]
few = effects["rows"] <= 10
for name, rows in (("up to ten", few), ("more", ~few)):
    errors = [np.sqrt(np.mean((e - known)[rows] ** 2)) for e in (share, effects["mean"])]
    print(f"{name} customers: error of shares {errors[0]:.2f}, of effects {errors[1]:.2f}")
inside = (effects["5%"] <= known) & (known <= effects["95%"])
print(f"90 % intervals with the true effect inside: {inside.mean():.2f}")

# %%
# All shops, sorted. The widest intervals belong to shops with few customers, and lie in the middle.
figure, axis = plt.subplots(figsize=(6, 5), layout="constrained")
EffectsDisplay.from_estimator(model, ax=axis)

# %%
# A shop that opens tomorrow is none of these: its probability is closer to one half, because its
# effect is not known.
new = pd.DataFrame({"visits": [2.0, 2.0], "shop": ["shop 1", "opens tomorrow"]})
print("probability to buy, known and new shop:", model.predict_proba(new)[:, 1].round(2))

# %%
# **Takeaway.** Rank levels by effects that are shrunk, with their intervals; shares of small levels
# are noise.
