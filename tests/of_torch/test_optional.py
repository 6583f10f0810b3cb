"""The package without torch: nothing imports it, and what needs it says so."""

import subprocess
import sys

import pytest

WITHOUT = """
import sys, importlib, pkgutil

class Missing:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ImportError(name)

sys.meta_path.insert(0, Missing)
import skbayes_sg
names = [m.name for m in pkgutil.walk_packages(skbayes_sg.__path__, "skbayes_sg.")]
for name in names:
    if "__main__" not in name and not name.startswith("skbayes_sg.torch."):
        importlib.import_module(name)
assert "skbayes_sg.torch" in names
assert "BayesianModuleClassifier" in dir(skbayes_sg.torch)
for name in skbayes_sg.torch.__all__:
    try:
        getattr(skbayes_sg.torch, name)
    except ImportError as error:
        assert "pip install 'skbayes_sg[torch]'" in str(error), error
    else:
        raise AssertionError(name)
"""
UNASKED = """
import sys, skbayes_sg, skbayes_sg.torch
assert not any(name == "torch" or name.startswith("torch.") for name in sys.modules)
"""


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(WITHOUT, id="without"),
        pytest.param(UNASKED, id="unasked", marks=pytest.mark.slow),
    ],
)
def test_torch_is_imported_only_when_it_is_asked_for(source):
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_other_names_are_attribute_errors():
    import skbayes_sg.torch

    with pytest.raises(AttributeError, match="no attribute 'Net'"):
        skbayes_sg.torch.Net  # noqa: B018
