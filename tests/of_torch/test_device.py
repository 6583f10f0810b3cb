"""What a device changes: nothing but rounding. Most of it needs a GPU."""

import pickle
import warnings

import numpy as np
import pytest

pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
import torch
from made import CPU, GPU, all_rows_gradient, law, on_a_gpu
from sklearn.datasets import load_iris
from sklearn.preprocessing import scale
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from skbayes_sg.exceptions import (
    AlteredTargetWarning,
    InvalidParameterError,
    SamplerConvergenceWarning,
    StepSizeWarning,
)
from skbayes_sg.gradients import SVRG
from skbayes_sg.schedules import Constant
from skbayes_sg.torch import BayesianModuleClassifier, BayesianModuleRegressor
from skbayes_sg.torch.chain import ModuleChain
from skbayes_sg.torch.device import full_precision, seeded
from skbayes_sg.torch.flat import FlatModule
from skbayes_sg.torch.moves import MOVES
from skbayes_sg.torch.rows import TensorRows
from skbayes_sg.torch.target import ModuleTarget

X, Y = load_iris(return_X_y=True)
X = scale(X)
QUICK = {
    "n_draws": 6, "n_chains": 2, "n_warmup": 10, "thin": 3, "start_steps": 60, "random_state": 0,
    "batch_size": 30, "step_size": 0.01, "learning_rate": 0.03,
}  # fmt: skip


def net():
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))


def fit(kind=BayesianModuleClassifier, module=None, data=(X, Y), weight=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = kind(module or net(), **(QUICK | options))
        return model.fit(*data) if weight is None else model.fit(*data, sample_weight=weight)


def test_random_numbers_of_layers_follow_from_the_seed():
    module = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 3))
    found = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        before = torch.get_rng_state()
        found.append(fit(module=module, device="cpu", step_size="auto").posterior_.draws)
        assert torch.equal(torch.get_rng_state(), before)
    np.testing.assert_array_equal(*found)


def test_random_numbers_outside_are_as_before():
    before = torch.get_rng_state()
    with seeded(3, CPU):
        inside = torch.rand(2)
    with seeded(3, CPU):
        assert torch.equal(torch.rand(2), inside)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_gpu_does_not_round_inside_a_fit():
    cudnn, products = torch.backends.cudnn, torch.backends.cuda.matmul
    before = cudnn.allow_tf32, products.allow_tf32
    with full_precision(CPU):
        assert (cudnn.allow_tf32, products.allow_tf32) == before
    with full_precision(GPU):
        assert (cudnn.allow_tf32, products.allow_tf32) == (False, False)
    assert (cudnn.allow_tf32, products.allow_tf32) == before


@pytest.mark.skipif(
    not hasattr(torch.backends.cudnn, "conv"), reason="torch has the old names only"
)
def test_precision_by_the_newer_names_of_torch():
    """Which torch refuses to mix with the older ones."""
    parts = torch.backends.cudnn.conv, torch.backends.cudnn.rnn, torch.backends.cuda.matmul
    before = [part.fp32_precision for part in parts]
    try:
        parts[0].fp32_precision, parts[1].fp32_precision = "ieee", "tf32"
        with full_precision(GPU):
            assert {part.fp32_precision for part in parts} == {"ieee"}
        assert [part.fp32_precision for part in parts[:2]] == ["ieee", "tf32"]
    finally:
        for part, value in zip(parts, before, strict=True):
            part.fp32_precision = value


def chain_on(device, dynamics):
    """A chain of a law that is the same on all devices."""
    here = law("numbers")
    flat = FlatModule(here.flat.module, device, 1)
    flat.theta.copy_(here.flat.theta)
    rows = TensorRows(*here.rows.parts, device)
    target = ModuleTarget(flat, here.likelihood, here.groups, rows)
    return ModuleChain(0, all_rows_gradient(target), dynamics, Constant(0.01), None, 0)


@on_a_gpu
@pytest.mark.parametrize("kind", list(MOVES), ids=lambda kind: kind.__name__)
def test_the_path_for_the_same_noise(kind):
    chains = [chain_on(device, kind()) for device in (CPU, GPU)]
    rng = np.random.default_rng(0)
    for chain in chains:
        for row in chain.state[1:2]:
            row.fill_(0.3)
    for _ in range(20):
        noise = torch.from_numpy(rng.standard_normal(chains[0].flat.n_parameters))
        for chain in chains:
            chain.step(0.01, noise.to(chain.flat.device))
    here, there = (chain.flat.theta.cpu() for chain in chains)
    assert not torch.equal(here, law("numbers").flat.theta)
    torch.testing.assert_close(there, here, rtol=1e-12, atol=1e-12)


@on_a_gpu
def test_draws_predict_the_same_on_another_device():
    here = fit(device="cpu")
    there = pickle.loads(pickle.dumps(here)).set_params(device="cuda")
    np.testing.assert_allclose(there.predict_proba(X), here.predict_proba(X), atol=1e-5)
    made = fit(device="cuda")
    assert made.score(X, Y) > 0.8
    back = pickle.loads(pickle.dumps(made)).set_params(device="cpu")
    np.testing.assert_allclose(back.predict_proba(X), made.predict_proba(X), atol=1e-5)


@on_a_gpu
def test_pictures_are_predicted_the_same_on_another_device():
    """Convolutions would round to ten bits."""
    rng = np.random.default_rng(0)
    pictures = rng.standard_normal((200, 3, 16, 16)).astype(np.float32)
    labels = (pictures.mean(axis=(1, 2, 3)) > 0.0).astype(int)
    module = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(392, 2)
    )
    there = fit(module=module, data=(pictures, labels), device="cuda")
    here = pickle.loads(pickle.dumps(there)).set_params(device="cpu")
    np.testing.assert_allclose(
        here.predict_proba(pictures), there.predict_proba(pictures), atol=1e-5
    )


@on_a_gpu
def test_the_same_seed_gives_the_same_draws():
    one, two = fit(device="cuda"), fit(device="cuda")
    np.testing.assert_array_equal(one.posterior_.draws, two.posterior_.draws)


@on_a_gpu
@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("where", ["X", "y", "both"])
def test_tensors_on_either_device(device, where):
    x, y = torch.tensor(X, dtype=torch.float32), torch.tensor(Y)
    x, y = x if where == "y" else x.cuda(), y if where == "X" else y.cuda()
    weight = torch.ones(150, device="cuda")
    model = fit(data=(x, y), device=device, weight=weight)
    plain = fit(device=device)
    np.testing.assert_array_equal(model.posterior_.draws, plain.posterior_.draws)
    assert model.predict_proba(x[:3]).shape == (3, 3)
    held = fit(data=(x, y), device=device, data_on_device=True)
    np.testing.assert_array_equal(held.posterior_.draws, plain.posterior_.draws)


@on_a_gpu
@pytest.mark.parametrize("made", [TensorDataset, lambda *p: DataLoader(TensorDataset(*p))])
def test_data_sets_on_either_device(made):
    x, y = torch.tensor(X, dtype=torch.float32), torch.tensor(Y)
    for own in ((x, y), (x.cuda(), y.cuda())):
        data = made(*own)
        assert fit(data=(data,), device="cuda").predict_proba(data).shape == (150, 3)
        numbers = made(own[0][:, 1:], own[0][:, :2])
        net = nn.Linear(3, 2)
        model = fit(BayesianModuleRegressor, net, (numbers,), device="cuda")
        assert model.predict(numbers).shape == (150, 2)
        assert model.predict_log_density(x[:, 1:], x[:, :2]).shape == (150, 2)


@on_a_gpu
@pytest.mark.parametrize("sampler", ["sgld", "sghmc", "sgnht", "baoab"])
@pytest.mark.parametrize("gradient", ["minibatch", SVRG(refresh=5), "full"])
def test_samplers_and_gradients(sampler, gradient):
    model = fit(sampler=sampler, gradient=gradient, device="cuda")
    assert model.score(X, Y) > 0.8


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(5, 4)
        self.rnn = nn.LSTM(4, 6, 2, batch_first=True, dropout=0.2)
        self.out = nn.Linear(6, 5)

    def forward(self, x):
        return self.out(self.rnn(self.embed(x))[0])


@on_a_gpu
@pytest.mark.parametrize("training", [True, False])
def test_recurrent_layers(training):
    rows = np.arange(60 * 8).reshape(60, 8) % 5
    data = rows[:, :-1], rows[:, 1:]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=SamplerConvergenceWarning)
        warnings.filterwarnings("ignore", category=StepSizeWarning)
        warnings.filterwarnings("ignore", category=AlteredTargetWarning)
        model = BayesianModuleClassifier(Words(), device="cuda", training=training, **QUICK)
        model.fit(*data)
    assert (model.predict(data[0]) == data[1]).mean() > 0.3
    here = pickle.loads(pickle.dumps(model)).set_params(device="cpu")
    np.testing.assert_allclose(here.predict_proba(data[0]), model.predict_proba(data[0]), atol=1e-5)


@on_a_gpu
def test_layers_with_random_numbers_and_averages():
    module = nn.Sequential(
        nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3)
    )
    one, two = (fit(module=module, device="cuda", start_steps=200) for _ in range(2))
    np.testing.assert_array_equal(one.posterior_.draws, two.posterior_.draws)
    here = pickle.loads(pickle.dumps(one)).set_params(device="cpu")
    np.testing.assert_allclose(here.predict_proba(X), one.predict_proba(X), atol=1e-5)


@on_a_gpu
def test_auto_on_all_rows():
    options = {"random_state": 0, "n_draws": 10, "n_chains": 2}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        here, there = (
            BayesianModuleClassifier(nn.Linear(4, 3), device=d, **options).fit(X, Y)
            for d in ("cpu", "cuda")
        )
    assert there.score(X, Y) > 0.95
    assert 0.2 < there.step_size_ / here.step_size_ < 5.0


@on_a_gpu
def test_rows_are_not_copied_to_the_device():
    rng = np.random.default_rng(0)
    fit(device="cuda")  # what the GPU keeps for matrix products
    wide = rng.standard_normal((8000, 10_000)).astype(np.float32)  # 320 MB, of 1000 rows 40
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    model = fit(
        module=nn.Linear(10_000, 2), data=(wide, (wide[:, 0] > 0).astype(int)), device="cuda"
    )
    model.predict_proba(wide)
    assert torch.cuda.max_memory_allocated() - before < 0.5 * wide.nbytes


@on_a_gpu
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_random_numbers_of_the_gpu_are_as_before(device):
    module = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.1))
    torch.cuda.manual_seed(7)
    before = torch.get_rng_state(), torch.cuda.get_rng_state()
    model = fit(module=module, device=device)
    model.predict_proba(X)
    after = torch.get_rng_state(), torch.cuda.get_rng_state()
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


@on_a_gpu
def test_noise_that_is_drawn_between_steps():
    """The draws of log(noise) of a linear module from either device have the same law."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((30, 3))
    y = x[:, 0] + 0.5 * rng.standard_normal(30)
    options = {"n_draws": 60, "n_chains": 2, "thin": 20, "start_steps": 300, "random_state": 0}
    found = []
    for device in ("cpu", "cuda"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = BayesianModuleRegressor(nn.Linear(3, 1), device=device, **options).fit(x, y)
        found.append(model.posterior_.draws[..., -1].astype(float))
    spread = np.std(found[0])
    assert abs(np.mean(found[0]) - np.mean(found[1])) < 0.4 * spread
    assert 0.75 < np.std(found[1]) / spread < 1.33


class Bag(nn.Module):
    """A bag of words whose word 0 is padding."""

    def __init__(self):
        super().__init__()
        self.vectors, self.last = nn.Embedding(7, 3, padding_idx=0), nn.Linear(3, 3)

    def forward(self, x):
        return self.last(self.vectors(x).mean(dim=1))


@on_a_gpu
@pytest.mark.parametrize("sampler", ["sgld", "sghmc", "sgnht", "baoab"])
def test_vectors_of_padding_stay(sampler):
    rng = np.random.default_rng(0)
    words = rng.integers(0, 7, (150, 6))
    model = fit(module=Bag(), data=(words, words[:, 0] % 3), device="cuda", sampler=sampler)
    vectors = model.posterior_["vectors.weight"]
    assert np.abs(vectors[..., 0, :]).max() < 1e-12
    assert (vectors[..., 1:, :].std(axis=(0, 1)) > 0.0).all()


@on_a_gpu
def test_probabilities_for_logits_are_named():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 1)

        def forward(self, x):
            return torch.sigmoid(self.linear(x))

    with pytest.raises(InvalidParameterError, match="returns probabilities"):
        fit(module=Own(), data=(X[:100], Y[:100]), device="cuda")
