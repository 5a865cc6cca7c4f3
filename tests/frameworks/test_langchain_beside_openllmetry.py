"""opentelemetry-instrumentation-langchain of OpenLLMetry beside us."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tests.frameworks.langchain_beside")
other = pytest.importorskip("opentelemetry.instrumentation.langchain")

from tests.frameworks.langchain_beside import Beside  # noqa: E402 - after the check that it can run


class TestOpenllmetry(Beside):
    instrumentor = other.LangchainInstrumentor
