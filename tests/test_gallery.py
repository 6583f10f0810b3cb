"""The gallery: every example runs, draws at least one picture, and ends with a takeaway."""

import re
import runpy
import sys
from pathlib import Path

import pytest

GALLERY = Path(__file__).parents[1] / "examples" / "gallery"
SCRIPTS = {path.relative_to(GALLERY).as_posix(): path for path in sorted(GALLERY.rglob("*.py"))}
FAST = {"large/new_data.py"}  # the others take longer
PARAMETERS = [
    pytest.param(name, marks=() if name in FAST else pytest.mark.slow) for name in SCRIPTS
]


def test_there_are_examples_and_all_names_are_theirs():
    assert len(SCRIPTS) >= 14
    assert set(SCRIPTS) >= FAST
    assert {path.parent.name for path in SCRIPTS.values()} == {
        path.parent.name for path in GALLERY.rglob("GALLERY_HEADER.rst") if path.parent != GALLERY
    }


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.filterwarnings("ignore")
def test_an_example_runs_prints_and_draws(name, tmp_path, monkeypatch, capsys):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(SCRIPTS[name]), "--quick"])
    try:
        runpy.run_path(str(SCRIPTS[name]), run_name="__main__")
        assert plt.get_fignums()
        for number in plt.get_fignums():
            plt.figure(number).canvas.draw()
    finally:
        plt.close("all")
    assert capsys.readouterr().out.strip()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_example_is_a_question_with_a_takeaway(name):
    text = SCRIPTS[name].read_text(encoding="utf-8")
    _, title, underline, *_ = text.splitlines()
    assert len(underline) == len(title)
    assert "?" in text.split('"""')[1]
    last = text.rpartition("# **Takeaway.** ")[2].strip()
    assert last.endswith(".")
    assert all(line.startswith("# ") for line in last.splitlines()[1:])
    assert 'QUICK = "--quick" in sys.argv' in text
    assert not re.search(r"shared|SKBAYES_SG_DATA", text)
