"""What "auto" does: from a request to draws."""
