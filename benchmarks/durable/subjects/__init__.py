"""What is measured. Each module has `INSTALLED` and a class `Subject(url)` with `steps` and `stored`.

A step is a model's answer and a tool's result, a kilobyte each, both committed before the run goes on.
`steps(count)` runs that many and gives the wall-clock moments at which the model was asked; `stored()` is
how many bytes the database holds.
"""
