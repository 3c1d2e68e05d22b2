"""A mission that files the papers of a tray, asking a person before it files an invoice."""
