"""What is released: the wheel and the source archive contain the package, and it runs from them."""

import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

import skbayes_sg

ROOT = Path(__file__).parents[1]
VERSION = skbayes_sg.__version__
USE = """
import numpy as np, skbayes_sg
X = np.arange(12.0).reshape(6, 2) ** 2
model = skbayes_sg.BayesianLinearRegression(n_draws=10, random_state=0).fit(X, X @ [1.0, -1.0])
print(skbayes_sg.__version__, skbayes_sg.__file__, model.predict(X).shape)
"""


def run(*command, cwd=None, **options):
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, text=True, **options
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder with the wheel and the source archive."""
    pytest.importorskip("hatchling", reason="building needs hatchling, which make installs")
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "--directory", folder, cwd=ROOT)
    return folder


def files_of(wheel):
    return {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}


def wheel_in(folder):
    return folder / f"skbayes_sg-{VERSION}-py3-none-any.whl"


def test_the_wheel_has_all_files_of_the_package_and_no_others(built):
    own = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "skbayes_sg").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert files_of(wheel_in(built)) == own
    assert "skbayes_sg/py.typed" in own


def test_the_source_archive_makes_the_same_wheel(built, tmp_path):
    with tarfile.open(built / f"skbayes_sg-{VERSION}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    source = tmp_path / f"skbayes_sg-{VERSION}"
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path, cwd=source)
    assert files_of(wheel_in(tmp_path)) == files_of(wheel_in(built))
    for name in ("Makefile", "requirements.lock", "CHANGELOG.md", "tests", "docs", "examples"):
        assert (source / name).exists()


def environment(folder):
    """The interpreter of an empty virtual environment."""
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def install(python, *what):
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
    return run(*pip, "--disable-pip-version-check", *what)


def use(python, folder):
    """What an installed package prints; the environment is kept from the source tree."""
    version, file, *shape = run(python, "-I", "-c", USE, cwd=folder).split()
    assert version == VERSION
    assert Path(file).is_relative_to(folder)
    assert " ".join(shape) == "(6,)"


@pytest.mark.slow
def test_the_wheel_runs_where_nothing_else_of_the_package_is(built, tmp_path):
    """The dependencies are those of this environment, without the package that is tested here."""
    python = environment(tmp_path / "env")
    where = run(python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])").strip()
    (Path(where) / "beside.pth").write_text(sysconfig.get_paths()["purelib"])
    install(python, "--no-deps", "--no-index", wheel_in(built))
    use(python, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["whl", "tar.gz"])
def test_released_files_install_with_their_dependencies(built, tmp_path, kind):
    python = environment(tmp_path / "env")
    try:
        install(python, "numpy", "hatchling")
    except AssertionError as error:
        pytest.skip(f"no package index can be reached: {error}"[:300])
    (file,) = built.glob(f"*.{kind}")
    install(python, file)
    use(python, tmp_path)


def test_the_version_is_the_same_everywhere():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'\nversion = "{VERSION}"\n' in text
