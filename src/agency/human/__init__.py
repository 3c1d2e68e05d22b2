"""Requests to people and their answers: what is asked, what may be answered, what is kept of it."""
