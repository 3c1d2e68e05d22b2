"""What is measured, a module each. All play the same script: `steps` calls of `add`, then an answer.

A module has `steps(count) -> stamps`, the CPU time of the process at each question to the model, and
`crowd(runs, steps, delay)`, so many runs at once with a model that takes `delay` seconds. `INSTALLED`
names the distribution whose version is shown. A module imports its own library and nothing of ours.
"""
