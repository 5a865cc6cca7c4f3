"""The pure part: what a step is, what a run remembers, what counts as a loop.

Standard library only. No OpenTelemetry, no I/O, no clock, no environment, no threads.
"""
