"""What a small model's odds mean: for each status an offset, and a weight for each of `judging.features`.

Fitted on labelled transcripts, never on those held out, by `python -m benchmarks.supervisor.calibrate`; to
be fitted anew when the prompt changes (`local_prompt`, `examples`). Rows are in `judging.VERDICTS`' order.
"""

CALIBRATED: dict[str, tuple[tuple[float, ...], ...]] = {
    "local:default": (
        (0.98, 0.44, 0.07, -0.19, 0.07, 0.18, 0.67, 0.26, -0.91, 0.07, -0.46, -0.72),  # complete
        (-5.43, -0.23, 0.29, -0.19, -0.17, -0.46, -0.34, 0.23, 0.07, -0.42, 0.02, 2.33),  # continue
        (-0.94, 0.05, -0.22, 0.37, -0.23, -0.24, 0.04, -0.02, 0.62, -0.06, -0.26, -0.82),  # wait
        (4.56, -0.12, 0.14, -0.02, 0.42, -0.01, -0.26, 0.02, -0.06, 0.38, 0.29, 0.06),  # blocked
        (0.83, -0.15, -0.28, 0.03, -0.09, 0.54, -0.10, -0.49, 0.28, 0.04, 0.41, -0.86),  # failed
    ),
}
