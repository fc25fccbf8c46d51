"""Source -> PTX -> header: compile, normalise, record where it came from, and find out whether it still holds."""
