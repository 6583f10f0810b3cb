"""Pseudo-variance of the gradient against the share of data used, for every way to draw rows.

    python examples/benchmarks/gradient_noise.py [--output FOLDER] [--quick]

Figure 1 of Putcha, Nemeth and Fearnhead (2023): a bivariate Gaussian, logistic regression on
balanced and on imbalanced made data (1000 rows, four columns); and, beyond the paper, rare levels
and real imbalanced rows. Numbers are exact at ten posterior draws, in coordinates whitened by the
Laplace approximation. ``--output`` is where gradient_noise.json and gradient_noise.png go.
"""

import warnings

import numpy as np
from _problems import covertype_2_4, imbalanced, rare_levels
from _tables import Parser, save, save_figure, show
from sklearn.datasets import make_classification

from skbayes_sg import BayesianLogisticRegression
from skbayes_sg.inspection.gradient_noise import gradient_noise, inclusion
from skbayes_sg.priors import Normal

SHARES = np.array([0.0001, 0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.5])
SOME = (0.001, 0.01, 0.1)
BY_CHANCES = ("gradient", "hessian", "posterior", "exact")
SCHEMES = ("uniform", "uniform_without_replacement", *BY_CHANCES, "capped", "poisson")
GRADIENTS = ("minibatch", "control_variate", "taylor")
STYLES = ("k-", "k:", "C0-", "C1-", "C2-", "C7:", "C3--", "C4--")


def balanced():
    X, y = make_classification(1000, 4, n_informative=4, n_redundant=0, random_state=0)
    return X, y, Normal()


def five_percent():
    X, y = make_classification(
        1000, 4, n_informative=4, n_redundant=0, weights=[0.95], random_state=0
    )
    return X, y, Normal()


def gaussian(N=1000):
    """The model of appendix C.1: what a row adds is linear, and a control variate exact."""
    rng = np.random.default_rng(0)
    S = np.array([[1e5, 6e4], [6e4, 2e5]])
    x = rng.multivariate_normal([0.0, 1.0], S, N)
    H = N * np.linalg.inv(S) + np.eye(2) / 1e3
    F = np.linalg.inv(np.linalg.cholesky(H)).T
    mode = np.linalg.solve(H, np.linalg.solve(S, x.sum(axis=0)))
    rows = [np.linalg.solve(S, (mode + F @ z - x).T).T @ F for z in rng.standard_normal((10, 2))]
    at_mode = np.linalg.norm(np.linalg.solve(S, (mode - x).T).T @ F, axis=1)
    p = at_mode / at_mode.sum()
    return [
        line("gaussian", "minibatch", scheme, n, n / N, np.mean(values))
        for scheme in ("uniform", "uniform_without_replacement", "gradient", "exact", "poisson")
        for n in np.maximum(1, SHARES[1:] * N).astype(int).tolist()
        for values in [[_gaussian_rule(scheme, a, p, n) for a in rows]]
    ]


def line(problem, gradient, scheme, n, share, value):
    row = {"problem": problem, "gradient": str(gradient), "subsampling": str(scheme)}
    return row | {"share": float(share), "n": int(n), "pseudo_variance": float(value)}


def _gaussian_rule(scheme, a, p, n):
    norms, square = np.linalg.norm(a, axis=1), (a.sum(axis=0) ** 2).sum()
    if scheme == "poisson":
        return ((1.0 / inclusion(p, n) - 1.0) * norms**2).sum()
    if scheme == "uniform_without_replacement":
        return (len(a) - n) / (len(a) - 1) * _gaussian_rule("uniform", a, p, n)
    p = {"uniform": np.full(len(a), 1 / len(a)), "exact": norms / norms.sum()}.get(scheme, p)
    return ((norms**2 / p).sum() - square) / n


def measured(problem):
    X, y, prior = problem()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = BayesianLogisticRegression(prior=prior, n_draws=250, random_state=0).fit(X, y)
    sizes = np.unique(np.maximum(1, SHARES * len(X)).astype(int)).tolist()
    found = gradient_noise(model, X, y, gradients=GRADIENTS, subsampling=SCHEMES, batch_sizes=sizes)
    return [line(problem.__name__, *row) for row in zip(*found.columns.values(), strict=True)]


def curve(rows, problem, gradient, scheme):
    wanted = problem, gradient, scheme
    here = [r for r in rows if (r["problem"], r["gradient"], r["subsampling"]) == wanted]
    return np.array([(r["share"], r["pseudo_variance"]) for r in here]).reshape(-1, 2).T


def ratios(rows, problem, gradient):
    """One line: what each way of drawing saves at 1 % of the rows, and the others from where."""
    value = {s: curve(rows, problem, gradient, s) for s in SCHEMES}
    found = {"problem": problem, "gradient": gradient}
    at = int(np.argmin(np.abs(value["uniform"][0] - 0.01)))
    for scheme in BY_CHANCES:
        found[f"{scheme}/uniform"] = value[scheme][1, at] / value["uniform"][1, at]
    for scheme in ("capped", "poisson"):
        for share in SOME:
            k = int(np.argmin(np.abs(value[scheme][0] - share)))
            title = f"{scheme}/posterior {100 * share:g}%"
            found[title] = value[scheme][1, k] / value["posterior"][1, k]
    return found


def percent(share):
    return f"{100 * share:.3g} %"


def in_words(line):
    left = {scheme: percent(line[f"{scheme}/uniform"]) for scheme in BY_CHANCES}
    print(f"{line['problem']}, {line['gradient']}: of the noise of uniform rows, chances by the")
    print(f"    posterior leave {left['posterior']}, eq. 11 {left['gradient']},")
    print(f"    eq. 16 {left['hessian']}, the best possible {left['exact']}.")
    capped = {s: percent(line[f"capped/posterior {100 * s:g}%"]) for s in SOME}
    parts = ", ".join(f"{value} at n/N = {percent(s)}" for s, value in capped.items())
    print(f"    Of what is left, taking heavy rows always leaves {parts}.")


def draw(rows, problems, folder):
    from matplotlib.figure import Figure

    figure = Figure((3.2 * len(problems), 7.5), layout="constrained")
    axes = figure.subplots(len(GRADIENTS), len(problems), squeeze=False)
    for column, problem in zip(axes.T, problems, strict=True):
        for axis, gradient in zip(column, GRADIENTS, strict=True):
            _panel(axis, rows, problem, gradient)
        column[-1].set_xlabel("share of the rows, n/N")
    for axis, gradient in zip(axes[:, 0], GRADIENTS, strict=True):
        axis.set_ylabel(f"pseudo-variance,\n{gradient}")
    named = [scheme.replace("_", " ") for scheme in SCHEMES]
    figure.legend(axes[0, 1].get_lines(), named, loc="outside lower center", ncols=len(named))
    save_figure(folder, "gradient_noise", figure)


def _panel(axis, rows, problem, gradient):
    axis.set_title(problem.replace("_", " ") if gradient == "minibatch" else "", fontsize=9)
    drawn = False
    for scheme, style in zip(SCHEMES, STYLES, strict=True):
        x, values = curve(rows, problem, gradient, scheme)
        if len(x):
            axis.loglog(x, values, style, linewidth=1.2)
            drawn = True
    if not drawn:
        axis.text(0.5, 0.5, "no noise", ha="center", transform=axis.transAxes)
        axis.set(xticks=[], yticks=[])


def main():
    options = Parser(__doc__).parse_args()
    rows, problems = gaussian(), ["gaussian"]
    asked = (balanced, five_percent, imbalanced, rare_levels, covertype_2_4)
    for problem in asked[:2] if options.quick else asked:
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
    save(options.output, "gradient_noise", rows)
    if options.output:
        draw(rows, problems, options.output)


if __name__ == "__main__":
    main()
