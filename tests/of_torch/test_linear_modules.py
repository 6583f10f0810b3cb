"""Linear modules, whose posterior is known: "auto" finds it, in any unit of the columns."""

import warnings

import numpy as np
import pytest

pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
import torch
from torch import nn

from skbayes_sg.exceptions import LongRunWarning, SamplerDivergedError
from skbayes_sg.torch import BayesianModuleRegressor, auto, energy


def table(n, d, noise, seed, scales=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = X @ np.array([2.0, -1.0, 0.5, 0.0, 1.5])[:d] + noise * rng.normal(size=n)
    return (X * scales).astype(np.float32), y


def closed_form(X, y, noise):
    """Mean and standard deviation of f at the rows, under N(0, 1) in units of the sd of y."""
    sigma, A = noise / y.std(), np.column_stack([X, np.ones(len(X))]).astype(float)
    S = np.linalg.inv(A.T @ A / sigma**2 + np.eye(A.shape[1]))
    mean = A @ S @ A.T @ ((y - y.mean()) / y.std()) / sigma**2
    sd = np.sqrt(np.einsum("ij,jk,ik->i", A, S, A))
    return y.mean() + y.std() * mean, y.std() * sd


def quiet_fit(X, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", LongRunWarning)  # of a machine that is busy
        return BayesianModuleRegressor(nn.Linear(X.shape[1], 1), **options).fit(X, y)


CASES = {
    "ordinary": (50, 2, 0.3, 7, 1.0),
    "little noise": (50, 2, 0.1, 7, 1.0),
    "very little noise": (40, 3, 0.02, 0, 1.0),
    "much noise": (20, 1, 1.0, 0, 1.0),
    "columns in other units": (50, 3, 0.3, 7, np.array([1.0, 1e3, 30.0])),
    "the same with little noise": (200, 3, 0.02, 4, np.array([1e3, 1.0, 1e-2])),
}


@pytest.mark.parametrize("case", CASES)
def test_the_posterior_is_that_of_the_closed_form(case):
    """Chains went 20 to 300 standard deviations off, or ended in an error, where noise is small."""
    X, y = table(*CASES[case])
    noise = CASES[case][2]
    model = quiet_fit(X, y, noise=noise, random_state=0)
    mean, sd = closed_form(X, y, noise)
    found, _ = model.predict_std_components(X)
    n = 200  # draws
    assert np.abs(model.predict(X) - mean).max() < 5.0 / np.sqrt(n) * sd.max()
    assert np.sqrt(np.mean((found / sd) ** 2)) == pytest.approx(1.0, abs=4.0 / np.sqrt(2 * n))
    assert model.thin_ <= 2 * auto.LEAST_THIN


def test_the_search_goes_on_while_u_falls():
    """500 steps of Adam move a parameter by 0.75; there the mode is at 1000."""
    X, y = table(60, 2, 0.1, 1, 1e-3)
    options = {"noise": 0.1, "prior": "flat", "n_draws": 4, "n_chains": 1, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = BayesianModuleRegressor(nn.Linear(2, 1), **options).fit(X, y)
        options |= {"batch_size": 30}
        rounds = BayesianModuleRegressor(nn.Linear(2, 1), **options).fit(X * 200.0, y)
    assert model.start_steps_ > 500
    A = np.column_stack([X, np.ones(60)]).astype(float)
    rest = y - A @ np.linalg.lstsq(A, y, rcond=None)[0]
    least = 0.5 * np.mean((rest / 0.1) ** 2) + np.log(0.1 / y.std()) + 0.5 * np.log(2 * np.pi)
    assert model.start_losses_[0] == pytest.approx(least, abs=0.01)
    assert rounds.start_steps_ == 2000  # of Adam, which four rounds do not exceed


def test_losses_of_searches_include_the_prior():
    """Also where the search has ended with Adam, which estimates the likelihood from batches."""
    X, y = table(8, 2, 0.3, 0)
    options = {"noise": 0.3, "n_draws": 2, "n_chains": 1, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adam, both = (
            BayesianModuleRegressor(nn.Linear(2, 1), start_steps=k, **options).fit(X, y)
            for k in (3000, "auto")
        )
    A, sigma = np.column_stack([X, np.ones(8)]).astype(float), 0.3 / y.std()
    z = (y - y.mean()) / y.std()
    theta = np.linalg.solve(A.T @ A / sigma**2 + np.eye(3), A.T @ z / sigma**2)
    of_prior = 0.5 * theta @ theta / 8
    assert of_prior > 0.02
    assert adam.start_losses_ == pytest.approx(both.start_losses_, abs=0.1 * of_prior)


def test_searches_end_at_the_same_mode_in_any_unit_of_the_columns():
    """U begins at 140 000 for some chains, where a line search may go too far."""
    X, y = table(50, 2, 0.3, 1, np.array([1e3, 1.0]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = BayesianModuleRegressor(nn.Linear(2, 1), n_draws=2, thin=1, random_state=1).fit(
            X, y
        )
    assert np.ptp(model.start_losses_) < 0.01
    assert model.start_losses_.max() < 0.0


def test_steps_that_are_asked_for_are_not_exceeded():
    X, y = table(60, 2, 0.1, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = BayesianModuleRegressor(
            nn.Linear(2, 1), start_steps=30, n_draws=4, n_chains=1, n_warmup=8, random_state=0
        ).fit(X, y)
    assert model.start_steps_ == 30


def test_draws_that_do_not_move_are_an_error(monkeypatch):
    X, y = table(50, 2, 0.3, 0)
    monkeypatch.setattr(energy, "accurate_step", lambda chains, h, longest=0.0: 1e-14)
    with pytest.raises(SamplerDivergedError, match="do not move") as caught:
        quiet_fit(X, y, n_draws=4, n_chains=2, random_state=0)
    assert "Use step_size='auto'" not in str(caught.value)


def test_what_is_in_use_already_is_not_recommended(monkeypatch):
    X, y = table(50, 2, 0.3, 0)
    monkeypatch.setattr("skbayes_sg.torch.chain.HOT", 1e-9)
    with pytest.raises(SamplerDivergedError, match="found by the rule 'auto'") as caught:
        quiet_fit(X, y, random_state=0)
    assert "Use step_size" not in str(caught.value)
    with pytest.raises(SamplerDivergedError, match="Use step_size='auto'"):
        quiet_fit(X, y, step_size=0.1, random_state=0)


def test_fits_are_reproducible():
    X, y = table(30, 2, 0.3, 0)
    options = {"n_draws": 5, "n_chains": 2, "random_state": 3, "noise": 0.3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, two = (BayesianModuleRegressor(nn.Linear(2, 1), **options).fit(X, y) for _ in "ab")
    assert (one.posterior_.draws == two.posterior_.draws).all()


def test_a_start_that_is_not_finite_is_told_as_such():
    class Overflow(nn.Linear):
        def forward(self, x):
            return super().forward(x) * torch.tensor(float("nan"))

    with pytest.raises(SamplerDivergedError, match="before any step") as caught:
        BayesianModuleRegressor(Overflow(2, 1)).fit(*table(20, 2, 0.3, 0))
    assert "learning_rate" not in str(caught.value)
