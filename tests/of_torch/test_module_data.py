"""What is given to modules: names of columns, items of a Dataset, labels; what modules return."""

import pickle
import warnings

import numpy as np
import pytest

pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
import torch
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from skbayes_sg.exceptions import InvalidParameterError, SamplerDivergedError
from skbayes_sg.torch import BayesianModuleClassifier, BayesianModuleRegressor

X, SPECIES = load_iris(return_X_y=True)
X = ((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32)
TENSOR = torch.from_numpy(X)
QUICK = {
    "n_draws": 4, "n_chains": 2, "n_warmup": 5, "thin": 2, "start_steps": 20, "random_state": 0,
    "batch_size": 30, "step_size": 0.01,
}  # fmt: skip
pytestmark = pytest.mark.filterwarnings("ignore:.*R-hat", "ignore::UserWarning:skbayes_sg")


def fitted(module=None, given=(X, SPECIES), kind=BayesianModuleClassifier, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind(module or nn.Linear(4, 3), **(QUICK | options)).fit(*given)


class Alone(Dataset):
    """Rows without targets, as tensors or as tuples of one."""

    def __init__(self, as_tuple=False):
        self.as_tuple = as_tuple

    def __len__(self):
        return len(TENSOR)

    def __getitem__(self, i):
        return (TENSOR[i],) if self.as_tuple else TENSOR[i]


def test_names_of_columns_are_kept_and_checked():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcd"))
    for kind in (BayesianModuleClassifier, BayesianModuleRegressor):
        module = nn.Linear(4, 3 if kind is BayesianModuleClassifier else 1)
        model = fitted(module, (frame, SPECIES), kind)
        assert model.feature_names_in_.tolist() == list("abcd")
        model.predict(frame)
        with pytest.raises(ValueError, match="feature names"):
            model.predict(frame[list("dcba")])
        with pytest.raises(ValueError, match="feature names"):
            model.predict(frame.rename(columns={"a": "z"}))
    assert not hasattr(fitted(), "feature_names_in_")


@pytest.mark.parametrize("as_tuple", [False, True])
@pytest.mark.parametrize("as_loader", [False, True])
def test_rows_without_targets_are_predicted(as_tuple, as_loader):
    rows = Alone(as_tuple)
    rows = DataLoader(rows, batch_size=2) if as_loader else rows
    model = fitted()
    np.testing.assert_allclose(model.predict_proba(rows), model.predict_proba(X), rtol=1e-5)
    np.testing.assert_array_equal(model.predict(rows), model.predict(X))
    numbers = fitted(nn.Linear(4, 1), kind=BayesianModuleRegressor)
    np.testing.assert_allclose(numbers.predict(rows), numbers.predict(X), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", [BayesianModuleClassifier, BayesianModuleRegressor])
def test_items_of_a_fit_must_be_pairs(kind):
    for rows in (Alone(), Alone(True), TensorDataset(TENSOR, TENSOR, TENSOR)):
        with pytest.raises(ValueError, match=r"must be pairs \(x, y\)"):
            fitted(nn.Linear(4, 1), (rows,), kind)


def test_rows_with_weights_beside_targets_are_predicted():
    rows = TensorDataset(TENSOR, torch.from_numpy(SPECIES), torch.ones(len(X)))
    assert fitted().predict(rows).shape == SPECIES.shape


class Returns(nn.Linear):
    """A layer whose output is changed by a function."""

    def __init__(self, change, n_out=3):
        super().__init__(4, n_out)
        self.change = change

    def forward(self, x):
        return self.change(super().forward(x))


@pytest.mark.parametrize("kind", [BayesianModuleClassifier, BayesianModuleRegressor])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: (f, f), "must return one tensor, got a tuple of 2"),
        (lambda f: {"logits": f}, "must return one tensor, got a dict of 1"),
        (lambda f: f.half(), "torch.float16"),
        (lambda f: f.argmax(-1), "torch.int64"),
    ],
)
def test_what_a_module_must_return(kind, change, message):
    for given in ((X, SPECIES), (TensorDataset(TENSOR, torch.from_numpy(SPECIES)),)):
        with pytest.raises(InvalidParameterError, match=message):
            fitted(Returns(change), given, kind)


def test_modules_in_half_precision_are_refused():
    with pytest.raises(InvalidParameterError, match="float16"):
        fitted(nn.Linear(4, 3).half())


def test_outputs_that_are_not_finite_are_named():
    with pytest.raises(SamplerDivergedError, match="before any step") as caught:
        fitted(Returns(lambda f: f / 0.0))
    assert "learning_rate" not in str(caught.value)


@pytest.mark.parametrize(
    "dtype", [torch.int32, torch.uint8, torch.float32, torch.float64, torch.int64]
)
def test_labels_of_a_dataset_have_any_type(dtype):
    labels = torch.from_numpy(SPECIES)
    expected = fitted(given=(TensorDataset(TENSOR, labels),))
    found = fitted(given=(TensorDataset(TENSOR, labels.to(dtype)),))
    column = fitted(given=(TensorDataset(TENSOR, labels.to(dtype)[:, None]),))
    for model in (found, column):
        np.testing.assert_array_equal(model.posterior_.draws, expected.posterior_.draws)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (torch.from_numpy(SPECIES + 0.5), "not whole"),
        (torch.from_numpy(SPECIES * np.nan), "not whole"),
        (torch.from_numpy(SPECIES + 1), r"must be 0, 1, \.\.\., 2"),
        (torch.from_numpy(SPECIES - 1), r"must be 0, 1, \.\.\., 2"),
    ],
)
def test_labels_of_a_dataset_that_cannot_be_used(labels, message):
    with pytest.raises(ValueError, match=message):
        fitted(given=(TensorDataset(TENSOR, labels),))


def test_batch_normalisation_needs_two_rows():
    module = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Linear(5, 3))
    with pytest.raises(InvalidParameterError, match="batch_size=1"):
        fitted(module, batch_size=1)
    fitted(module, batch_size=1, training=False)


def test_predictions_before_a_fit_say_so():
    for kind in (BayesianModuleClassifier, BayesianModuleRegressor):
        with pytest.raises(NotFittedError):
            kind(nn.Linear(4, 3)).predict(X)


def missing_labels(missing):
    """The species as strings, with a missing one: an array of objects."""
    labels = np.array(["a", "b", "c"], dtype=object)[SPECIES]
    labels[7] = missing
    return labels


@pytest.mark.parametrize("missing", [None, np.nan, "NA", "NaT"])
def test_missing_labels_are_named(missing):
    if isinstance(missing, str):
        missing = getattr(pytest.importorskip("pandas"), missing)
    labels = missing_labels(missing)
    for given in (labels, labels.tolist(), labels[:, None]):
        with pytest.raises(ValueError, match="missing labels"):
            fitted(given=(X, given))


def test_missing_labels_of_other_types_are_named():
    numbers = SPECIES.astype(float)
    numbers[7] = np.nan
    with pytest.raises(ValueError, match="missing labels"):
        fitted(given=(X, numbers))
    pd = pytest.importorskip("pandas")
    for kind in ("string", "category", "Int64"):
        labels = pd.Series(SPECIES).astype(str if kind == "category" else int).astype(kind)
        labels[7] = None
        with pytest.raises(ValueError, match="missing labels"):
            fitted(given=(X, labels))


def test_labels_of_mixed_types_are_named():
    for labels in (missing_labels(1), missing_labels(1).tolist()):
        with pytest.raises(ValueError, match=r"mixed types \['int', 'str'\]"):
            fitted(given=(X, labels))


@pytest.mark.parametrize("kind", [BayesianModuleClassifier, BayesianModuleRegressor])
def test_modules_in_bfloat16_are_refused(kind):
    with pytest.raises(InvalidParameterError, match=r"bfloat16.*module\.float\(\)"):
        fitted(nn.Linear(4, 3).bfloat16(), kind=kind)


def test_predictions_use_the_module_of_the_fit():
    hidden = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))
    model = fitted(hidden)
    expected = model.predict_proba(X)
    other = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3))
    again = pickle.loads(pickle.dumps(model.set_params(module=other)))
    hidden[1] = nn.ReLU()
    np.testing.assert_array_equal(model.predict_proba(X), expected)
    np.testing.assert_array_equal(again.predict_proba(X), expected)
    assert model.module is other
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.abs(model.fit(X, SPECIES).predict_proba(X) - expected).max() > 0.0


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.vectors, self.last = nn.Embedding(3, 2), nn.Linear(2, 3)

    def forward(self, x):
        return self.last(self.vectors(x).mean(dim=1))


def test_whole_floats_for_an_embedding_are_named():
    words = SPECIES[:, None]
    with pytest.raises(InvalidParameterError, match="cannot be applied to rows of X"):
        fitted(Words(), (words.astype(float), SPECIES))
    model = fitted(Words(), (words, SPECIES))
    assert model.predict(words).shape == SPECIES.shape
    for given in (words.astype(float), Floats()):
        with pytest.raises(InvalidParameterError, match=r"rows of X, .* type torch\.float32"):
            model.predict(given)


class Floats(Alone):
    """Words as whole floats."""

    def __getitem__(self, i):
        return torch.tensor([float(SPECIES[i])])


@pytest.mark.parametrize("what", ["X", "y", "sample_weight"])
@pytest.mark.parametrize("kind", [BayesianModuleClassifier, BayesianModuleRegressor])
def test_masked_arrays_are_refused(kind, what):
    """Their masked values would be used as if they were data."""
    given = {"X": X, "y": SPECIES, "sample_weight": np.ones(len(X))}
    given[what] = np.ma.masked_array(given[what], mask=given[what] > 1.5)
    module = nn.Linear(4, 3 if kind is BayesianModuleClassifier else 1)
    with pytest.raises(TypeError, match=f"{what} is a masked array"):
        fitted(module, given.values(), kind)


@pytest.mark.parametrize(("weight", "message"), [
    (np.ones(3), "shape"), (np.full(150, np.nan), "NaN"), (np.full(150, -1.0), "[Nn]egative"),
    (np.zeros(150), "non-zero"),
])  # fmt: skip
def test_weights_that_cannot_be_used_are_refused(weight, message):
    with pytest.raises(ValueError, match=message):
        fitted(given=(X, SPECIES, weight))


def test_labels_of_a_single_class_are_named():
    with pytest.raises(ValueError, match=r"only one class: 1$"):
        fitted(given=(X[50:100], SPECIES[50:100]))
