"""Modules that mix rows, whose likelihood and predictions would be those of no row."""

import numpy as np
import pytest

pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import TensorDataset

from skbayes_sg.exceptions import InvalidParameterError
from skbayes_sg.torch import BayesianModuleClassifier, BayesianModuleRegressor
from skbayes_sg.torch.outputs import checked_output

ROWS = np.random.default_rng(0).standard_normal((40, 6, 4)).astype(np.float32)
Y = ROWS[:, 0, 0] + ROWS[:, 3, 2]
QUICK = {
    "n_draws": 3, "n_chains": 2, "n_warmup": 4, "thin": 2, "start_steps": 5, "step_size": 1e-4,
    "random_state": 0,
}  # fmt: skip
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:skbayes_sg")


class Recurrent(nn.Module):
    def __init__(self, kind=nn.LSTM, last_is_zero=False, **options):
        super().__init__()
        self.layer, self.last = kind(4, 5, **options), nn.Linear(5, 1)
        if last_is_zero:
            nn.init.zeros_(self.last.weight)

    def forward(self, x):
        return self.last(self.layer(x)[0][:, -1])


class Attention(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(4, 2, 8, **options)
        self.last = nn.Linear(4, 1)

    def forward(self, x):
        return self.last(self.layer(x).mean(dim=1))


class Changed(nn.Module):
    """A linear layer on rows that a function changes."""

    def __init__(self, change, n_in=24):
        super().__init__()
        self.change, self.last = change, nn.Linear(n_in, 1)

    def forward(self, x):
        return self.last(self.change(x.flatten(1)))


MIXING = {
    "LSTM": Recurrent(),
    "GRU": Recurrent(nn.GRU),
    "LSTM below a last layer of zeros": Recurrent(last_is_zero=True),
    "attention": Attention(),
    "mean": Changed(lambda x: x - x.mean(dim=0)),
    "batch statistics": Changed(nn.BatchNorm1d(24, track_running_stats=False)),
    "sum of later rows": Changed(lambda x: x.flip(0).cumsum(0).flip(0)),
}
APART = {
    "LSTM": Recurrent(batch_first=True),
    "attention": Attention(batch_first=True),
    "BatchNorm": Changed(nn.BatchNorm1d(24)),
    "layer norm": Changed(nn.LayerNorm(24)),
    "random in evaluation mode": Changed(functional.dropout),
    "zeros": Changed(lambda x: 0.0 * x),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", MIXING)
def test_modules_that_mix_rows_are_refused(name, dtype):
    x, module = torch.from_numpy(ROWS[:8]).to(dtype), MIXING[name].to(dtype).eval()
    said = "single row|more than 1 value" if name == "batch statistics" else "module mixes rows"
    with pytest.raises(InvalidParameterError, match=said):
        checked_output(module, x)


@pytest.mark.parametrize("n_rows", [1, 2, 8])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", APART)
def test_modules_that_keep_rows_apart_are_taken(name, dtype, n_rows):
    x, module = torch.from_numpy(ROWS[:n_rows]).to(dtype), APART[name].to(dtype).eval()
    state = torch.get_rng_state()
    assert checked_output(module, x).shape == (n_rows, 1)
    if name != "random in evaluation mode":
        assert torch.equal(torch.get_rng_state(), state)


def test_rounding_errors_of_deep_modules_are_no_mixing():
    layers = [
        layer for _ in range(60) for layer in (nn.Linear(24, 24), nn.LayerNorm(24), nn.SiLU())
    ]
    module = nn.Sequential(nn.Flatten(), *layers, nn.Linear(24, 2)).eval()
    assert checked_output(module, torch.from_numpy(ROWS[:8])).shape == (8, 2)


@pytest.mark.parametrize("kind", [BayesianModuleRegressor, BayesianModuleClassifier])
@pytest.mark.parametrize("as_dataset", [False, True])
def test_fits_refuse_modules_that_mix_rows(kind, as_dataset):
    y = (Y > 0.0).astype(int) if kind is BayesianModuleClassifier else Y
    given = (TensorDataset(torch.from_numpy(ROWS), torch.from_numpy(y)),)
    given = given if as_dataset else (ROWS, y)
    with pytest.raises(InvalidParameterError, match=r"module mixes rows.*batch_first=True"):
        kind(Recurrent(), **QUICK).fit(*given)
    model = kind(Recurrent(batch_first=True), **QUICK).fit(*given)
    np.testing.assert_allclose(model.predict(ROWS[3:4]), model.predict(ROWS)[3:4], rtol=1e-4)


def test_a_row_of_its_own_is_compared_with_two_copies():
    with pytest.raises(InvalidParameterError, match="module mixes rows: for row 1"):
        checked_output(Recurrent().eval(), torch.from_numpy(ROWS[:1]))
