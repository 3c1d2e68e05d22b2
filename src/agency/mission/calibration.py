"""What a small model's odds mean: for each status an offset, and a weight for each of `judging.features`.

Fitted on labelled transcripts, never on those held out, by `python -m benchmarks.supervisor.calibrate`; to
be fitted anew when the prompt changes (`local_prompt`, `examples`). Rows are in `judging.VERDICTS`' order.
"""

CALIBRATED: dict[str, tuple[tuple[float, ...], ...]] = {
    "local:default": (
        (3.58, 0.65, 0.80, -0.09, 0.11, 0.47, 0.91, -0.11, -1.36, 0.25, -0.69, -2.07),  # complete
        (-9.30, -0.54, 0.23, -0.19, -0.27, -0.84, -0.37, 0.17, 0.57, -0.81, 0.01, 2.60),  # continue
        (-2.51, 0.22, -0.53, 0.66, -0.31, -0.50, -0.11, 0.17, 0.84, -0.27, -0.35, -1.07),  # wait
        (5.80, -0.13, -0.01, -0.32, 0.59, 0.00, -0.42, 0.15, 0.09, 0.63, 0.37, 1.62),  # blocked
        (2.43, -0.21, -0.48, -0.05, -0.12, 0.86, -0.01, -0.38, -0.13, 0.21, 0.66, -1.09),  # failed
    ),
}
