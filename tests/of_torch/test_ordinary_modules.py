"""Modules and rows as users have them: what was wrong, crashed or was ignored at first."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
import torch
from torch import nn
from torch.nn import functional
from torch.utils import data

from skbayes_sg.exceptions import AlteredTargetWarning, InvalidParameterError
from skbayes_sg.torch import BayesianModuleClassifier, BayesianModuleRegressor
from skbayes_sg.torch.start import begin_alike, initialised

pytestmark = pytest.mark.filterwarnings(
    "ignore::skbayes_sg.exceptions.SamplerConvergenceWarning",
    "ignore::skbayes_sg.exceptions.StepSizeWarning",
)
RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 4))
Y = X @ [1.0, -1.0, 0.5, 0.0] + 0.3 * RNG.standard_normal(60)
FEW = {"n_draws": 5, "n_chains": 2, "start_steps": 50, "random_state": 0}


def regressor(module=None, **options):
    return BayesianModuleRegressor(module or nn.Linear(4, 1), **FEW | options)


def test_rows_of_weight_zero_are_none():
    y, weight = Y.copy(), np.ones(60)
    y[0], weight[0] = 1e6, 0.0
    found, wanted = regressor().fit(X, y, weight), regressor().fit(X[1:], y[1:])
    assert (found.y_mean_, found.y_scale_) == (wanted.y_mean_, wanted.y_scale_)
    np.testing.assert_array_equal(found.predict(X), wanted.predict(X))
    classes = np.r_[2, np.arange(59) % 2]
    model = BayesianModuleClassifier(nn.Linear(4, 2), **FEW).fit(X, classes, weight)
    assert model.classes_.tolist() == [0, 1]


def test_a_weight_of_two_is_the_row_twice_in_the_scale_of_y():
    found = regressor().fit(X, Y, np.full(60, 2.0))
    assert found.y_scale_ == pytest.approx(Y.std())
    doubled = regressor().fit(X, Y, np.where(np.arange(60) < 20, 2.0, 1.0))
    assert doubled.y_scale_ == pytest.approx(np.r_[Y, Y[:20]].std())


def test_a_second_fit_to_a_dataset_is_the_first_one_again():
    x = torch.from_numpy(X).float()
    rows = data.TensorDataset(x, torch.from_numpy(1000.0 + 50.0 * Y).float())
    model = regressor()
    first = model.fit(rows).predict(x)
    np.testing.assert_array_equal(model.fit(rows).predict(x), first)
    assert model.y_mean_ == pytest.approx(1000.0 + 50.0 * Y.mean(), rel=1e-6)


def test_frozen_normalisation_keeps_its_averages():
    torch.manual_seed(0)
    body = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU())
    with torch.no_grad():
        body(torch.randn(200, 4) * 3.0 + 2.0)
    for p in body.parameters():
        p.requires_grad_(False)
    module = nn.Sequential(body, nn.Linear(8, 1))
    model = regressor(module, training=False).fit(X, Y)
    kept = model.posterior_.others[0][0]["0.1.running_var"]
    torch.testing.assert_close(kept, body[1].running_var)
    begun = initialised(module, 1, "reset")
    torch.testing.assert_close(begun[0][1].running_mean, body[1].running_mean)


class OfFunctions(nn.Module):
    """Dropout that no layer shows."""

    def __init__(self, p):
        super().__init__()
        self.a, self.b, self.p = nn.Linear(4, 8), nn.Linear(8, 1), p

    def forward(self, x):
        return self.b(functional.dropout(torch.relu(self.a(x)), self.p, self.training))


def test_dropout_of_a_function_is_seen():
    with pytest.warns(AlteredTargetWarning, match="Dropout"):
        model = regressor(OfFunctions(0.3)).fit(X, Y)
    assert model.diagnostics_["noise_inflation"] > 0.0
    assert any("dropout" in finding.text for finding in model.posterior_.check().findings)
    with warnings.catch_warnings():
        warnings.simplefilter("error", AlteredTargetWarning)
        regressor(OfFunctions(0.0)).fit(X, Y)
        regressor(OfFunctions(0.3), training=False).fit(X, Y)


class Residual(nn.Module):
    """A reset of its own, which is the last word."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
        self.reset_parameters()

    def reset_parameters(self):
        nn.init.zeros_(self.b.weight)


class Bare(nn.Module):
    """A parameter that no layer draws."""

    def __init__(self):
        super().__init__()
        self.w, self.out, self.zero = nn.Parameter(torch.randn(4, 8)), nn.Linear(8, 1), None
        self.zero = nn.Parameter(torch.zeros(8))

    def forward(self, x):
        return self.out(torch.tanh(x @ self.w + self.zero))


def test_resets_are_made_in_the_order_of_constructors():
    assert not initialised(Residual(), 1, "reset").b.weight.any()
    assert begin_alike(Residual()) == []


def test_chains_that_begin_alike_are_told():
    assert begin_alike(Bare()) == ["w"]
    with pytest.warns(UserWarning, match="All chains begin at the same values of w, which no"):
        regressor(Bare()).fit(X, Y)
    normed = nn.Sequential(torch.nn.utils.parametrizations.orthogonal(nn.Linear(4, 4)))
    assert begin_alike(normed) == ["0.parametrizations.weight.original"]


class Lazy(nn.Module):
    """A buffer that the first pass makes, and a result that is kept."""

    def __init__(self):
        super().__init__()
        self.layer, self.hidden = nn.Linear(4, 1), None
        self.register_buffer("places", None)

    def forward(self, x):
        if self.places is None:
            self.places = torch.ones(4, device=x.device)
        self.hidden = self.layer(x * self.places)
        return self.hidden


@pytest.mark.parametrize("options", [{}, {"gradient": "svrg", "batch_size": 10}], ids=str)
def test_modules_may_keep_what_they_compute(options):
    module = Lazy()
    module(torch.zeros(1, 4))
    for own in (Lazy(), module):
        assert np.isfinite(regressor(own, **options).fit(X, Y).predict(X)).all()


def test_random_numbers_of_others_stay_as_they_are():
    before = torch.get_rng_state()
    model = regressor(lambda: nn.Linear(4, 1)).fit(X, Y)
    model.predict(X)
    assert torch.equal(before, torch.get_rng_state())


def test_bad_rows_are_named():
    x = torch.from_numpy(X).float()
    bad = x.clone()
    bad[0, 0] = torch.nan
    y = torch.from_numpy(Y).float()
    with pytest.raises(ValueError, match="rows of the Dataset contain NaN"):
        regressor().fit(data.TensorDataset(bad, y))
    with pytest.raises(ValueError, match="Input X contains NaN"):
        regressor().fit(bad, y)
    part = data.SubsetRandomSampler(range(20))
    with pytest.raises(InvalidParameterError, match="the sampler of the DataLoader"):
        regressor().fit(data.DataLoader(data.TensorDataset(x, y), sampler=part))
    for constant in (np.full(60, 0.1), np.ones(60)):
        with pytest.raises(ValueError, match="All responses in y are the same"):
            regressor().fit(X, constant)
    assert regressor(noise=1.0).fit(X, np.full(60, 0.1)).y_scale_ == 1.0


def test_bad_calls_of_predictions_are_named():
    model = regressor().fit(X, Y)
    with pytest.raises(ValueError, match="X has 5 rows and y has 60"):
        model.predict_log_density(X[:5], Y)
    with pytest.raises(ValueError, match="y must have rows of shape"):
        model.predict_log_density(X[:5], Y[:5, None])
    with pytest.raises(ValueError, match="X has no rows"):
        model.predict(X[:0])


def test_what_is_not_fitted_says_so():
    labels = np.arange(60) % 2
    for call in (
        lambda: regressor().predict_interval(X),
        lambda: regressor().sample_y(X),
        lambda: BayesianModuleClassifier(nn.Linear(4, 2)).predict_entropy_components(X),
        lambda: BayesianModuleClassifier(nn.Linear(4, 2)).predict_log_density(X, labels),
    ):
        with pytest.raises(NotFittedError):
            call()


def test_nothing_is_ignored_or_left_behind():
    with pytest.raises(InvalidParameterError, match="'wieght' of the prior fits none"):
        regressor(prior={"wieght": "laplace", "*": "normal"}).fit(X, Y)
    with pytest.warns(UserWarning, match="batch_size=5 is not used: gradient='full'"):
        assert regressor(gradient="full", batch_size=5).fit(X, Y).batch_size_ == 60
    model = regressor().fit(X, Y)
    assert model.noise_std_ > 0.0
    assert not hasattr(model.set_params(noise=5.0).fit(X, Y), "noise_std_")


@pytest.mark.parametrize(
    "last", [[nn.Linear(4, 3), nn.Softmax(dim=-1)], [nn.Linear(4, 1), nn.Sigmoid()]]
)
def test_probabilities_are_not_taken_for_logits(last):
    labels = np.arange(60) % (3 if last[0].out_features == 3 else 2)
    with pytest.raises(InvalidParameterError, match="returns probabilities"):
        BayesianModuleClassifier(nn.Sequential(*last), **FEW).fit(X, labels)
    inner = nn.Sequential(nn.Linear(4, 4), nn.Sigmoid(), last[0])
    BayesianModuleClassifier(inner, **FEW).fit(X, labels)
