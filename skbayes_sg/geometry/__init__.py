"""Where chains move: the centre, coordinates, and warps."""
