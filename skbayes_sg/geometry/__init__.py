"""Where chains move: the centre, and coordinates around it."""
