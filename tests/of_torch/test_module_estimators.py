"""The estimators around modules: data, parameters, predictions, what is kept and saved."""

import pickle
import warnings

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
import torch
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from skbayes_sg.dynamics import SGHMC
from skbayes_sg.exceptions import (
    AlteredTargetWarning,
    DrawStoreWarning,
    InvalidParameterError,
    SamplerConvergenceWarning,
    SamplerDivergedError,
    StepSizeWarning,
)
from skbayes_sg.gradients import SVRG
from skbayes_sg.metrics import neg_calibration_error_scorer, neg_log_predictive_density_scorer
from skbayes_sg.schedules import Cyclical
from skbayes_sg.torch import BayesianModuleClassifier, BayesianModuleRegressor
from skbayes_sg.torch.flat import evaluating, set_training

X, SPECIES = load_iris(return_X_y=True)
X = scale(X)
NAMES = np.array(["setosa", "versicolor", "virginica"])[SPECIES]
LENGTH = X[:, 0] + 0.1
QUICK = {
    "n_draws": 6, "n_chains": 2, "n_warmup": 10, "thin": 3, "start_steps": 60, "random_state": 0,
    "batch_size": 30, "step_size": 0.01, "learning_rate": 0.03,
}  # fmt: skip
pytestmark = pytest.mark.filterwarnings(
    "ignore::skbayes_sg.exceptions.SamplerConvergenceWarning",
    "ignore::skbayes_sg.exceptions.StepSizeWarning",
)


def net(n_out=3, n_in=4):
    return nn.Sequential(nn.Linear(n_in, 5), nn.Tanh(), nn.Linear(5, n_out))


def classifier(module=None, **options):
    return BayesianModuleClassifier(module or net(), **(QUICK | options))


def regressor(module=None, **options):
    return BayesianModuleRegressor(module or net(1), **(QUICK | options))


@pytest.fixture(scope="module")
def fitted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return classifier(n_draws=10).fit(X, NAMES)


@pytest.fixture(scope="module")
def fitted_regressor():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return regressor(net(1, 3), n_draws=10).fit(X[:, 1:], LENGTH)


class Pairs(Dataset):
    """Rows and labels, one at a time; noisy ones are augmented."""

    def __init__(self, noise=0.0):
        self.noise = noise

    def __len__(self):
        return len(X)

    def __getitem__(self, i):
        x = torch.tensor(X[i], dtype=torch.float32)
        return x + self.noise * torch.randn(4), int(SPECIES[i])


@pytest.mark.parametrize(
    "form", ["list", "tensors", "float32", "frame", "dataset", "own", "loader"]
)
def test_draws_do_not_depend_on_the_form_of_the_data(form):
    tensors = torch.tensor(X, dtype=torch.float32), torch.tensor(SPECIES)
    given = {
        "list": (X.tolist(), SPECIES.tolist()),
        "tensors": tensors,
        "float32": (np.asfortranarray(X.astype(np.float32)), SPECIES),
        "frame": (load_iris(as_frame=True).data.assign(**dict(zip("abcd", X.T, strict=True)))
                  [list("abcd")], SPECIES),
        "dataset": (TensorDataset(*tensors),),
        "own": (Pairs(),),
        "loader": (DataLoader(Pairs(), batch_size=7, shuffle=True),),
    }[form]  # fmt: skip
    expected, found = classifier().fit(X, SPECIES), classifier().fit(*given)
    np.testing.assert_array_equal(expected.posterior_.draws, found.posterior_.draws)
    rows = given[0] if form != "loader" else Pairs()
    np.testing.assert_allclose(expected.predict_proba(X), found.predict_proba(rows), rtol=1e-6)


def test_the_same_seed_makes_the_same_draws_and_leaves_the_global_one():
    model = classifier()
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    one = model.fit(X, NAMES)
    assert torch.equal(torch.rand(3), expected)
    two = classifier().fit(X, NAMES)
    np.testing.assert_array_equal(one.posterior_.draws, two.posterior_.draws)
    other = classifier(random_state=1).fit(X, NAMES)
    assert not np.array_equal(one.posterior_.draws, other.posterior_.draws)
    assert not np.array_equal(one.posterior_.draws[0], one.posterior_.draws[1])


@pytest.mark.parametrize(
    "options",
    [
        {"sampler": "sgld"}, {"sampler": "sgnht"}, {"sampler": SGHMC(friction=0.5)},
        {"gradient": "svrg"}, {"gradient": SVRG(refresh=4, anchor_size=60)}, {"gradient": "full"},
        {"preconditioner": None, "step_size": 1e-6}, {"step_size": Cyclical(0.02, 10)},
        {"step_size": "auto", "n_warmup": "auto", "thin": "auto"}, {"prior": "laplace"},
        {"step_size": "auto", "gradient": SVRG(refresh=4, anchor_size=60)},
        {"data_on_device": True}, {"training": False}, {"initialisation": "given"},
        {"temperature": 0.5}, {"prior": {"0.*": "fan_in", "*": "normal"}},
    ],
    ids=str,
)  # fmt: skip
def test_options_are_used(options, fitted):
    model = classifier(**options).fit(X, NAMES)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert model.score(X, NAMES) > 0.8
    if "data_on_device" not in options and "training" not in options:
        assert not np.array_equal(model.posterior_.draws[:, :6], fitted.posterior_.draws[:, :6])


def test_labels_and_what_is_learnt(fitted):
    assert fitted.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert set(fitted.predict(X)) == set(NAMES)
    assert fitted.posterior_.names == ("0.weight", "0.bias", "2.weight", "2.bias")
    assert fitted.posterior_["2.weight"].shape == (2, 10, 3, 5)
    assert "2.weight" in fitted.posterior_
    with pytest.raises(KeyError, match=r"the parameters are \['0.weight'"):
        fitted.posterior_["weight"]
    draws = fitted.posterior_.draws.reshape(20, -1)
    np.testing.assert_allclose(fitted.posterior_.mean(), draws.mean(axis=0), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(fitted.posterior_.std(), draws.std(axis=0), rtol=1e-4, atol=1e-7)
    assert fitted.prior_groups_ == [("Normal()", list(fitted.posterior_.names))]
    # Steps of the search, its survey, those of the chains, and curvature on all 150 rows.
    assert fitted.n_gradients_ == 2 * (30 * (60 + 32 + 2 * 12 + 10 + 30) + 10 * 2 * 150)


def test_a_function_that_makes_modules_starts_where_their_layers_do(fitted):
    made = BayesianModuleClassifier(net, **(QUICK | {"n_draws": 10})).fit(X, NAMES)
    np.testing.assert_array_equal(made.posterior_.draws, fitted.posterior_.draws)


def naive_probabilities(model, rows):
    """Softmax of the outputs of all draws, by the layers' own formulas."""
    found = []
    for theta in model.posterior_.draws.reshape(-1, 43).astype(np.float64):
        W, b, V, c = np.split(theta, [20, 25, 40])
        f = np.tanh(rows @ W.reshape(5, 4).T + b) @ V.reshape(3, 5).T + c
        e = np.exp(f - f.max(axis=1, keepdims=True))
        found.append(e / e.sum(axis=1, keepdims=True))
    return np.array(found)


def entropy(p):
    return -(p * np.log(p)).sum(axis=-1)


def test_predictions_are_averages_over_draws(fitted):
    p = naive_probabilities(fitted, X)
    mean = p.mean(axis=0)
    close = {"rtol": 2e-4, "atol": 1e-6}
    np.testing.assert_allclose(fitted.predict_proba(X), mean, **close)
    np.testing.assert_allclose(fitted.predict_log_proba(X), np.log(mean), **close)
    own = fitted.predict_log_density(X, NAMES)
    np.testing.assert_allclose(own, np.log(mean[range(150), SPECIES]), **close)
    np.testing.assert_allclose(fitted.predict_proba_samples(X), p, **close)
    every_third = np.linspace(0, len(p) - 1, len(p) // 3).astype(int)
    np.testing.assert_allclose(
        fitted.predict_proba_samples(X, len(p) // 3), p[every_third], **close
    )
    with pytest.raises(ValueError, match="n_samples"):
        fitted.predict_proba_samples(X, 10 * len(p))
    lower, upper = fitted.predict_proba_interval(X, 0.8)
    np.testing.assert_allclose(lower, np.quantile(p, 0.1, axis=0), **close)
    np.testing.assert_allclose(upper, np.quantile(p, 0.9, axis=0), **close)
    epistemic, aleatoric = fitted.predict_entropy_components(X)
    np.testing.assert_allclose(aleatoric, entropy(p).mean(axis=0), **close)
    np.testing.assert_allclose(epistemic, entropy(mean) - entropy(p).mean(axis=0), atol=1e-5)
    np.testing.assert_array_equal(fitted.out_of_distribution_score(X), epistemic)


def test_blocks_of_rows_change_nothing(fitted, monkeypatch):
    from skbayes_sg.torch import base

    whole = fitted.predict_proba_interval(X)
    monkeypatch.setattr(base, "BLOCK_NUMBERS", 2000)
    np.testing.assert_allclose(fitted.predict_proba_interval(X), whole, rtol=1e-5, atol=1e-7)


def test_metrics_and_pipelines_take_it():
    model = make_pipeline(StandardScaler(), classifier()).fit(X * 1e6 + 1e7, NAMES)
    assert -1.2 < neg_log_predictive_density_scorer(model, X * 1e6 + 1e7, NAMES) < 0.0
    assert -0.5 < neg_calibration_error_scorer(model, X * 1e6 + 1e7, NAMES) < 0.0


def test_saved_estimators_predict_the_same(fitted, tmp_path):
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.predict_proba(X), fitted.predict_proba(X))
    torch.save(fitted, tmp_path / "model.pt")
    copy = torch.load(tmp_path / "model.pt", weights_only=False)
    np.testing.assert_array_equal(copy.predict_proba(X), fitted.predict_proba(X))


def test_half_precision_and_files_hold_the_same_draws(fitted, tmp_path):
    half = classifier(n_draws=10, draws_dtype="float16").fit(X, NAMES)
    assert half.posterior_.draws.nbytes * 2 == fitted.posterior_.draws.nbytes
    np.testing.assert_allclose(half.posterior_.draws, fitted.posterior_.draws, rtol=5e-4, atol=1e-6)
    np.testing.assert_allclose(half.predict_proba(X), fitted.predict_proba(X), atol=2e-3)
    disk = classifier(n_draws=10, draws_folder=tmp_path / "draws").fit(X, NAMES)
    assert isinstance(disk.posterior_.draws, np.memmap)
    assert [f.stat().st_size for f in (tmp_path / "draws").iterdir()] == [2 * 10 * 43 * 4]
    np.testing.assert_array_equal(disk.predict_proba(X), fitted.predict_proba(X))


def test_moments_are_those_of_all_draws_also_if_few_are_kept(fitted):
    few = classifier(n_draws=10, keep=2).fit(X, NAMES)
    assert few.posterior_.n_draws == 2
    np.testing.assert_array_equal(few.posterior_.draws, fitted.posterior_.draws[:, [4, 9]])
    np.testing.assert_array_equal(few.posterior_.mean(), fitted.posterior_.mean())


def test_many_draws_are_announced():
    import sklearn

    with (
        sklearn.config_context(working_memory=0.001),
        pytest.warns(
            DrawStoreWarning, match=r"2 chains x 10 draws x 43 parameters = 3,440 bytes.*float16"
        ),
    ):
        classifier(n_draws=10).fit(X, NAMES)


def test_draws_of_a_schedule_have_weights():
    model = classifier(step_size=Cyclical(0.02, 10)).fit(X, NAMES)
    w = model.posterior_.weights
    steps = Cyclical(0.02, 10)(np.arange(10, 10 + 18)).reshape(6, 3).sum(axis=1)
    np.testing.assert_allclose(w, steps / steps.mean())
    p = naive_probabilities(model, X).reshape(2, 6, 150, 3)
    expected = (w[:, None, None] * p).mean(axis=(0, 1))
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=2e-4, atol=1e-6)
    assert (model.predict_proba_interval(X)[0] <= expected + 1e-6).all()
    flat = model.posterior_.draws.astype(np.float64)
    np.testing.assert_allclose(
        model.posterior_.mean(), (w[:, None] * flat).mean(axis=(0, 1)), rtol=1e-5, atol=1e-7
    )


def test_a_weight_of_two_is_the_row_twice():
    options = {"gradient": "full", "step_size": 0.05}
    w = np.random.default_rng(0).integers(0, 3, 150)
    one = classifier(**options).fit(X, NAMES, sample_weight=torch.from_numpy(w))
    repeated = np.repeat(np.arange(150), w)
    two = classifier(**options).fit(X[repeated], NAMES[repeated])
    # The starts are from other random numbers; the laws are compared through U and its slope.
    assert one.start_losses_ * (w > 0).sum() == pytest.approx(two.start_losses_ * w.sum(), rel=0.05)


@pytest.mark.parametrize(("module", "options", "what"), [
    (nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.3), nn.Linear(8, 3)), {}, "Dropout"),
    (nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)), {}, "Batch normalis"),
])  # fmt: skip
def test_layers_that_change_the_law_are_named(module, options, what):
    with pytest.warns(AlteredTargetWarning, match=f"{what}.*training=False"):
        model = classifier(module, **options).fit(X, NAMES)
    assert what.lower() in repr(model.posterior_)
    assert "the law is not the posterior" in " ".join(repr(model.posterior_.check()).split())
    with warnings.catch_warnings():
        warnings.simplefilter("error", AlteredTargetWarning)
        plain = classifier(module, training=False).fit(X, NAMES)
    assert "altered" not in repr(plain.posterior_)
    np.testing.assert_array_equal(model.predict_proba(X), model.predict_proba(X))


def test_augmentation_is_named():
    with pytest.warns(AlteredTargetWarning, match="Data augmentation is active"):
        classifier().fit(Pairs(noise=0.1))


def test_averages_of_batch_normalisation_belong_to_the_draws():
    module = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))
    with pytest.warns(AlteredTargetWarning):
        model = classifier(module).fit(X, NAMES)
    first, last = model.posterior_.others[0][0], model.posterior_.others[0][-1]
    assert not torch.equal(first["1.running_mean"], last["1.running_mean"])
    # Predictions of a draw are those of a module with its parameters and its averages.
    probabilities = []
    for c in range(2):
        for k in range(6):
            state = {n: torch.from_numpy(model.posterior_[n][c, k].copy())
                     for n in model.posterior_.names}  # fmt: skip
            module.load_state_dict(state | model.posterior_.others[c][k])
            module.eval()
            with torch.no_grad():
                f = module(torch.tensor(X, dtype=torch.float32))
            probabilities.append(torch.softmax(f, 1).numpy())
    np.testing.assert_allclose(
        model.predict_proba(X), np.mean(probabilities, axis=0), rtol=1e-4, atol=1e-6
    )


def test_parameters_without_gradients_keep_their_values():
    module = net()
    module[0].weight.requires_grad_(False)
    model = classifier(module).fit(X, NAMES)
    assert "0.weight" not in model.posterior_
    for kept in model.posterior_.others:
        assert torch.equal(kept[0]["0.weight"], module[0].weight)
        assert kept[0]["0.weight"] is kept[-1]["0.weight"]  # once a chain, not once a draw


def test_a_single_log_odds_is_two_classes():
    y = NAMES == "setosa"
    for module in (net(1), nn.Sequential(net(1), nn.Flatten(0))):
        model = classifier(module).fit(X, y)
        p = model.predict_proba(X)
        assert p.shape == (150, 2)
        assert model.score(X, y) > 0.95


def test_a_class_without_rows_keeps_its_output():
    some = SPECIES != 1
    model = classifier().fit(X[some], SPECIES[some])
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.score(X[some], SPECIES[some]) > 0.95
    assert classifier(net(2)).fit(X[some], SPECIES[some]).classes_.tolist() == [0, 2]
    assert classifier(net(2)).fit(X[some], 1 + SPECIES[some]).classes_.tolist() == [1, 3]
    with pytest.raises(ValueError, match="there are 2 classes"):
        classifier().fit(X[some], NAMES[some])  # names do not tell which output they are


class Words(nn.Module):
    """A recurrent network of words."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(5, 4)
        self.rnn = nn.LSTM(4, 6, batch_first=True)
        self.out = nn.Linear(6, 5)

    def forward(self, x):
        return self.out(self.rnn(self.embed(x))[0])


def test_texts_have_a_label_for_each_word():
    text = np.arange(60 * 8) % 5
    rows = text.reshape(60, 8)
    model = classifier(Words(), start_steps=150).fit(rows[:, :-1], rows[:, 1:])
    assert model.predict_proba(rows[:3, :-1]).shape == (3, 7, 5)
    assert (model.predict(rows[:, :-1]) == rows[:, 1:]).mean() > 0.9
    assert model.predict_log_density(rows[:, :-1], rows[:, 1:]).shape == (60, 7)


def test_words_that_an_embedding_does_not_have_are_named():
    text = np.arange(60 * 8).reshape(60, 8) % 5
    rows, unknown = text[:, :-1], np.where(np.arange(60)[:, None] == 40, 5, text)[:, :-1]
    with pytest.raises(ValueError, match="reach from 0 to 5, and an embedding"):
        classifier(Words()).fit(unknown, text[:, 1:])
    model = classifier(Words(), start_steps=5).fit(torch.from_numpy(rows), text[:, 1:])
    with pytest.raises(ValueError, match="as many as the largest number that may occur"):
        model.predict(unknown)
    with pytest.raises(ValueError, match="reach from -1 to 4"):
        model.predict(np.where(rows == 0, -1, rows))


def test_recurrent_layers_without_dropout_in_evaluation_mode():
    """cuDNN has their gradients in training mode only."""
    module = nn.Sequential(nn.LSTM(2, 3, 2, dropout=0.5), nn.Dropout(0.5))
    set_training(module, False)
    assert [m.training for m in module] == [True, False]
    x = torch.ones(4, 2)
    assert torch.equal(module[0](x)[0], module[0](x)[0])
    with evaluating(module):
        assert not any(m.training for m in module)
    assert [m.training for m in module] == [True, False]


def test_temperature_is_one_unless_asked_for_and_is_shown(fitted):
    assert fitted.temperature_ == 1.0
    assert "temperature 1" in repr(fitted.posterior_)
    cold = classifier(temperature=0.1).fit(X, NAMES)
    assert "temperature 0.1" in repr(cold.posterior_)
    assert "1/T with T = 0.1" in repr(cold.posterior_.check())
    assert "1/T" not in repr(fitted.posterior_.check())


def test_divergence_has_a_name_and_leaves_the_estimator_as_it_was():
    model = classifier(step_size=1e4)
    with pytest.raises(
        SamplerDivergedError, match="BayesianModuleClassifier: Chain 0 has diverged"
    ):
        model.fit(X, NAMES)
    assert not hasattr(model, "posterior_")
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sampler": "hmc"}, "'sampler' parameter"), ({"gradient": "taylor"}, "'gradient'"),
        ({"batch_size": 0}, "batch_size"), ({"step_size": -1.0}, "step_size"),
        ({"preconditioner": "hessian"}, "preconditioner"), ({"temperature": 0.0}, "temperature"),
        ({"n_draws": 0}, "n_draws"), ({"thin": 0}, "thin"), ({"device": "gpu"}, "device"),
        ({"gradient": SVRG(anchor_size=20)}, "anchor_size"), ({"prior": "horseshoe"}, "prior"),
        ({"draws_dtype": "int8"}, "draws_dtype"), ({"initialisation": "zero"}, "initialisation"),
        ({"keep": 0}, "keep"), ({"training": 1}, "training"), ({"learning_rate": 0}, "learning"),
        ({"module": "net"}, "module must be"), ({"module": nn.ReLU()}, "module"),
    ],
    ids=str,
)  # fmt: skip
def test_parameters_that_cannot_be_used_are_named(options, message):
    with pytest.raises(InvalidParameterError, match=message):
        clone(classifier()).set_params(**options).fit(X, NAMES)


@pytest.mark.parametrize(
    ("rows", "labels", "message"),
    [
        (X, NAMES[:9], "150 rows and y has 9"), (X, None, "y is missing"),
        (np.where(X > 2.0, np.nan, X), NAMES, "NaN"), (X, np.full(150, "a"), "only one class"),
        (X, LENGTH, "BayesianModuleRegressor"), (Pairs(), NAMES, "leave out y"),
        (X, np.arange(150), "3 numbers along its last axis, and there are 150 classes"),
    ],
    ids=["lengths", "no y", "nan", "one class", "numbers", "dataset", "too many classes"],
)  # fmt: skip
def test_data_that_cannot_be_used_are_refused(rows, labels, message):
    with pytest.raises(ValueError, match=message):
        classifier().fit(rows, labels)


def test_a_dataset_stays_where_it_is():
    with pytest.raises(InvalidParameterError, match="for arrays and tensors"):
        classifier(data_on_device=True).fit(Pairs())


def test_workers_of_a_loader_read_the_same_batches():
    loader = DataLoader(Pairs(), num_workers=1)
    one, two = classifier(n_chains=1).fit(loader), classifier(n_chains=1).fit(X, SPECIES)
    np.testing.assert_array_equal(one.posterior_.draws, two.posterior_.draws)


def test_modules_that_do_not_fit_the_rows_are_named():
    words = nn.Sequential(nn.Embedding(5, 3), nn.Flatten(), nn.Linear(12, 3))
    for module, rows, said in [
        (nn.Linear(9, 3), X, r"rows of X, here a tensor of shape \(8, 4\) .*: mat1 and mat2"),
        (words, X, "type torch.float32: Expected tensor"),
        (nn.Linear, X, "cannot be called without arguments .*Give a torch.nn.Module"),
    ]:
        with pytest.raises(InvalidParameterError, match=said):
            BayesianModuleClassifier(module).fit(rows, SPECIES)


def test_rows_of_another_shape_are_refused(fitted):
    with pytest.raises(ValueError, match="rows of shape"):
        fitted.predict(X[:, :3])


# -- regression ----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (2,)])
def test_numbers_far_from_zero_keep_their_differences(shape):
    model = regressor()
    model.y_mean_, model.y_scale_ = np.full(shape, 1e9), np.full(shape, 0.25)
    y = torch.full((3, *shape), 1e9, dtype=torch.float64) + 0.5
    assert torch.equal(model._encode(y), torch.full((3, *shape), 2.0))


def test_predictions_of_numbers(fitted_regressor):
    model, rows = fitted_regressor, X[:, 1:]
    mean, std = model.predict(rows, return_std=True)
    epistemic, aleatoric = model.predict_std_components(rows)
    np.testing.assert_allclose(std**2, epistemic**2 + aleatoric**2)
    draws = model.posterior_.draws.reshape(20, -1).astype(np.float64)
    f = []
    for theta in draws:
        W, b, V, c, _ = np.split(theta, [15, 20, 25, 26])
        f.append(np.tanh(rows @ W.reshape(5, 3).T + b) @ V + c)
    f, s = model.y_mean_ + model.y_scale_ * np.array(f), model.y_scale_ * np.exp(draws[:, -1])
    np.testing.assert_allclose(mean, f.mean(axis=0), rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(epistemic, f.std(axis=0), rtol=1e-3)
    np.testing.assert_allclose(aleatoric, np.sqrt((s**2).mean()), rtol=1e-5)
    assert model.noise_std_ == pytest.approx(s.mean(), rel=1e-6)
    density = stats.norm(f, s[:, None]).pdf(LENGTH).mean(axis=0)
    found = model.predict_log_density(rows, LENGTH)
    np.testing.assert_allclose(found, np.log(density), rtol=1e-3, atol=1e-4)
    for q in (0.05, 0.5, 0.99):
        at = model.predict_quantiles(rows, q)
        np.testing.assert_allclose(stats.norm(f, s[:, None]).cdf(at).mean(axis=0), q, atol=1e-5)
    lower, upper = model.predict_interval(rows, 0.9)
    assert np.mean((lower < LENGTH) & (upper > LENGTH)) > 0.8
    np.testing.assert_allclose(model.out_of_distribution_score(rows), epistemic / aleatoric)
    many = model.sample_y(rows, 400, random_state=1)
    assert np.abs((many.mean(axis=1) - mean) / std).max() < 5 / np.sqrt(400) * 1.5
    assert np.abs(many.std(axis=1) / std - 1.0).max() < 5 / np.sqrt(2 * 400) * 1.5


def test_numbers_in_any_unit():
    one = regressor(net(1)).fit(X, LENGTH)
    other = regressor(net(1)).fit(X, 1e6 + 1e3 * LENGTH)
    np.testing.assert_allclose(one.posterior_.draws, other.posterior_.draws, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(1e6 + 1e3 * one.predict(X), other.predict(X), rtol=1e-6)


def test_noise_that_the_module_gives_and_noise_that_is_known():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, (300, 1))
    y = x[:, 0] + np.where(x[:, 0] > 0.0, 0.5, 0.05) * rng.standard_normal(300)
    model = regressor(net(2, 1), noise="module", start_steps=400).fit(x, y)
    _, aleatoric = model.predict_std_components([[-0.5], [0.5]])
    assert aleatoric[0] < 0.2 < aleatoric[1]
    known = regressor(net(1, 1), noise=0.3).fit(x, y)
    np.testing.assert_allclose(known.predict_std_components(x)[1], 0.3, rtol=1e-5)
    assert not hasattr(known, "noise_std_")


def test_several_responses_and_responses_of_a_dataset():
    Y = np.column_stack([LENGTH, 100.0 * X[:, 2]])
    model = regressor(net(2)).fit(X, Y)
    assert model.predict(X).shape == (150, 2)
    assert model.score(X, Y) > 0.5
    pairs = TensorDataset(torch.tensor(X, dtype=torch.float32), torch.tensor(LENGTH))
    one, two = regressor().fit(pairs), regressor().fit(X, LENGTH)
    np.testing.assert_allclose(one.predict(pairs), two.predict(X), rtol=1e-4, atol=1e-5)


def test_wrong_shapes_of_numbers_are_named():
    with pytest.raises(ValueError, match=r"shape \(30, 3\) where y has \(30,\)"):
        regressor(net(3)).fit(X, LENGTH)
    with pytest.raises(ValueError, match="even length"):
        regressor(net(1), noise="module").fit(X, LENGTH)


# -- evidence ------------------------------------------------------------------------------------


def test_chains_in_different_places_are_told():
    with pytest.warns(SamplerConvergenceWarning, match="R-hat of predictions"):
        model = classifier(step_size=1e-9).fit(X, NAMES)
    verdict = model.posterior_.check()
    assert not verdict
    assert "different modes" in repr(verdict)
    assert model.diagnostics_["between_chains"] > 0.9


def test_noise_is_told():
    with pytest.warns(StepSizeWarning, match="noise"):
        model = classifier(sampler="sgld", step_size=1.0, batch_size=3).fit(X, NAMES)
    assert model.diagnostics_["noise_inflation"] > 0.1


def test_a_posterior_that_chains_reach_is_trusted():
    rows = np.random.default_rng(0).standard_normal((60, 3))
    model = regressor(
        nn.Linear(3, 1), noise=1.0, gradient="full", step_size=0.5, n_draws=150, n_chains=4,
        n_warmup=100, thin=4,
    ).fit(rows, rows[:, 0])  # fmt: skip
    assert model.posterior_.check().trustworthy, model.posterior_.check()
    assert model.diagnostics_["rhat_of_predictions"] < 1.05
    assert abs(model.diagnostics_["temperature_of_predictions"] - 1.0) < 0.2
