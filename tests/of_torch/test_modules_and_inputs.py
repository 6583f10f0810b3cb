"""Modules and inputs for which predictions would be wrong, or which fail without a name."""

import warnings

import numpy as np
import pytest

pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
import torch
from torch import nn
from torch.utils import data

from skbayes_sg.exceptions import InvalidParameterError
from skbayes_sg.torch import BayesianModuleClassifier, BayesianModuleRegressor
from skbayes_sg.torch.flat import FlatModule

pytestmark = [
    pytest.mark.filterwarnings("ignore::skbayes_sg.exceptions.SamplerConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::skbayes_sg.exceptions.StepSizeWarning"),
]
RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3)).astype(np.float32)
Y = X[:, 0] + 0.1 * RNG.standard_normal(60)
CLASSES = (X[:, 0] > 0.0).astype(int)
FEW = {"n_draws": 5, "n_chains": 2, "start_steps": 50, "n_warmup": 20, "thin": 2, "random_state": 0}


class Applied(nn.Module):
    """A linear layer inside of a function."""

    def __init__(self, function, n_outputs=1):
        super().__init__()
        self.linear, self.function = nn.Linear(3, n_outputs), function

    def forward(self, x):
        return self.function(self.linear, x)


def in_place(layer, x):
    x -= 0.01
    return layer(x)


@pytest.mark.parametrize(
    ("module", "said"),
    [
        (Applied(in_place), "changes its input in place"),
        (Applied(lambda layer, x: layer(x).squeeze()), r"squeeze\(-1\)"),
        (nn.LazyLinear(1), "The parameter weight of the module has no shape yet"),
    ],
)
def test_modules_that_cannot_be_used_are_named(module, said):
    for model, y in ((BayesianModuleRegressor, Y), (BayesianModuleClassifier, CLASSES)):
        with pytest.raises(InvalidParameterError, match=said):
            model(module, **FEW).fit(X, y)


@pytest.mark.parametrize(
    "function",
    [
        torch.sigmoid,
        lambda f: torch.sigmoid(f - f.detach().abs() - 2.0),  # zero for large parameters
        lambda f: 0.5 + 0.5 * torch.tanh(f),
    ],
)
def test_probabilities_of_a_function_are_not_taken_for_logits(function):
    with pytest.raises(InvalidParameterError, match="returns probabilities"):
        BayesianModuleClassifier(
            Applied(lambda layer, x: function(layer(x))), **FEW
        ).fit(X, CLASSES)  # fmt: skip


def test_small_logits_are_no_probabilities():
    """Between 0 and 1 at the initialisation, but not for all parameters."""

    class Small(nn.Module):
        def __init__(self):
            super().__init__()
            self.bias = nn.Parameter(torch.full((1,), 0.5))
            self.linear = nn.Linear(3, 1)

        def forward(self, x):
            return self.bias + 0.01 * self.linear(torch.tanh(x))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        BayesianModuleClassifier(Small, **FEW).fit(X, CLASSES)


class Items(data.Dataset):
    """Items by a function of their number."""

    def __init__(self, item):
        self.item = item

    def __len__(self):
        return len(X)

    def __getitem__(self, i):
        return self.item(i)


def test_what_is_no_tensor_is_named():
    model = BayesianModuleRegressor(nn.Linear(3, 1), **FEW)
    with pytest.raises(InvalidParameterError, match="must take one tensor"):
        model.fit(Items(lambda i: ((X[i], X[i]), Y[i])))
    with pytest.raises(TypeError, match="X is a dict"):
        model.fit({"a": X}, Y)
    with pytest.raises(ValueError, match="X has no rows"):
        model.fit(X[:0], Y[:0])
    with pytest.raises(ValueError, match="Input y contains NaN"):
        model.fit(Items(lambda i: (X[i], np.nan if i == 7 else Y[i])))
    with pytest.raises(ValueError, match=r"must be 0, 1, \.\.\., got 'b'"):
        BayesianModuleClassifier(nn.Linear(3, 2), **FEW).fit(
            Items(lambda i: (X[i], "b" if i == 0 else "a"))
        )


def test_gradients_of_inputs_are_left_alone():
    x = torch.tensor(X, requires_grad=True)
    found = BayesianModuleRegressor(nn.Linear(3, 1), **FEW).fit(x, Y).predict(x)
    wanted = BayesianModuleRegressor(nn.Linear(3, 1), **FEW).fit(X, Y).predict(X)
    np.testing.assert_array_equal(found, wanted)


def test_shapes_of_an_earlier_fit_are_forgotten():
    model = BayesianModuleRegressor(nn.Sequential(nn.Flatten(), nn.Linear(3, 1)), **FEW).fit(X, Y)
    assert model.n_features_in_ == 3
    model.fit(X[:, None], Y)
    assert not hasattr(model, "n_features_in_")
    assert model.input_shape_ == (1, 3)


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.vectors, self.last = nn.Embedding(5, 2, padding_idx=1), nn.Linear(2, 1)

    def forward(self, x):
        return self.last(self.vectors(x).sum(dim=1))


@pytest.mark.parametrize(
    "options", [{}, {"preconditioner": None, "step_size": 1e-6, "start_steps": 2000}]
)
def test_vectors_of_padding_stay(options):
    rng = np.random.default_rng(1)
    words = rng.integers(0, 5, (100, 3))
    y = np.array([1.0, 0.0, 2.0, -1.0, 0.5])[words].sum(axis=1) + 0.3 * rng.standard_normal(100)
    flat = FlatModule(Words(), torch.device("cpu"))
    start = flat.slices["vectors.weight"].start
    assert flat.still.tolist() == [start + 2, start + 3]
    model = BayesianModuleRegressor(Words(), noise=0.3, **FEW | options).fit(words, y)
    vectors = model.posterior_["vectors.weight"]
    assert np.abs(vectors[..., 1, :]).max() < 1e-12
    others = np.delete(vectors, 1, axis=-2)
    assert (others.std(axis=(0, 1)) > 1e-3).all()


def test_directions_that_no_row_has_are_looked_at():
    """Draws that have not left the mode along them: predictions at rows of the fit agree."""
    rng = np.random.default_rng(0)
    x, b = rng.standard_normal((20, 30)), rng.standard_normal(30)
    y = x @ b + 0.1 * rng.standard_normal(20)
    options = {"n_draws": 50, "thin": 20, "random_state": 0}
    model = BayesianModuleRegressor(nn.Linear(30, 1), noise=0.1, **options).fit(x, y)
    assert model.diagnostics_["rhat_of_predictions"] > 1.2
    assert not model.posterior_.check()
