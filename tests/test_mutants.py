"""Every planted bug of `mutants.py` is found by the test that it names."""

import mutants
import pytest

FILES = mutants.files_of(mutants.MUTANTS)


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES)
def test_tests_pass_without_bugs(file):
    assert mutants.pass_without_bugs(FILES[file])


@pytest.mark.slow
@pytest.mark.parametrize("mutant", mutants.MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_is_killed(mutant):
    assert mutants.is_killed(mutant)


def test_a_mutant_must_change_something(tmp_path):
    absent = mutants.Mutant("absent", "_base/jit.py", "no such source", "", "")
    with pytest.raises(ValueError, match="not found once"):
        mutants.planted(absent, mutants.copied(tmp_path))


@pytest.mark.parametrize("mutant", mutants.MUTANTS, ids=lambda mutant: mutant.name)
def test_source_of_a_mutant_is_there(mutant):
    # So that an edit of the package that makes a mutant stale is seen at once.
    source = (mutants.ROOT / "skbayes_sg" / mutant.file).read_text(encoding="utf-8")
    assert source.count(mutant.old) == 1


def test_every_mutant_names_a_test_that_is_there():
    tests = mutants.ROOT / "tests"
    sources = {p.name: p.read_text(encoding="utf-8") for p in tests.rglob("*.py")}
    stale = []
    for mutant in mutants.MUTANTS:
        file, _, item = mutant.test.partition("::")
        function = item.partition("[")[0].rpartition("::")[2]
        if f"def {function}(" not in sources[file] and item:
            stale.append((mutant.name, mutant.test))
    assert not stale
