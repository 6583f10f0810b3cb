"""Digits that a network has never seen, found by the disagreement of its draws.

    python examples/torch_digits_out_of_distribution.py [--unseen 8,9] [--output FOLDER] [--quick]

A small convolutional network learns the digits 0 to 7 of scikit-learn's set and is shown all ten.
Three scores tell how unusual a picture is: the epistemic part of the entropy over the posterior
(`out_of_distribution_score`), the whole entropy of the averaged probabilities, and one minus the
largest probability of a single trained network, the search with which the first chain begins. For
each the table has the area under the curve that separates unseen from seen digits (1 is perfect,
0.5 is chance). Below are the accuracy on seen digits, the calibration, and the verdict of the fit.
With ``--output`` the pictures with the largest scores are drawn. Needs torch.
"""

import time
import warnings

import numpy as np
from _script import Parser, save_figure
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split


def network():
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(128, 8),
    )  # fmt: skip


def pictures(unseen):
    """Pictures and labels of seen digits, for training and test, and pictures of unseen ones."""
    X, y = load_digits(return_X_y=True)
    X = (X.reshape(-1, 1, 8, 8) / 16.0).astype(np.float32)
    other = np.isin(y, unseen)
    return *train_test_split(X[~other], y[~other], test_size=0.3, random_state=0), X[other]


def fit(X, y, options, **more):
    from skbayes_sg.torch import BayesianModuleClassifier

    options = {"n_draws": options.draws, "n_chains": options.chains} | more
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the verdict is printed
        return BayesianModuleClassifier(network, random_state=0, **options).fit(X, y)


def separation(score, seen, unseen):
    """Area under the curve of a score."""
    scores = np.concatenate([score(seen), score(unseen)])
    return roc_auc_score(np.repeat([0, 1], [len(seen), len(unseen)]), scores)


def draw(model, seen, unseen, folder):
    from matplotlib.figure import Figure

    X = np.concatenate([seen, unseen])
    score = model.out_of_distribution_score(X)
    made = Figure((8.0, 2.4), layout="constrained")
    for axis, i in zip(made.subplots(2, 10).ravel(), np.argsort(-score)[:20], strict=True):
        axis.imshow(X[i, 0], cmap="gray_r")
        axis.set_title(f"{score[i]:.2f}", fontsize=8, color="k" if i < len(seen) else "C3")
        axis.set_axis_off()
    made.suptitle("Largest epistemic uncertainty; digits that were never seen in red", fontsize=9)
    save_figure(folder, "torch_digits_out_of_distribution", made)


def run(options):
    import torch

    from skbayes_sg.metrics import neg_calibration_error_scorer

    torch.set_num_threads(1)
    train_X, test_X, train_y, test_y, unseen = pictures(options.unseen)
    began = time.perf_counter()
    model = fit(train_X, train_y, options)
    seconds = time.perf_counter() - began
    single = fit(train_X, train_y, options, n_draws=1, n_chains=1, n_warmup=0, thin=1)
    total = lambda X: sum(model.predict_entropy_components(X))  # noqa: E731
    scores = {
        "epistemic entropy": model.out_of_distribution_score,
        "whole entropy": total,
        "single network": lambda X: 1.0 - single.predict_proba(X).max(axis=1),
    }
    print(f"{len(train_X)} pictures, {seconds:.0f} s; unseen digits {options.unseen}")
    for name, score in scores.items():
        print(f"{name:18} area under the curve {separation(score, test_X, unseen):.3f}")
    for name, own in (("posterior", model), ("single network", single)):
        log_loss = -own.predict_log_density(test_X, test_y).mean()
        error = -neg_calibration_error_scorer(own, test_X, test_y)
        print(
            f"{name:18} accuracy {own.score(test_X, test_y):.3f}  log loss {log_loss:.3f}"
            f"  calibration error {error:.3f}"
        )
    print(model.posterior_.check())
    if options.output:
        draw(model, test_X, unseen, options.output)


def main():
    parser = Parser(__doc__)
    parser.add_argument("--draws", type=int, default=50, quick=5)
    parser.add_argument("--chains", type=int, default=4, quick=2)
    parser.add_argument(
        "--unseen", type=lambda text: [int(d) for d in text.split(",")], default=[8, 9]
    )
    options = parser.parse_args()
    try:
        import torch  # noqa: F401
    except ImportError:
        print("torch is not installed: pip install 'skbayes_sg[torch]'")
        return
    run(options)


if __name__ == "__main__":
    main()
