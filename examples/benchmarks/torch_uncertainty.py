"""Uncertainty of a network on CIFAR-10: a posterior beside what practitioners use.

    python examples/benchmarks/torch_uncertainty.py [--rows 3000] [--passes 400] [--device cpu]
        [--quick]

One convolutional network of 20 000 parameters, and the same number of gradients of single rows for
every method, those of searches and surveys included: plain training, a deep ensemble of five, Monte
Carlo dropout, the Laplace approximation of the last layer of the plain network (Ritter et al. 2018:
one Kronecker product), and the posterior of this package with five chains. All use Adam with a
cosine, and the prior N(0, 1) as weight decay. NLPD is the mean of -log p over test rows, with its
standard error; ECE is the calibration error of the largest probability in ten bins; "as best" says
whether NLPD is within one standard error of its difference to the best one. Needs torch and
cifar10_12k.npz.
"""

import sys
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from _script import Parser, has_torch, needed

from skbayes_sg.metrics import calibration_error

BATCH, DRAWS = 100, 20


def network(dropout=0.0):
    from torch import nn

    def layer(n_in, n_out):
        return nn.Conv2d(n_in, n_out, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)

    features = (*layer(3, 16), *layer(16, 32), *layer(32, 32), nn.Flatten())
    return nn.Sequential(*features, nn.Dropout(dropout), nn.Linear(512, 10))


def trained(made, data, n_gradients, seed):
    """A network after Adam with a cosine on the mean loss and the prior."""
    import torch

    X, y = data
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        net, n = made().to(X.device), max(1, n_gradients // BATCH)
        optimiser = torch.optim.Adam(net.parameters(), lr=3e-3, betas=(0.9, 0.99))
        cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, n)
        for _ in range(n):
            rows = torch.randint(len(X), (min(BATCH, len(X)),))
            loss = torch.nn.functional.cross_entropy(net(X[rows]), y[rows])
            loss = loss + sum((p**2).sum() for p in net.parameters()) / (2 * len(X))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            cosine.step()
    return net


def probabilities(net, X, train=False):
    import torch

    net.train(train)
    with torch.no_grad():
        return torch.cat([net(part).softmax(1) for part in X.split(250)]).double().cpu().numpy()


def last_layer_laplace(net, data, X, seed=0):
    """Averages over draws of the last layer from N(W, H⁻¹), H its Hessian over all rows."""
    import torch

    net.eval()
    body, head = net[:-1], net[-1]

    def features(X):
        with torch.no_grad():
            found = torch.cat([body(part) for part in X.split(250)]).cpu()
        return torch.column_stack([found, torch.ones(len(found))]).double()

    # A sum of Kronecker products over rows, approximated by one, as in Ritter et al. (2018).
    Z, W = features(data[0]), torch.column_stack([head.weight, head.bias]).detach().double().cpu()
    P = torch.softmax(Z @ W.T, 1)
    A = Z.T @ Z
    B = (torch.diag(P.sum(0)) - P.T @ P) / len(Z)
    own, U = torch.linalg.eigh(A)
    of_class, V = torch.linalg.eigh(B)
    precision = torch.outer(of_class.clamp(min=0.0), own.clamp(min=0.0)) + 1.0
    generator, total, Q = torch.Generator().manual_seed(seed), 0.0, features(X)
    for _ in range(100):
        xi = torch.randn(precision.shape, generator=generator, dtype=torch.float64)
        draw = W + V @ (xi / precision.sqrt()) @ U.T
        total = total + torch.softmax(Q @ draw.T, 1) / 100
    return total.numpy()


def posterior(data, X, n_gradients, n_chains):
    """Chains, half of whose gradients are the search, but for those of the survey."""
    from skbayes_sg.torch import BayesianModuleClassifier

    of_survey = 20 * min(500, len(data[0])) + 110 * BATCH
    left = max(n_gradients // n_chains - of_survey, 30 * BATCH) // BATCH
    start, thin = left // 2, max(1, left // 2 // (DRAWS * 3 // 2))
    model = BayesianModuleClassifier(
        network, n_chains=n_chains, n_draws=DRAWS, thin=thin, start_steps=start, batch_size=BATCH,
        random_state=0, device=data[0].device.type, data_on_device=True,
    )  # fmt: skip
    model.fit(*data)
    return model.predict_proba(X), model


def measured(p, y):
    """Error, -log p of each row, and calibration error."""
    own = -np.log(np.maximum(p[np.arange(len(y)), y], 1e-300))
    right = p.argmax(axis=1) == y
    return 1.0 - right.mean(), own, calibration_error(right, p.max(axis=1))


def compared(options):
    """{method: (probabilities, seconds)} for the test rows."""
    import torch

    torch.set_num_threads(1)
    data = needed("cifar10_12k.npz")

    def pair(name, n):
        X = data[f"X_{name}"][:n].transpose(0, 3, 1, 2).astype(np.float32) / 127.5 - 1.0
        y = torch.from_numpy(data[f"y_{name}"][:n].astype(np.int64))
        return torch.from_numpy(X).to(options.device), y.to(options.device)

    members = options.members
    train, (Z, y) = pair("train", options.rows), pair("test", options.test_rows)
    budget, found, began = int(options.passes * len(train[0])), {}, time.perf_counter()

    def add(name, p, n):
        nonlocal began
        found[name] = p, n, time.perf_counter() - began
        began = time.perf_counter()

    plain = trained(network, train, budget, seed=0)
    add("plain", probabilities(plain, Z), budget)
    nets = [trained(network, train, budget // members, seed) for seed in range(members)]
    add("deep ensemble", np.mean([probabilities(net, Z) for net in nets], axis=0), budget)
    net = trained(lambda: network(0.2), train, budget, seed=0)
    add("MC dropout", np.mean([probabilities(net, Z, True) for _ in range(50)], axis=0), budget)
    add("last-layer Laplace", last_layer_laplace(plain, train, Z), budget)
    p, model = posterior(train, Z, budget, members)
    add("posterior", p, model.n_gradients_)
    return found, y.cpu().numpy(), model


def run(options):
    found, y, model = compared(options)
    scores = {name: measured(p, y) for name, (p, _, _) in found.items()}
    best = min(scores, key=lambda name: scores[name][1].mean())
    print("method               gradients   error   NLPD    (se)     ECE  as best  seconds")
    for name, (error, own, ece) in scores.items():
        off = own - scores[best][1]
        near = off.mean() <= off.std() / np.sqrt(len(y))
        print(
            f"{name:20} {found[name][1]:9d}  {error:6.3f}  {own.mean():6.3f}  "
            f"({own.std() / np.sqrt(len(y)):5.3f})  {ece:6.3f}  {'yes' if near else 'no':7}"
            f"  {found[name][2]:7.0f}"
        )
    print(model.posterior_.check())


def main():
    parser = Parser(__doc__)
    parser.add_argument("--rows", type=int, default=3000, quick=200)
    parser.add_argument("--test-rows", type=int, default=2000, quick=100)
    parser.add_argument("--passes", type=float, default=400.0, quick=10.0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--members", type=int, default=5, quick=2)
    options = parser.parse_args()
    if not has_torch():
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the verdict is printed
        run(options)


if __name__ == "__main__":
    main()
