"""Pseudo-variance of the gradient against the share of data used, for every way to draw rows.

    python examples/benchmarks/gradient_noise.py

Figure 1 of Putcha, Nemeth and Fearnhead (2023): a bivariate Gaussian, logistic regression on
balanced and on imbalanced made data (1000 rows, four columns); and, beyond the paper, rare levels
and real imbalanced rows. Numbers are exact at ten posterior draws, in coordinates whitened by the
Laplace approximation. Writes gradient_noise.json and gradient_noise.png into the current folder.
"""

import warnings

import numpy as np
from _problems import covertype_2_4, imbalanced, rare_levels
from _tables import save, show
from sklearn.datasets import make_classification

from skbayes_sg import BayesianLogisticRegression
from skbayes_sg.inspection.gradient_noise import gradient_noise, inclusion
from skbayes_sg.priors import Normal

SHARES = np.array([0.0001, 0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.5])
SOME = (0.001, 0.01, 0.1)
SCHEMES = ("uniform", "uniform_without_replacement", "gradient", "hessian", "posterior", "exact",
           "capped", "poisson")  # fmt: skip
GRADIENTS = ("minibatch", "control_variate", "taylor")
SHOWN = {
    "uniform": "k-", "gradient": "C0-", "hessian": "C1-", "posterior": "C2-", "exact": "C7:",
    "capped": "C3--", "poisson": "C4--",
}  # fmt: skip


def balanced():
    X, y = make_classification(1000, 4, n_informative=4, n_redundant=0, random_state=0)
    return X, y, Normal()


def five_percent():
    X, y = make_classification(
        1000, 4, n_informative=4, n_redundant=0, weights=[0.95], random_state=0
    )
    return X, y, Normal()


def gaussian(N=1000):
    """Mean of a bivariate Gaussian: what a row adds is linear, and a control variate exact."""
    rng = np.random.default_rng(0)
    S = np.array([[1.0, 0.9], [0.9, 1.0]])
    x = rng.multivariate_normal([0.0, 1.0], S, N)
    H = N * np.linalg.inv(S) + np.eye(2)
    F = np.linalg.inv(np.linalg.cholesky(H)).T
    mode = np.linalg.solve(H, np.linalg.solve(S, x.sum(axis=0)))
    rows = [np.linalg.solve(S, (mode + F @ z - x).T).T @ F for z in rng.standard_normal((10, 2))]
    at_mode = np.linalg.norm(np.linalg.solve(S, (mode - x).T).T @ F, axis=1)
    p = at_mode / at_mode.sum()
    return [
        {"problem": "gaussian", "gradient": "minibatch", "subsampling": scheme, "share": n / N,
         "n": n, "pseudo_variance": float(np.mean([_gaussian_rule(scheme, a, p, n) for a in rows]))}
        for scheme in ("uniform", "gradient", "exact", "poisson")
        for n in np.maximum(1, SHARES[1:] * N).astype(int).tolist()
    ]  # fmt: skip


def _gaussian_rule(scheme, a, p, n):
    norms, square = np.linalg.norm(a, axis=1), (a.sum(axis=0) ** 2).sum()
    if scheme == "poisson":
        return ((1.0 / inclusion(p, n) - 1.0) * norms**2).sum()
    p = {"uniform": np.full(len(a), 1 / len(a)), "exact": norms / norms.sum()}.get(scheme, p)
    return ((norms**2 / p).sum() - square) / n


def measured(problem):
    X, y, prior = problem()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = BayesianLogisticRegression(prior=prior, n_draws=250, random_state=0).fit(X, y)
    sizes = np.unique(np.maximum(1, SHARES * len(X)).astype(int)).tolist()
    found = gradient_noise(model, X, y, gradients=GRADIENTS, subsampling=SCHEMES, batch_sizes=sizes)
    frame = zip(*(found.columns.values()), strict=True)
    return [
        {"problem": problem.__name__, "gradient": str(g), "subsampling": str(s),
         "share": float(share), "n": int(n), "pseudo_variance": float(value)}
        for g, s, n, share, value in frame
    ]  # fmt: skip


def curve(rows, problem, gradient, scheme):
    here = [r for r in rows if (r["problem"], r["gradient"], r["subsampling"]) ==
            (problem, gradient, scheme)]  # fmt: skip
    return np.array([(r["share"], r["pseudo_variance"]) for r in here]).reshape(-1, 2).T


def ratios(rows, problem, gradient):
    """One line: what each way of drawing saves at 1 % of the rows, and the others from where."""
    value = {s: curve(rows, problem, gradient, s) for s in SCHEMES}
    line = {"problem": problem, "gradient": gradient}
    at = int(np.argmin(np.abs(value["uniform"][0] - 0.01)))
    for scheme in ("gradient", "hessian", "posterior", "exact"):
        line[f"{scheme}/uniform"] = value[scheme][1, at] / value["uniform"][1, at]
    for scheme in ("capped", "poisson"):
        for share in SOME:
            k = int(np.argmin(np.abs(value[scheme][0] - share)))
            title = f"{scheme}/posterior {100 * share:g}%"
            line[title] = value[scheme][1, k] / value["posterior"][1, k]
    return line


def percent(share):
    return f"{100 * share:.3g} %"


def in_words(line):
    print(f"{line['problem']}, {line['gradient']}: of the noise of uniform rows, chances by the")
    print(f"    posterior leave {percent(line['posterior/uniform'])}, eq. 11 "
          f"{percent(line['gradient/uniform'])}, eq. 16 {percent(line['hessian/uniform'])}, the "
          f"best possible {percent(line['exact/uniform'])}.")  # fmt: skip
    parts = [f"{percent(line[f'capped/posterior {100 * s:g}%'])} at n/N = {percent(s)}"
             for s in SOME]  # fmt: skip
    print(f"    Of what is left, taking heavy rows always leaves {', '.join(parts)}.")


def draw(rows, problems):
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return print("no figure: matplotlib is not installed (pip install 'skbayes_sg[plot]')")
    figure = Figure((3.2 * len(problems), 7.5), layout="constrained")
    axes = figure.subplots(len(GRADIENTS), len(problems), squeeze=False)
    for column, problem in zip(axes.T, problems, strict=True):
        for axis, gradient in zip(column, GRADIENTS, strict=True):
            _panel(axis, rows, problem, gradient)
        column[-1].set_xlabel("share of the rows, n/N")
    for axis, gradient in zip(axes[:, 0], GRADIENTS, strict=True):
        axis.set_ylabel(f"pseudo-variance, {gradient}")
    axes[0, 1].legend(fontsize=7)
    figure.savefig("gradient_noise.png", dpi=80)
    return print("written: gradient_noise.png")


def _panel(axis, rows, problem, gradient):
    axis.set_title(problem.replace("_", " ") if gradient == "minibatch" else "", fontsize=9)
    drawn = False
    for scheme, style in SHOWN.items():
        x, values = curve(rows, problem, gradient, scheme)
        if len(x):
            axis.loglog(x, values, style, label=scheme, linewidth=1.2)
            drawn = True
    if not drawn:
        axis.text(0.5, 0.5, "no noise", ha="center", transform=axis.transAxes)


def main():
    rows, problems = gaussian(), ["gaussian"]
    for problem in (balanced, five_percent, imbalanced, rare_levels, covertype_2_4):
        if problem is covertype_2_4 and problem() is None:
            print("covertype_2_4 is left out: its data are not at hand")
            continue
        rows += measured(problem)
        problems.append(problem.__name__)
    lines = [ratios(rows, p, g) for p in problems[1:] for g in GRADIENTS]
    show(lines)
    uniform, chosen = (curve(rows, "gaussian", "minibatch", s)[1, 2] for s in ("uniform", "exact"))
    print(f"gaussian, minibatch: the best chances leave {chosen / uniform:.0%} of uniform noise;")
    print("    a control variate has none, since rows differ by constants.")
    for line in lines:
        in_words(line)
    save("gradient_noise", rows)
    draw(rows, problems)


if __name__ == "__main__":
    main()
