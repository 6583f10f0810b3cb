"""Columns of a prior table, in which kernels read the priors: one row for each parameter.

The kind is the code of the family, its place in `families.FAMILIES`. The shape is the one number
that a family may have beside location and scale, such as degrees of freedom.
"""

__all__ = ["KIND", "LOC", "POWER", "SCALE", "SHAPE"]

KIND, LOC, SCALE, SHAPE, POWER = 0, 1, 2, 3, 4
