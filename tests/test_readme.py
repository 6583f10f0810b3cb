"""The README: its examples run, its numbers are those of its example, its links lead somewhere."""

import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, flags=re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def first_example():
    names: dict = {}
    exec(blocks("python")[0], names)
    return names


def test_the_first_example_is_short_and_does_what_it_says(first_example):
    code = [line for line in blocks("python")[0].splitlines() if line.strip()]
    assert len(code) <= 12
    probability, lower, upper = (first_example[name] for name in ("probability", "lower", "upper"))
    assert probability.shape == lower.shape == upper.shape == (509, 2)
    assert (lower <= upper).all()
    assert np.mean((lower <= probability) & (probability <= upper)) > 0.9
    assert first_example["model"].score(first_example["X_new"], first_example["y_new"]) > 0.9


def test_the_summary_shown_is_that_of_the_example(first_example):
    """Up to Monte Carlo error: draws differ between machines in the last bits, and so later."""
    summary = first_example["model"][-1].posterior_.summary()
    shown = blocks("text")[0].splitlines()
    assert shown[0] == summary.heading
    assert shown[1].split() == list(summary.columns)
    assert len(shown) > 4
    for line in shown[2:]:
        label, numbers = line[:30].strip(), np.array(line[30:].split(), dtype=float)
        i = summary.labels.index(label)
        for column, error in (("mean", "mcse_mean"), ("sd", "mcse_sd")):
            value = numbers[list(summary.columns).index(column)]
            assert abs(value - summary[column][i]) < 6 * summary[error][i] + 0.0005
        assert numbers[list(summary.columns).index("rhat")] < 1.01


@pytest.mark.slow
def test_the_other_examples_run(first_example):
    others = blocks("python")[1:]
    assert others
    for code in others:
        exec(code, first_example)
    search = first_example["search"]
    assert set(search.best_params_) == {"bayesianlogisticregression__prior__scale"}
    assert -0.2 < search.best_score_ < 0.0


def test_files_that_are_linked_exist_and_pictures_are_small():
    links = re.findall(r"\]\((?!https?:)([^)]+)\)", TEXT)
    assert "docs/images/demo.png" in links
    for link in links:
        assert (ROOT / link).is_file(), link
        assert (ROOT / link).stat().st_size < 150_000


def test_commands_that_are_named_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"\bmake ([a-z-]+)", TEXT)) - {"that"}:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
