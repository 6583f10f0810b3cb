"""The pause of the garbage collector."""

import gc

import pytest

from skbayes_sg._base.garbage import uncollected


@pytest.fixture(params=[True, False])
def is_on(request):
    before = gc.isenabled()
    (gc.enable if request.param else gc.disable)()
    yield request.param
    (gc.enable if before else gc.disable)()


def test_the_collector_is_off_within_and_as_before_afterwards(is_on):
    with uncollected():
        assert not gc.isenabled()
    assert gc.isenabled() == is_on


def test_it_is_as_before_after_an_error(is_on):
    with pytest.raises(ImportError), uncollected():
        raise ImportError
    assert gc.isenabled() == is_on


def _is_young(own):
    return any(other is own for other in gc.get_objects(generation=0))


@pytest.mark.slow
def test_objects_are_old_afterwards_and_collected_all_the_same():
    with uncollected():
        made = []
        made.append(made)  # a cycle, which only the collector frees
        assert _is_young(made)
    assert not _is_young(made)
    assert gc.get_freeze_count() == 0
    del made
    assert gc.collect() > 0


def test_objects_that_somebody_has_frozen_stay_frozen():
    gc.freeze()
    try:
        with uncollected():
            pass
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
