"""Which worker of pytest-xdist runs which tests."""

import pytest
from xdist.scheduler import LoadFileScheduling

BY_THEMSELVES = ("::test_mutant_is_killed[", "::test_tests_pass_without_bugs[")


class ByFile(LoadFileScheduling):
    """File by file, so that what the tests of a file share is made once; each mutant by itself.

    Mutants share nothing, and as one file they would keep a single worker busy for an hour.
    """

    def _split_scope(self, nodeid):
        alone = any(name in nodeid for name in BY_THEMSELVES)
        return nodeid if alone else super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """`ByFile` for ``--dist loadfile``."""
    return ByFile(config, log) if config.getoption("dist") == "loadfile" else None
