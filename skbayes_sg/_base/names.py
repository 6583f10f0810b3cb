"""Names that tell apart what they name."""

__all__ = ["told_apart"]


def told_apart(names):
    """The names as a list, with (2), (3), ... behind those that have occurred before."""
    found = {}
    for name in names:
        k, own = 1, name
        while own in found:
            k += 1
            own = f"{name} ({k})"
        found[own] = True
    return list(found)
