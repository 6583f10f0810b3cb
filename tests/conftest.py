"""Which parameters of a test are slow, and which worker of pytest-xdist runs which tests."""

import pytest
from xdist.scheduler import LoadFileScheduling

SOME_ARE_SLOW = {
    "slow_for": "slow with parameters whose ids these are, or parts of whose ids between hyphens",
    "slow_except": "slow with all parameters but those",
}
BY_THEMSELVES = ("::test_mutant_is_killed[", "::test_tests_pass_without_bugs[")


class ByFile(LoadFileScheduling):
    """File by file, so that what the tests of a file share is made once; each mutant by itself.

    Mutants share nothing, and as one file they would keep a single worker busy for an hour.
    """

    def _split_scope(self, nodeid):
        alone = any(name in nodeid for name in BY_THEMSELVES)
        return nodeid if alone else super()._split_scope(nodeid)


def pytest_configure(config):
    for name, meaning in SOME_ARE_SLOW.items():
        config.addinivalue_line("markers", f"{name}(*ids): {meaning}")


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(config, items):
    """Mark as slow what ``slow_for`` and ``slow_except`` say, for products of parameters."""
    named, found = set(), set()
    for item in items:
        for name in SOME_ARE_SLOW:
            for mark in item.iter_markers(name):
                parts = [part for part in mark.args if f"-{part}-" in f"-{item.callspec.id}-"]
                if bool(parts) == (name == "slow_for"):
                    item.add_marker(pytest.mark.slow)
                test = item.nodeid.partition("[")[0]
                named |= {(test, part) for part in mark.args}
                found |= {(test, part) for part in parts}
    missing = [] if any("::" in arg for arg in config.args) else sorted(named - found)
    if missing:  # such as those of a parameter that was renamed
        raise pytest.UsageError(f"No parameters of a test have the ids {missing}.")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """`ByFile` for ``--dist loadfile``."""
    return ByFile(config, log) if config.getoption("dist") == "loadfile" else None
