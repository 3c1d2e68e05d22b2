"""The fault harness: real workers on real databases, a seeded nemesis, and a checker that trusts no one."""
