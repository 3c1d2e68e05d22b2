"""Standing orders to learn from, each a Django app of its own."""
