"""The scripts in examples/ run to their end with --quick, and write only where they are asked.

Those of the gallery have tests of their own.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
SCRIPTS = {
    path.relative_to(EXAMPLES).as_posix(): path
    for path in sorted(EXAMPLES.rglob("*.py"))
    if not any(part.startswith(("_", "gallery")) for part in path.relative_to(EXAMPLES).parts)
}
FAST = {"benchmarks/learned_scales.py"}  # the others take longer
PARAMETERS = [
    pytest.param(name, marks=() if name in FAST else pytest.mark.slow) for name in SCRIPTS
]


def run(name, folder, *options, **environment):
    """Run a script in a folder of its own."""
    paths = {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, str(SCRIPTS[name]), *options],
        cwd=folder,
        env=os.environ | paths | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def state():
    """What lies in examples/ beside the scripts."""
    files = [path for path in EXAMPLES.rglob("*.*") if path.suffix not in (".py", ".pyc")]
    return {path: path.read_bytes() for path in files}


def test_there_are_scripts_and_all_names_are_theirs():
    assert len(SCRIPTS) > 20
    assert set(SCRIPTS) >= FAST


@pytest.mark.parametrize("name", PARAMETERS)
def test_quick(name, tmp_path):
    before = state()
    done = run(name, tmp_path, "--quick", "--output", "made")
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.strip()
    assert {path.name for path in tmp_path.iterdir()} == {"made"}
    assert state() == before


NEED_DATA = [
    "papers/putcha_2023_preferential.py",
    "benchmarks/hard_table.py",
    "benchmarks/topics.py",
]


@pytest.mark.parametrize(
    "name", [NEED_DATA[0], *[pytest.param(n, marks=pytest.mark.slow) for n in NEED_DATA[1:]]]
)
def test_without_data_a_script_says_so_and_ends(name, tmp_path):
    done = run(name, tmp_path, "--quick", SKBAYES_SG_DATA=str(tmp_path))
    assert done.returncode == 0, done.stderr[-4000:]
    assert ".npz is not there: set SKBAYES_SG_DATA" in done.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_papers_are_run_by_name(tmp_path):
    # What `make papers` calls, for one script.
    path = EXAMPLES / "papers" / "_all.py"
    options = ["--quick", "--output", "made", "nagapetyan_2017_interpolation"]
    done = subprocess.run(
        [sys.executable, str(path), *options],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    kinds = {path.name.rpartition(".")[2] for path in (tmp_path / "made").iterdir()}
    assert kinds == {"txt", "csv", "png"}
    seconds = (tmp_path / "made" / "seconds.csv").read_text(encoding="utf-8").splitlines()
    assert seconds[0] == "script,seconds"
    assert seconds[1].startswith("nagapetyan_2017_interpolation,")
    assert "written:" not in next((tmp_path / "made").glob("*.txt")).read_text(encoding="utf-8")


def test_scripts_take_their_options_from_one_place():
    for name, path in SCRIPTS.items():
        text = path.read_text(encoding="utf-8")
        assert "argparse" not in text, name
        assert "Parser(__doc__)" in text, name
