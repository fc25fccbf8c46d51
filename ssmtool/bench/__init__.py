"""Times of the product's kernels: what is launched (cases), on a card (card), on the executor (slots)."""
