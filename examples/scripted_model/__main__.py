"""The scripted model as a process of its own."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

if not __package__:  # started as `python examples/scripted_model`
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from examples.scripted_model import ScriptedModel
from examples.scripted_model import scenarios as grammar


def main() -> None:
    """Serve until SIGINT or SIGTERM; the first line of output is the address."""
    options = _parser().parse_args()
    stop_signals = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, stop_signals)
    with ScriptedModel(
        port=options.port,
        latency_s=options.latency,
        failures=options.fail,
        canary=options.canary,
        marker=options.marker,
        log_size=0,
    ) as model:
        print(model.base_url, flush=True)
        signal.sigwait(stop_signals)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scripted_model",
        description="A model service on 127.0.0.1 that says what the model name asks it to say.",
        epilog=grammar.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--port", type=int, default=0, help="default: a free one")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds that a reply takes")
    parser.add_argument(
        "--fail", type=int, nargs="*", default=(), metavar="STATUS", help="of the first requests"
    )
    parser.add_argument("--canary", default="", help="a word to put into all that the model says")
    parser.add_argument("--marker", default="loopguard", help="what ends the scenario nudge")
    return parser


if __name__ == "__main__":
    main()
