"""
How many beds? A decision from few rows
=======================================

A clinic has the records of 60 patients and plans for the several hundred who come next. How many
beds has it to keep for those whose tumour turns out to be malignant? An unused bed costs 1, a
missing one 9.

The sum over the new patients has two sources of uncertainty. Each outcome is random, for which any
classifier with probabilities allows; and the probabilities themselves are uncertain after only 60
rows. The second kind of uncertainty does not average out over patients, because all of them share
the same coefficients.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sg import BayesianLogisticRegression
from skbayes_sg.metrics import unwrapped

QUICK = "--quick" in sys.argv
UNUSED, MISSING = 1.0, 9.0
X, y = load_breast_cancer(return_X_y=True, as_frame=True)
malignant = (y == 0).to_numpy()
X = X.filter(like="mean ")
rng = np.random.default_rng(0)

# %%
# We compare two classifiers with the same prior: one uses the mode of the posterior, the other all
# of it. With each we simulate the number of malignant tumours among the new patients many times: we
# draw an outcome for each patient, from the probabilities at the mode, or from those of one draw
# after the other.

point = make_pipeline(StandardScaler(), LogisticRegression())
bayes = make_pipeline(StandardScaler(), BayesianLogisticRegression(n_draws=100, random_state=0))


def totals_of(model, rows):
    """Numbers of events among the rows, one for each repetition."""
    final, rows = unwrapped(model, rows)
    if hasattr(final, "predict_proba_samples"):
        p = final.predict_proba_samples(rows)[:, :, 1]
    else:
        p = np.broadcast_to(final.predict_proba(rows)[:, 1], (1000, len(rows)))
    return (rng.random(p.shape) < p).sum(axis=1)


def fitted(seed):
    """Totals of both classifiers after 60 patients, and what happened to the others."""
    known, new, happened, to_come = train_test_split(X, malignant, train_size=60, random_state=seed)
    totals = {
        "LogisticRegression": totals_of(point.fit(known, happened), new),
        "posterior": totals_of(bayes.fit(known, happened), new),
    }
    return totals, to_come.sum()


totals, truth = fitted(0)
share = MISSING / (MISSING + UNUSED)  # the quantile with the least expected cost
figure, axis = plt.subplots(figsize=(7, 3.6), layout="constrained")
bins = np.arange(min(map(min, totals.values())), max(map(max, totals.values())) + 6, 5)
for k, (name, values) in enumerate(totals.items()):
    axis.hist(values, bins, density=True, alpha=0.5, color=f"C{1 - k}", label=name)
    axis.axvline(np.quantile(values, share), color=f"C{1 - k}", linestyle="--")
axis.axvline(truth, color="black", label="what happened")
axis.set(xlabel="malignant tumours among the new patients", yticks=[])
axis.set_title("dashed: beds with the least expected cost", loc="left", fontsize="small")
axis.legend()

# %%
# One table proves little. So we draw other sets of 60 patients, and count what the beds cost, and
# how often the true number lies inside the 90 % interval.


def cost(beds, needed):
    return MISSING * max(needed - beds, 0.0) + UNUSED * max(beds - needed, 0.0)


costs, inside = [], []
for seed in range(2 if QUICK else 30):
    totals, truth = fitted(seed)
    costs.append([cost(np.quantile(values, share), truth) for values in totals.values()])
    ends = [np.quantile(values, [0.05, 0.95]) for values in totals.values()]
    inside.append([low <= truth <= high for low, high in ends])
saved = np.subtract(*np.transpose(costs))
for name, covered, paid in zip(
    totals, np.mean(inside, axis=0), np.mean(costs, axis=0), strict=True
):
    print(f"{name:20} interval holds the number: {covered:.0%}, cost of the beds: {paid:.0f}")
print(f"saved: {saved.mean():.0f}, standard error {saved.std(ddof=1) / len(saved) ** 0.5:.0f}")

# %%
# **Takeaway.** Whatever is summed or averaged over rows needs the uncertainty that the rows share;
# a point estimate leaves it out, and its intervals for totals are too narrow.
