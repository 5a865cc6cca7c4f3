"""The official opentelemetry-instrumentation-genai-langchain beside us."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tests.frameworks.langchain_beside")
other = pytest.importorskip("opentelemetry.instrumentation.genai.langchain")

from tests.frameworks.langchain_beside import Beside  # noqa: E402 - after the check that it can run


class TestOfficial(Beside):
    instrumentor = other.LangChainInstrumentor
