"""Standing orders in words: loops that a supervisor judges after each iteration."""
