"""Rows that older code has left in the middle of things, and what today's code makes of them."""
