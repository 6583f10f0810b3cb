"""Posteriors of networks: any ``torch.nn.Module`` as an estimator. Needs torch, an optional extra.

The names are imported when they are asked for, so that the rest of the package never needs torch.
``import torch`` in the files of this folder imports the library: absolute imports do not see the
folder.
"""

from importlib import import_module

__all__ = ["BayesianModuleClassifier", "BayesianModuleRegressor", "ModulePosterior"]

_FILES = {
    "BayesianModuleClassifier": "classifier",
    "BayesianModuleRegressor": "regressor",
    "ModulePosterior": "store",
}


def __getattr__(name):
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import torch.nn  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"{name} needs torch, which is not installed: pip install 'skbayes_sg[torch]'."
        ) from error
    return getattr(import_module(f".{_FILES[name]}", __name__), name)


def __dir__():
    return sorted(__all__)
