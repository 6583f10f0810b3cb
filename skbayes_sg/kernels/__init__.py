"""What pieces see and call: types, rows, the gradient."""
