"""Names that occur more than once get numbers, and no two are the same."""

import pytest

from skbayes_sg._base.names import told_apart


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["a", "b"], ["a", "b"]),
        (["a", "a", "b", "a"], ["a", "a (2)", "b", "a (3)"]),
        (["a", "a (2)", "a", "a (2)"], ["a", "a (2)", "a (3)", "a (2) (2)"]),
        ([], []),
    ],
)
def test_names_are_told_apart(names, expected):
    assert told_apart(iter(names)) == expected
