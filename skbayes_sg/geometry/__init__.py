"""Where the chain moves: centre, coordinates, warps."""
