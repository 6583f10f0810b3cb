"""Seconds of a step in torch: this package beside `posteriors`, on the same module and batch.

    python examples/benchmarks/torch_step.py [--repeats 9] [--quick]

SGLD and SGHMC with minibatches of images, on one thread: a small perceptron, one of 300 000
parameters, and a convolutional network. Both draw the batch, evaluate the posterior with its prior,
and make a step. Times are medians of processor time over runs that alternate, and the ratio is the
median of the ratios of neighbours. Needs torch; without ``posteriors`` only our times are shown.
"""

import sys
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from _script import Parser

from skbayes_sg.dynamics import SGHMC, SGLD
from skbayes_sg.schedules import Constant

N, STEP = 2000, 1e-9


def modules():
    """{name: (module, batch size)}."""
    from torch import nn

    def perceptron(width):
        return nn.Sequential(nn.Flatten(), nn.Linear(3072, width), nn.ReLU(), nn.Linear(width, 10))

    layers = (nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(4), nn.Flatten())
    return {
        "perceptron 12k": (perceptron(4), 10),
        "perceptron 308k": (perceptron(100), 100),
        "convolutions": (nn.Sequential(*layers, nn.Linear(2048, 10)), 20),
    }


def ours(module, n, dynamics, data):
    """A function that makes so many steps."""
    import torch

    from skbayes_sg.torch.chain import ModuleChain
    from skbayes_sg.torch.flat import FlatModule
    from skbayes_sg.torch.minibatch import MinibatchGradient
    from skbayes_sg.torch.priors import groups_of
    from skbayes_sg.torch.rows import TensorRows
    from skbayes_sg.torch.target import ClassLikelihood, ModuleTarget

    flat = FlatModule(module, torch.device("cpu"))
    rows = TensorRows(*data, None, flat.device)
    target = ModuleTarget(flat, ClassLikelihood(10), groups_of("normal", flat), rows)
    gradient = MinibatchGradient(target, n, np.random.default_rng(0))
    chain = ModuleChain(0, gradient, dynamics, Constant(STEP), None, 0)

    def steps(k):
        for _ in range(k):
            chain.step(STEP)

    return steps


def theirs(module, n, dynamics, data):
    """The same by `posteriors`; None where it is not installed."""
    try:
        import posteriors
    except ImportError:
        return None
    import torch

    X, y = data
    names = {name: p.detach().clone() for name, p in module.named_parameters()}
    rng = np.random.default_rng(0)

    def log_posterior(parameters, batch):
        f = torch.func.functional_call(module, parameters, (batch[0],))
        terms = torch.nn.functional.cross_entropy(f, batch[1], reduction="sum") * (N / n)
        return (posteriors.diag_normal_log_prob(parameters, sd_diag=1.0) - terms) / N, f

    options = {"lr": STEP, "temperature": 1.0 / N}
    kind = posteriors.sgmcmc.sgld if isinstance(dynamics, SGLD) else posteriors.sgmcmc.sghmc
    sampler = kind.build(log_posterior, **options)
    kept = {"state": sampler.init(names)}

    def steps(k):
        for _ in range(k):
            rows = torch.from_numpy(rng.choice(N, n, replace=False))
            kept["state"] = sampler.update(kept["state"], (X[rows], y[rows]))[0]

    return steps


def seconds(steps, k):
    began = time.process_time()
    steps(k)
    return (time.process_time() - began) / k


def run(options):
    import torch

    torch.set_num_threads(1)
    data = torch.randn(N, 3, 32, 32), torch.randint(0, 10, (N,))
    for name, (module, n) in modules().items():
        for dynamics in (SGLD(), SGHMC()):
            own, other = (make(module, n, dynamics, data) for make in (ours, theirs))
            own(3)
            if other is None:
                print(f"{name:16} {dynamics!r:8} {1e3 * seconds(own, options.steps):7.3f} ms")
                continue
            other(3)
            both = np.array(
                [[seconds(f, options.steps) for f in (own, other)] for _ in range(options.repeats)]
            )
            ratio = np.median(both[:, 0] / both[:, 1])
            a, b = 1e3 * np.median(both, axis=0)
            print(f"{name:16} {dynamics!r:8} {a:7.3f} ms, posteriors {b:7.3f} ms: {ratio:.2f}")


def main():
    parser = Parser(__doc__)
    parser.add_argument("--repeats", type=int, default=9, quick=1)
    parser.add_argument("--steps", type=int, default=30, quick=3)
    options = parser.parse_args()
    try:
        import torch  # noqa: F401
    except ImportError:
        print("torch is not installed: pip install 'skbayes_sg[torch]'")
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(options)


if __name__ == "__main__":
    main()
