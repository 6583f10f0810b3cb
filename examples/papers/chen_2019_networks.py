"""vrSG-MCMC for deep networks (Chen et al. 2019): CNN, ResNet-20 and LSTM, figures 3 and 4.

    python examples/papers/chen_2019_networks.py [--network cnn] [--passes 5] [--rows 10000]
        [--test-rows 1000] [--steps 0.02,0.05,0.1] [--output FOLDER] [--quick]

Without arguments all three run at the sizes of `SIZES`, which a CPU does in half an hour.

SGLD with n = 10 rows a step beside vrSG-MCMC with n1 = 100, n2 = 10, m = 10, as in the paper: no
preconditioner, temperature 1, prior N(0, 1), chains from random parameters. What a step of the list
multiplies is the gradient of the *mean* loss, as in the paper; the step size h of the package is
2/N times that. A pass is as many gradients of single rows as there are rows: a step of vrSG-MCMC
takes 2 n2 + n1/m = 30, one of SGLD 10. Of each method the step with the smallest loss at the end is
shown. Losses are those of single draws, and, in the last column, of the average over the draws of
the second half. For the LSTM the loss is per word, and its exponential is the perplexity; the
unigram frequencies of the training text have 639.3 on the test text.

CIFAR-10 is the first 10 000 + 2 000 images here, Penn Treebank is whole, and WikiText-2, the third
data set of the paper, is not at hand. The paper's dropout and gradient clipping are left out: they
change the law.
Needs torch, cifar10_12k.npz and ptb.npz.

What we found at these sizes: after equal passes SGLD and vrSG-MCMC are level on the CNN, and SGLD
is ahead on ResNet-20 and on the LSTM, where a loss per word of 6.24 stands against 6.45. A step of
vrSG-MCMC takes three times the gradients, and early on the way to a mode the noise of a minibatch
matters little. The paper's gain is not seen, nor is it refuted: its runs are longer, on all images.
On a GPU (H200) longer ones took two minutes: SGLD stays ahead on the CNN after 40 passes with step
0.02, by a loss of 1.64 to 1.69 (averaged 1.33 to 1.42), and on the LSTM after 4 passes over 20 000
windows, with a perplexity of 213 to 248 (averaged 189 to 235). ResNet-20 on all 10 000 images for
20 passes took six minutes: losses of 1.17 for SGLD and 1.27 for vrSG-MCMC with step 0.02, 1.18 and
1.35 with 0.05 (averaged 1.09 and 1.28, 1.08 and 1.24).
"""

import time
import warnings

import numpy as np
from _papers import Parser, figure, has_torch, needed, save_figure

from skbayes_sg.dynamics import SGLD
from skbayes_sg.exceptions import SamplerDivergedError
from skbayes_sg.schedules import Constant

N1, N2, M = 100, 10, 10
SIZES = {  # rows, rows of the test, passes, steps
    "cnn": (10_000, 1000, 5.0, [0.02, 0.05]),
    "resnet": (1000, 300, 5.0, [0.02, 0.05]),
    "lstm": (2500, 50, 3.0, [0.05, 0.1]),
}
METHODS = ("SGLD", "vrSG-MCMC")


def problem(network, n_rows, n_test):
    """(a function that makes the module, training pair, test pair, number of classes)."""
    import _networks as nets

    if network == "lstm":
        data = needed("ptb.npz")
        train, test = nets.windows(data["train"], n_rows), nets.windows(data["test"], n_test)
        return nets.Language, train, test, 10_000
    (X, y), (Z, t) = nets.images(needed("cifar10_12k.npz"), max(n_rows, n_test))
    made = {"cnn": nets.cnn, "resnet": nets.resnet}[network]
    return made, (X[:n_rows], y[:n_rows]), (Z[:n_test], t[:n_test]), 10


def chain_of(method, step, made, train, n_classes, device, seed=0):
    """A chain of SGLD at random parameters."""
    from skbayes_sg.torch.chain import ModuleChain
    from skbayes_sg.torch.flat import FlatModule
    from skbayes_sg.torch.minibatch import MinibatchGradient
    from skbayes_sg.torch.priors import groups_of
    from skbayes_sg.torch.rows import TensorRows
    from skbayes_sg.torch.start import initialised
    from skbayes_sg.torch.svrg import SVRGGradient
    from skbayes_sg.torch.target import ClassLikelihood, ModuleTarget

    flat = FlatModule(initialised(made, seed, "reset"), device)
    rows = TensorRows(*train, None, device)
    rows.to_device()
    target = ModuleTarget(flat, ClassLikelihood(n_classes), groups_of("normal", flat), rows)
    rng = np.random.default_rng(seed)
    gradient = MinibatchGradient(target, N2, rng)
    if method == "vrSG-MCMC":
        gradient = SVRGGradient(target, N2, rng, target.twin(), M, min(N1, rows.n_rows))
    return ModuleChain(0, gradient, SGLD(), Constant(2.0 * step / rows.n_rows), None, seed)


def scores(chain, test, total, n_draws):
    """Error and loss of the draw, and the sum of the probabilities of the labels with it."""
    import torch

    module, found, wrong = chain.flat.module.eval(), [], 0
    with torch.no_grad():
        for k in range(0, len(test[0]), 50):
            x, y = (part[k : k + 50].to(chain.flat.device) for part in test)
            p = torch.log_softmax(module(x), dim=-1)
            wrong += int((p.argmax(dim=-1) != y).sum())
            found.append(p.gather(-1, y.unsqueeze(-1))[..., 0].flatten().double().cpu().numpy())
    module.train()
    own = np.concatenate(found)
    total = np.logaddexp(total, own) if n_draws else own
    return wrong / len(own), -own.mean(), total, -(total - np.log(n_draws + 1)).mean()


def curve(chain, n_passes, test, n_points):
    """(passes, error, loss, loss of the average) along a chain; None if it diverges."""
    N, found, total, n_draws = chain.target.rows.n_rows, [], None, 0
    for k in range(1, n_points + 1):
        try:
            while chain.gradient.n_evaluated < k * n_passes * N / n_points:
                chain.run(M)
        except SamplerDivergedError:
            return None
        if k == n_points // 2 + 1:
            total, n_draws = None, 0
        error, loss, total, averaged = scores(chain, test, total, n_draws)
        n_draws += 1
        found.append((chain.gradient.n_evaluated / N, error, loss, averaged))
    return np.array(found)


def best(method, steps, n_passes, n_points, data, device):
    """The curve of the step with the smallest loss at the end, with the step; and seconds."""
    made, train, test, n_classes = data
    curves, began = {}, time.perf_counter()
    for step in steps:
        chain = chain_of(method, step, made, train, n_classes, device)
        found = curve(chain, n_passes, test, n_points)
        lost = found is None or not np.isfinite(found).all()
        end = "diverged" if lost else f"loss {found[-1, 2]:.3f}, averaged {found[-1, 3]:.3f}"
        print(f"  {method:9}  step {step:<6g} {end}", flush=True)
        if not lost:
            curves[step] = found
    if not curves:
        return None, np.nan, time.perf_counter() - began
    step = min(curves, key=lambda s: curves[s][-1, 2])
    return curves[step], step, time.perf_counter() - began


def draw(network, curves, folder):
    made, axes = figure(1, 2)
    for method, found in curves.items():
        axes[0, 0].plot(found[:, 0], found[:, 1], "o-", ms=3, label=method)
        loss = np.exp(found[:, 2]) if network == "lstm" else found[:, 2]
        axes[0, 1].plot(found[:, 0], loss, "o-", ms=3, label=method)
    axes[0, 0].set(xlabel="passes", ylabel="test error", title=network)
    axes[0, 1].set(xlabel="passes", ylabel="perplexity" if network == "lstm" else "test loss")
    axes[0, 0].legend()
    save_figure(folder, f"chen_2019_{network}", made)


def run(network, options):
    from skbayes_sg.torch.device import device_of

    given = options.rows, options.test_rows, options.passes, options.steps
    chosen = [
        own if own is not None else size for own, size in zip(given, SIZES[network], strict=True)
    ]
    n_rows, n_test, n_passes, steps = chosen
    data = problem(network, n_rows, n_test)
    print(f"{network}: {len(data[1][0])} rows, {n_passes:g} passes, on {device_of('auto').type}")
    curves, device = {}, device_of("auto")
    for method in METHODS:
        found, step, seconds = best(method, steps, n_passes, options.points, data, device)
        if found is None:
            print(f"{method:9}  every step diverged")
            continue
        curves[method] = found
        passes, error, loss, averaged = found[-1]
        more = ""
        if network == "lstm":
            more = f"  perplexity {np.exp(loss):.1f}, averaged {np.exp(averaged):.1f}"
        print(
            f"{method:9}  step {step:<6g}  passes {passes:5.1f}  error {error:.3f}  loss {loss:.3f}"
            f"  averaged {averaged:.3f}{more}  ({seconds:.0f} s for all steps)"
        )
    if options.output and curves:
        draw(network, curves, options.output)


def main():
    parser = Parser(__doc__)
    parser.add_argument("--network", choices=("all", *SIZES), default="all")
    parser.add_argument("--rows", type=int, default=None, quick=200)
    parser.add_argument("--test-rows", type=int, default=None, quick=50)
    parser.add_argument("--passes", type=float, default=None, quick=1.0)
    parser.add_argument("--points", type=int, default=10, quick=2)
    parser.add_argument(
        "--steps", type=lambda text: [float(s) for s in text.split(",")],
        default=None, quick=[0.05],
    )  # fmt: skip
    options = parser.parse_args()
    if not has_torch():
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for network in SIZES if options.network == "all" else [options.network]:
            run(network, options)


if __name__ == "__main__":
    main()
