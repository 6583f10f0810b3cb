"""What multilayer perceptrons compute: the predictor map, its samplers, and their diagnostics."""
