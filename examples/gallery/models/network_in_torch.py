"""
Which pictures has a network in torch never seen?
=================================================

A network of torch learns the digits 0 to 7, and is then shown 8 and 9 as well. It must name one of
eight digits for every picture. Does it say which of its answers are guesses?

Where torch is not installed, the script draws the results that an earlier run with torch has stored
(``--store``).
"""

import sys
import warnings
from importlib import import_module
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

try:
    import torch
except ImportError:
    torch = None

QUICK = "--quick" in sys.argv
STORED = Path(sys.argv[0]).with_suffix(".npz")
X, y = load_digits(return_X_y=True)
X = (X.reshape(-1, 1, 8, 8) / 16.0).astype(np.float32)
known, seen, labels, truth = train_test_split(X[y < 8], y[y < 8], test_size=0.3, random_state=0)
shown = np.concatenate([seen, X[y >= 8]])
new = np.repeat([False, True], [len(seen), (y >= 8).sum()])

# %%
# Any module becomes an estimator. Each draw is a network, and all of them agree about what they
# have learnt; `out_of_distribution_score` says how far they disagree about a picture. We compare it
# with what a single trained network can say: how small its largest probability is.


def network():
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 8),
    )


def fitted(**options):
    networks = import_module("skbayes_sg.torch")  # needs torch
    model = networks.BayesianModuleClassifier(network, random_state=0, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # chains of networks stay in different modes
        return model.fit(known, labels)


def measured():
    torch.set_num_threads(1)
    draws = {"n_draws": 5, "n_chains": 2} if QUICK else {"n_draws": 25, "n_chains": 4}
    model = fitted(**draws)
    one = fitted(n_draws=1, n_chains=1, n_warmup=0, thin=1)  # the search with which chains begin
    return {
        "disagreement of the draws": model.out_of_distribution_score(shown),
        "doubt of one network": 1.0 - one.predict_proba(shown).max(axis=1),
        "right": np.array([m.score(seen, truth) for m in (model, one)]),
    }


found = dict(np.load(STORED)) if torch is None else measured()
if "--store" in sys.argv:
    np.savez_compressed(STORED, **{name: np.float32(values) for name, values in found.items()})
print("shares of right answers for seen digits:", found.pop("right").round(3))
for name, score in found.items():
    print(f"{name:26} area under the curve {roc_auc_score(new, score):.3f}")

# %%
figure, axes = plt.subplots(2, 10, figsize=(8.0, 2.3), layout="constrained")
score = found["disagreement of the draws"]
for axis, i in zip(axes.ravel(), np.argsort(-score)[:20], strict=True):
    axis.imshow(shown[i, 0], cmap="gray_r")
    axis.set_title(f"{score[i]:.2f}", fontsize=8, color="C3" if new[i] else "black")
    axis.set_axis_off()
_ = figure.suptitle(
    "The draws disagree most about these; in red what they have never seen", fontsize=9
)

# %%
# **Takeaway.** Draws that agree on what was learnt disagree on what was not: sort new pictures by
# their disagreement, and look at the first ones yourself. A single network sorts these digits
# nearly as well, but it cannot say which doubts more pictures of the same kind would remove.
