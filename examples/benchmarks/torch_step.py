"""Seconds of a step in torch, beside `posteriors` and BlackJAX, on the same network and batches.

    python examples/benchmarks/torch_step.py [--repeats 9] [--device cuda] [--quick]

SGLD and SGHMC with minibatches of images, on one thread: a small perceptron, one of 300 000
parameters, and a convolutional network. All draw the batch, evaluate the posterior with its prior,
and make a step. BlackJAX has the same networks as functions of JAX: its step of SGLD is one
compiled call, and its SGHMC makes ten steps with one batch in a call, then draws velocities anew
(with a single step its position would not depend on the gradient). Times are medians of processor
time over runs that alternate, and a ratio is the median of the ratios of neighbours: below one, a
step here takes less. On a GPU, where the rows are as well, they are times of the clock until the
GPU has ended. Needs torch; a library that is not installed is left out.
"""

import copy
import importlib.util
import sys
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from _script import Parser, has_torch

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
    from skbayes_sg.torch.chain import ModuleChain
    from skbayes_sg.torch.flat import FlatModule
    from skbayes_sg.torch.minibatch import MinibatchGradient
    from skbayes_sg.torch.priors import groups_of
    from skbayes_sg.torch.rows import TensorRows
    from skbayes_sg.torch.target import ClassLikelihood, ModuleTarget

    flat = FlatModule(module, data[0].device)
    rows = TensorRows(*data, None, flat.device)
    target = ModuleTarget(flat, ClassLikelihood(10), groups_of("normal", flat), rows)
    gradient = MinibatchGradient(target, n, np.random.default_rng(0))
    chain = ModuleChain(0, gradient, dynamics, Constant(STEP), None, 0)

    def steps(k):
        for _ in range(k):
            chain.step(STEP)
        finish(flat.device)

    return steps


def finish(device):
    """Wait for a GPU."""
    import torch

    if device.type == "cuda":
        torch.cuda.synchronize()


def by_posteriors(module, n, dynamics, data):
    """The same by `posteriors`."""
    import posteriors
    import torch

    X, y = data
    module = copy.deepcopy(module).to(X.device)
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
            rows = torch.from_numpy(rng.choice(N, n, replace=False)).to(X.device)
            kept["state"] = sampler.update(kept["state"], (X[rows], y[rows]))[0]
        finish(X.device)

    return steps


def in_jax(layers, parameters, x):
    """The value of a sequence of torch layers for images x, with JAX."""
    import jax
    import jax.numpy as jnp
    from torch import nn

    for i, layer in enumerate(layers):
        w, b = parameters.get(f"{i}.weight"), parameters.get(f"{i}.bias")
        if isinstance(layer, nn.Flatten):
            x = x.reshape(len(x), -1)
        elif isinstance(layer, nn.ReLU):
            x = jnp.maximum(x, 0.0)
        elif isinstance(layer, nn.Linear):
            x = x @ w.T + b
        elif isinstance(layer, nn.Conv2d):
            x = jax.lax.conv_general_dilated(x, w, (1, 1), "SAME") + b[:, None, None]
        else:  # the largest of squares of four by four
            four = (1, 1, 4, 4)
            x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, four, four, "VALID")
    return x


def by_blackjax(module, n, dynamics, data):
    """The same by BlackJAX."""
    import blackjax
    import jax
    import jax.numpy as jnp
    from blackjax.sgmcmc.gradients import grad_estimator

    X, y = (jnp.asarray(part.cpu().numpy()) for part in data)
    start = {name: jnp.asarray(p.detach().numpy()) for name, p in module.named_parameters()}
    rng, layers = np.random.default_rng(0), list(module)

    def log_prior(parameters):
        return sum(-0.5 * (p**2).sum() for p in jax.tree.leaves(parameters))

    def log_likelihood(parameters, row):
        f = in_jax(layers, parameters, row[0][None])[0]
        return f[row[1]] - jax.nn.logsumexp(f)

    gradient, own = grad_estimator(log_prior, log_likelihood, N), 1
    sampler = blackjax.sgld(gradient)
    if isinstance(dynamics, SGHMC):
        own = 10
        sampler = blackjax.sghmc(gradient, num_integration_steps=own)

    @jax.jit
    def step(key, parameters, rows):
        key, now = jax.random.split(key)
        return key, sampler.step(now, parameters, (X[rows], y[rows]), STEP)

    kept = [jax.random.key(0), start]

    def steps(k):
        for _ in range(k // own):
            kept[:] = step(*kept, rng.choice(N, n, replace=False))
        jax.block_until_ready(kept[1])

    return steps


def installed():
    """The other libraries that are there: {name: function that makes their steps}."""
    known = {"posteriors": by_posteriors, "blackjax": by_blackjax}
    return {name: make for name, make in known.items() if importlib.util.find_spec(name)}


def seconds(steps, k, clock):
    began = clock()
    steps(k)
    return (clock() - began) / k


def run(options):
    import torch

    torch.set_num_threads(1)
    device, peers = torch.device(options.device), installed()
    clock = time.process_time if device.type == "cpu" else time.perf_counter
    data = torch.randn(N, 3, 32, 32, device=device), torch.randint(0, 10, (N,), device=device)
    for name, (module, n) in modules().items():
        for dynamics in (SGLD(), SGHMC()):
            all_of_them = [make(module, n, dynamics, data) for make in (ours, *peers.values())]
            for steps in all_of_them:
                steps(3)
            taken = np.array(
                [
                    [seconds(f, options.steps, clock) for f in all_of_them]
                    for _ in range(options.repeats)
                ]
            )
            said = f"{name:16} {dynamics!r:8} {1e3 * np.median(taken[:, 0]):7.3f} ms"
            for peer, other in zip(peers, taken.T[1:], strict=True):
                ratio = np.median(taken[:, 0] / other)
                said += f"   {peer} {1e3 * np.median(other):7.3f} ms, ratio {ratio:.2f}"
            print(said)


def main():
    parser = Parser(__doc__)
    parser.add_argument("--repeats", type=int, default=9, quick=1)
    parser.add_argument("--steps", type=int, default=30, quick=3)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    if not has_torch():
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(options)


if __name__ == "__main__":
    main()
