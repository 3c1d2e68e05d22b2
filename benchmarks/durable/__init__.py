"""What it costs to lose nothing: a journaled step of ours beside a hand-written one and other engines."""
