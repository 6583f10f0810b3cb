"""Networks on a GPU and on the CPU: seconds of a step, how busy the GPU is, and what they say.

    python examples/benchmarks/torch_device.py [--steps 100] [--quick]

Steps of SGLD with 100 rows: a perceptron, the CNN and the ResNet-20 of Chen et al. (2019) for
pictures, and their LSTM for words. "host" means that every step copies its own rows to the GPU, as
is the default, and "device" that all rows are there (``data_on_device=True``). "busy" is what the
kernels take, from the profiler of torch, of the time of a step; of kernels that run at the same
time it is the sum. Times are those of the clock, without the profiler, on all threads. Then
posteriors of one network for digits from either device are compared: means over chains of log
probabilities, whose differences are divided by their standard errors from four chains on each side.
Half of them should be below 0.72 (Student's t with 6 degrees of freedom). Needs torch; without a
GPU only the column of the CPU is there.
"""

import sys
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "papers"))
from _script import Parser, has_torch

N, BATCH, STEP = 2000, 100, 1e-9


def problems():
    """{name: (module, data, number of classes)}."""
    import _networks as nets
    import torch
    from torch import nn

    pictures = torch.randn(N, 3, 32, 32), torch.randint(0, 10, (N,))
    words = torch.randint(0, 10_000, (N, 35)), torch.randint(0, 10_000, (N, 35))
    perceptron = nn.Sequential(nn.Flatten(), nn.Linear(3072, 100), nn.ReLU(), nn.Linear(100, 10))
    return {
        "perceptron": (perceptron, pictures, 10),
        "CNN": (nets.cnn(), pictures, 10),
        "ResNet-20": (nets.resnet(), pictures, 10),
        "LSTM": (nets.Language(), words, 10_000),
    }


def chain_of(module, data, n_classes, device, on_device):
    from skbayes_sg.dynamics import SGLD
    from skbayes_sg.schedules import Constant
    from skbayes_sg.torch.chain import ModuleChain
    from skbayes_sg.torch.flat import FlatModule
    from skbayes_sg.torch.minibatch import MinibatchGradient
    from skbayes_sg.torch.priors import groups_of
    from skbayes_sg.torch.rows import TensorRows
    from skbayes_sg.torch.target import ClassLikelihood, ModuleTarget

    flat, rows = FlatModule(module, device), TensorRows(*data, None, device)
    if on_device:
        rows.to_device()
    target = ModuleTarget(flat, ClassLikelihood(n_classes), groups_of("normal", flat), rows)
    gradient = MinibatchGradient(target, BATCH, np.random.default_rng(0))
    return ModuleChain(0, gradient, SGLD(), Constant(STEP), None, 0)


def milliseconds(chain, n_steps):
    """Of a step, after some that are not counted."""
    run(chain, 5 if chain.flat.device.type == "cpu" else 20)  # steps are recorded on the way
    began = time.perf_counter()
    run(chain, n_steps)
    return 1e3 * (time.perf_counter() - began) / n_steps


def run(chain, n_steps):
    import torch

    for _ in range(n_steps):
        chain.step(STEP)
    if chain.flat.device.type == "cuda":
        torch.cuda.synchronize()


def busy_milliseconds(chain, n_steps):
    """Of computing on the GPU in a step."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as found:
        run(chain, n_steps)
    return sum(event.self_device_time_total for event in found.key_averages()) / 1e3 / n_steps


def step_times(options):
    import torch

    gpu = torch.device("cuda") if torch.cuda.is_available() else None
    for name, problem in problems().items():
        own = milliseconds(
            chain_of(*problem, torch.device("cpu"), False), max(1, options.steps // 10)
        )
        said = f"{name:10}  CPU {own:8.2f} ms"
        if gpu is not None:
            host = milliseconds(chain_of(*problem, gpu, False), options.steps)
            chain = chain_of(*problem, gpu, True)
            there = milliseconds(chain, options.steps)
            share = busy_milliseconds(chain, options.steps) / there
            said += f"   GPU, rows on host {host:6.2f} ms, on device {there:6.2f} ms"
            said += f", busy {100 * share:3.0f} %"
        print(said, flush=True)


def agreement(options):
    """Posteriors of a network of digits from both devices."""
    import torch
    from sklearn.datasets import load_digits
    from torch import nn

    from skbayes_sg.torch import BayesianModuleClassifier

    X, y = load_digits(return_X_y=True)
    X = (X / 16.0).astype(np.float32).reshape(-1, 1, 8, 8)
    layers = nn.Conv2d(1, 4, 3, padding=1), nn.Tanh(), nn.AvgPool2d(4), nn.Flatten()
    module, found = nn.Sequential(*layers, nn.Linear(16, 10)), {}
    for device in ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",):
        model = BayesianModuleClassifier(
            module, random_state=len(found), n_draws=options.draws, device=device
        )
        began = time.perf_counter()
        model.fit(X[:300], y[:300])
        seconds = time.perf_counter() - began
        p = np.log(model.predict_proba_samples(X[300:500]))
        found[device] = p.reshape(4, -1, *p.shape[1:]).mean(axis=1)
        own = model.predict_log_density(X[300:], y[300:])
        print(
            f"digits on {device:4}  {seconds:5.1f} s  NLPD {-own.mean():.4f}  R-hat of predictions "
            f"{model.diagnostics_['rhat_of_predictions']:.2f}  step {model.step_size_:.3g}"
        )
    if len(found) == 2:
        here, there = found.values()
        error = np.sqrt((here.var(axis=0, ddof=1) + there.var(axis=0, ddof=1)) / 4)
        z = (here.mean(axis=0) - there.mean(axis=0)) / error
        print(f"differences over their standard errors: half of them below {np.median(abs(z)):.2f}")


def main():
    parser = Parser(__doc__)
    parser.add_argument("--steps", type=int, default=100, quick=2)
    parser.add_argument("--draws", type=int, default=50, quick=3)
    options = parser.parse_args()
    if not has_torch():
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        step_times(options)
        agreement(options)


if __name__ == "__main__":
    main()
