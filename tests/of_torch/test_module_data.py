"""What is given to modules: names of columns, items of a Dataset, labels; what modules return."""

import warnings

import numpy as np
import pytest

pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
from sklearn.datasets import load_iris
from torch import nn

from skbayes_sg.torch import BayesianModuleClassifier, BayesianModuleRegressor

X, SPECIES = load_iris(return_X_y=True)
X = ((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32)
QUICK = {
    "n_draws": 4, "n_chains": 2, "n_warmup": 5, "thin": 2, "start_steps": 20, "random_state": 0,
    "batch_size": 30, "step_size": 0.01,
}  # fmt: skip
pytestmark = pytest.mark.filterwarnings("ignore:.*R-hat", "ignore::UserWarning:skbayes_sg")


def fitted(module=None, given=(X, SPECIES), kind=BayesianModuleClassifier, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind(module or nn.Linear(4, 3), **(QUICK | options)).fit(*given)


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
